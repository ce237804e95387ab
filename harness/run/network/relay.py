"""A switch whose wires are long: it holds every frame for a while, then passes it on.

`python -I -S relay.py MICROSECONDS NAME=ADDRESS …` runs inside the switch's network namespace, between its ends of
the hosts' links: NAME is the interface, ADDRESS the hardware address of the host behind it. It says `ready` and
works until it is killed. It is run as a file, like `holder.py`, whose process starts it and takes it along.

Frames are read and written by packet sockets with the headers of virtio, which carry segments of up to 64 KiB that
only real hardware would cut to the wire's size: a frame costs the same few microseconds whatever its size.
"""

import contextlib
import ctypes
import errno
import gc
import os
import select
import socket
import sys
import time
from collections import deque
from typing import NamedTuple

SOL_PACKET = 263
PACKET_VNET_HDR = 15
PACKET_IGNORE_OUTGOING = 23
SO_SNDBUFFORCE = 32
SO_RCVBUFFORCE = 33
PR_SET_TIMERSLACK = 29
ETH_P_ALL = 3

HEADER = 10
"""Bytes of `struct virtio_net_hdr` before each frame."""
ETHERNET = 14
LARGEST = HEADER + ETHERNET + 65535
BUFFER_BYTES = 32 << 20
"""Of each socket: what arrives while this process waits for a processor, and what the shaper has queued."""
WIRE_BYTES = 256 << 20
"""On the wires at once, at most; frames beyond it are lost."""
AT_A_TIME = 32
"""Frames read from one host before frames that are due, and the other hosts, have their turn."""
PASSING = (errno.ENETDOWN, errno.ENOBUFS, errno.EAGAIN, errno.ENXIO)
"""Of a link that is cut, or whose shaper is full: the frame is lost, as it is meant to be."""


class Frame(NamedTuple):
    """One frame on its way, with its header; `due_ns` is on the monotonic clock."""

    due_ns: int
    content: bytes
    targets: tuple[socket.socket, ...]


class Relay:
    """The ports of a switch, by the hardware address behind each, and the frames between them."""

    def __init__(self, delay_ns: int, ports: dict[bytes, socket.socket]) -> None:
        self._delay_ns = delay_ns
        self._ports = list(ports.values())
        self._behind = {address: (port,) for address, port in ports.items()}
        self._others = {port: tuple(other for other in self._ports if other is not port) for port in self._ports}
        self._frames: deque[Frame] = deque()
        self._wire_bytes = 0
        self._buffer = memoryview(bytearray(LARGEST))

    def serve(self) -> None:
        """For ever. The delay is the same for all, so frames leave in the order in which they came."""
        while True:
            wait_s = max(0, self._frames[0].due_ns - time.monotonic_ns()) / 1e9 if self._frames else None
            readable, _, _ = select.select(self._ports, [], [], wait_s)
            self._deliver()
            for port in readable:
                self._take(port)

    def _deliver(self) -> None:
        """Pass on what is due."""
        now_ns = time.monotonic_ns()
        while self._frames and self._frames[0].due_ns <= now_ns:
            _, content, targets = self._frames.popleft()
            self._wire_bytes -= len(content)
            for target in targets:
                try:
                    target.send(content)
                except OSError as error:
                    if error.errno not in PASSING:
                        raise

    def _take(self, port: socket.socket) -> None:
        """Take up to a few frames that a host has sent."""
        for _ in range(AT_A_TIME):
            try:
                size = port.recv_into(self._buffer)
            except OSError as error:
                if error.errno not in PASSING:
                    raise
                return
            due_ns = time.monotonic_ns() + self._delay_ns
            content = bytes(self._buffer[:size])
            destination = content[HEADER : HEADER + 6]
            # an odd first byte is a broadcast or a multicast
            targets = self._others[port] if destination[0] & 1 else self._behind.get(destination, ())
            if self._wire_bytes + size <= WIRE_BYTES:
                self._frames.append(Frame(due_ns, content, targets))
                self._wire_bytes += size


def listen(name: str) -> socket.socket:
    """A packet socket for what arrives at an interface, and for sending out of it."""
    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    port.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    port.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    for option in (SO_RCVBUFFORCE, SO_SNDBUFFORCE):
        port.setsockopt(socket.SOL_SOCKET, option, BUFFER_BYTES)
    port.setblocking(False)
    port.bind((name, ETH_P_ALL))
    return port


def be_punctual() -> None:
    """Run before whatever computes on this machine: a frame that waits for a processor is a longer wire.

    Also a timer that fires when it is due, and no collection of garbage.
    """
    with contextlib.suppress(OSError):  # a container may refuse; then the next best
        os.nice(-20)
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1)
    gc.disable()


def main() -> None:
    """Arguments: the delay in microseconds, then the ports."""
    ports = {}
    for argument in sys.argv[2:]:
        name, _, address = argument.partition("=")
        ports[bytes.fromhex(address.replace(":", ""))] = listen(name)
    be_punctual()
    os.write(1, b"ready\n")
    Relay(int(sys.argv[1]) * 1000, ports).serve()


if __name__ == "__main__":
    main()
