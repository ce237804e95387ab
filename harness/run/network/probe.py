"""Measure a network from inside it, with the fewest bytes that tell.

`python -I -S probe.py serve ADDRESS` on one host says the port it listens on; `python -I -S probe.py measure
ADDRESS PORT` on another then says what it has seen, as JSON. Run as files, like `holder.py`.
"""

import contextlib
import json
import os
import socket
import sys
import time
from typing import NoReturn

MESSAGE = b"x" * 64
ROUND_TRIPS = 200
ROUND_TRIPS_S = 0.3
FEWEST = 5
BULK_S = 0.9
BULK_ROUND_TRIPS = 10
"""How long the bulk transfer may take from its first byte: so many seconds and round trips, in which TCP finds its
speed."""
BULK_BYTES = 256 << 20
"""And how much it may carry: an unshaped network moves this in a fraction of a second."""
SETTLED = 0.4
"""The share of the transfer that is not counted: what a shaper lets through at once, and how the sender starts."""
LIMIT_S = 30.0
"""For everything that could wait for ever."""
LONGEST_NAME = 16
"""Bytes of a congestion control's name (TCP_CA_NAME_MAX)."""


def serve(address: str) -> None:
    """Echo on the first connection, and send as much as is wanted on the second."""
    with socket.create_server((address, 0)) as listening:
        listening.settimeout(LIMIT_S)
        os.write(1, f"{listening.getsockname()[1]}\n".encode())
        with contextlib.suppress(OSError), listening.accept()[0] as echo:
            echo.settimeout(LIMIT_S)
            echo.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while data := echo.recv(65536):
                echo.sendall(data)
        with contextlib.suppress(OSError), listening.accept()[0] as bulk:  # it is cut off when its time is over
            bulk.settimeout(LIMIT_S)
            piece = bytes(1 << 18)
            for _ in range(BULK_BYTES // len(piece)):
                bulk.sendall(piece)


def round_trip_s(connection: socket.socket) -> float:
    """The median over small messages, each sent when the one before is back; connecting found the way already."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    taken: list[float] = []
    start = time.perf_counter()
    while len(taken) < FEWEST or (len(taken) < ROUND_TRIPS and time.perf_counter() - start < ROUND_TRIPS_S):
        sent = time.perf_counter()
        connection.sendall(MESSAGE)
        missing = len(MESSAGE)
        while missing:
            missing -= len(connection.recv(missing)) or _gone()
        taken.append(time.perf_counter() - sent)
    return sorted(taken)[len(taken) // 2]


def bandwidth_bits_per_s(connection: socket.socket, limit_s: float) -> float:
    """What one connection carries, in bits of its content, over the later part of a limited time."""
    buffer = bytearray(1 << 18)
    arrived: list[tuple[float, int]] = []
    total = 0
    while size := connection.recv_into(buffer):
        total += size
        arrived.append((time.perf_counter(), total))
        if arrived[-1][0] - arrived[0][0] > limit_s:
            break
    if not arrived:
        _gone()
    (start, _), (end, _) = arrived[0], arrived[-1]
    settled, before = next(at for at in arrived if at[0] - start >= SETTLED * (end - start))
    return 8 * (total - before) / (end - settled) if end > settled else 0.0


def measure(address: str, port: int) -> dict[str, float | str]:
    """Seconds, bits per second, and what governs them."""
    with socket.create_connection((address, port), LIMIT_S) as connection:
        round_trip = round_trip_s(connection)
    with socket.create_connection((address, port), LIMIT_S) as connection:
        bandwidth = bandwidth_bits_per_s(connection, BULK_S + BULK_ROUND_TRIPS * round_trip)
        governed_by = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, LONGEST_NAME)
    return {
        "round_trip_s": round_trip,
        "bandwidth_bits_per_s": bandwidth,
        "congestion_control": governed_by.rstrip(b"\0").decode(),
    }


def _gone() -> NoReturn:
    raise ConnectionResetError("the other host has closed the connection")


def main() -> None:
    """Arguments: what to do, the address, and the port to measure."""
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]))))


if __name__ == "__main__":
    main()
