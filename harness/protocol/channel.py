"""The way between the parent and a trial: JSON lines over a socket pair.

A closed socket means that the other side is gone.
"""

import select
import socket

from harness.protocol.messages import Message


class Channel:
    """JSON lines over one connected socket."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._buffer = b""

    def send(self, message: Message) -> None:
        """Send one message; raises OSError when the other side is gone."""
        self.send_json(message.model_dump_json(exclude_none=True))

    def send_json(self, text: str) -> None:
        """Send one line that is JSON already."""
        self.connection.sendall(text.encode() + b"\n")

    def receive_line(self, timeout_s: float | None = None) -> str | None:
        """The next line; None after `timeout_s` without one; EOFError when the other side is gone."""
        while b"\n" not in self._buffer:
            if self.connection.fileno() < 0:
                raise EOFError("the channel is closed")
            readable, _, _ = select.select([self.connection], [], [], timeout_s)
            if not readable:
                return None
            try:
                data = self.connection.recv(1 << 20)
            except ConnectionResetError:
                data = b""
            if not data:
                raise EOFError("the other side of the channel is gone")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode()

    @property
    def connections(self) -> list[socket.socket]:
        """Sockets on which something may arrive."""
        return [self.connection]

    @property
    def holds_line(self) -> bool:
        """Whether a line has arrived already, or the socket is closed on this side: what no select would tell."""
        return b"\n" in self._buffer or self.connection.fileno() < 0

    def close(self) -> None:
        """Close the socket; the other side reads an end of file."""
        self.connection.close()
