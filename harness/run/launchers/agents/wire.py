"""JSON lines over a TCP connection, bounded in length and in time."""

import contextlib
import socket
import threading
import time

from pydantic import BaseModel

HANDSHAKE_BYTES = 16 * 1024
"""Longest line of somebody who has not shown the token yet."""
LONGEST_BYTES = 64 * 1024 * 1024
"""Longest line afterwards; a report has some kilobytes."""
HANDSHAKE_S = 10.0
"""A connection that has not shown the token within so long is closed."""
KEEPALIVE = {"TCP_KEEPIDLE": 2, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 8000}
"""The kernels notice within 8 s that the other host is gone, even when the programs are stopped (Ctrl-Z)."""


CLOSED = "the connection was closed"


class WireError(Exception):
    """The other side is gone, silent for too long, or says what is not in the protocol."""


class Wire:
    """One connection. Sending is safe from several threads, receiving from one."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.longest = HANDSHAKE_BYTES
        self._buffer = bytearray()
        self._sending = threading.Lock()
        connection.setblocking(True)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # a turn must not wait for a fuller packet
        for name, value in KEEPALIVE.items():
            with contextlib.suppress(OSError, AttributeError):  # not every system has every one
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def send(self, message: BaseModel) -> None:
        """Send one message; WireError when the other side is gone."""
        line = message.model_dump_json(exclude_defaults=True).encode() + b"\n"
        try:
            with self._sending:
                self.connection.sendall(line)
        except OSError as error:
            raise WireError(error.strerror or str(error)) from None

    def receive(self, deadline: float | None = None) -> bytes:
        """The next line; WireError when there is none by `deadline` (of time.monotonic), or it is too long."""
        while (line := self.next_line()) is None:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise WireError("no answer in time")
            try:
                self.connection.settimeout(left)
                self.take_in()
            except TimeoutError:
                continue
            except OSError as error:  # closed by this side meanwhile
                raise WireError(error.strerror or str(error)) from None
            finally:
                with contextlib.suppress(OSError):
                    self.connection.settimeout(None)
        return line

    def take_in(self) -> None:
        """Read what has arrived; WireError when the other side is gone."""
        try:
            data = self.connection.recv(1 << 16)
        except TimeoutError:
            raise
        except OSError as error:
            raise WireError(error.strerror or str(error)) from None
        if not data:
            raise WireError(CLOSED)
        self._buffer += data

    def next_line(self) -> bytes | None:
        """A line that has arrived, or None; WireError when it is longer than may be."""
        end = self._buffer.find(b"\n")
        if end > self.longest or (end < 0 and len(self._buffer) > self.longest):
            raise WireError(f"a line of more than {self.longest} bytes")
        if end < 0:
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    def close(self) -> None:
        """End the connection; also wakes a thread that is receiving."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()
