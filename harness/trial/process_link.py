"""How fast one process hands bytes to another on this machine: over TCP on the loopback, as workers on one host do.

`python -I -S process_link.py PORT BYTES` is the other process: it takes so many bytes, says so, and begins again. Run
as a file, so that it starts in a few hundredths of a second.
"""

import socket
import subprocess
import sys

HOST = "127.0.0.1"
LIMIT_S = 10.0
"""For everything that could wait for ever."""
PIECE = 2**20
RECEIVED = b"\1"


class ProcessLink:
    """A connection to a process of its own, which ends when this one closes it or ends itself."""

    def __init__(self, size: int) -> None:
        self._sent = memoryview(bytes(size))
        with socket.create_server((HOST, 0)) as listening:
            listening.settimeout(LIMIT_S)
            command = [sys.executable, "-I", "-S", __file__, str(listening.getsockname()[1]), str(size)]
            self._peer = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            self._connection, _ = listening.accept()
        self._connection.settimeout(LIMIT_S)

    def __call__(self) -> None:
        """All bytes, until the other process has them."""
        self._connection.sendall(self._sent)
        if self._connection.recv(1) != RECEIVED:
            raise ConnectionResetError("the other process has ended")

    def close(self) -> None:
        """End the other process."""
        self._connection.close()
        self._peer.wait(LIMIT_S)


def _take(port: int, size: int) -> None:
    """Take `size` bytes again and again until the other side closes."""
    buffer = memoryview(bytearray(PIECE))
    with socket.create_connection((HOST, port), LIMIT_S) as connection:
        connection.settimeout(None)  # others have their turn meanwhile
        missing = size
        while got := connection.recv_into(buffer, min(PIECE, missing)):
            missing -= got
            if not missing:
                connection.sendall(RECEIVED)
                missing = size


if __name__ == "__main__":
    _take(int(sys.argv[1]), int(sys.argv[2]))
