"""The relay holds frames for their time, in their order, and knows whom they are for."""

import errno
from typing import Any

import pytest

from harness.run.network import relay
from harness.run.network.relay import HEADER, Relay

ONE, TWO, THREE = (bytes([2, 0, 0, 0, 0, number]) for number in (1, 2, 3))
EVERYBODY = b"\xff" * 6
DELAY_NS = 1000


class Stopped(Exception):
    """The clock of a test has come to its end."""


class Port:
    """A packet socket of a test: what arrives, at what time, and what was sent out of it."""

    def __init__(self, clock: "Clock") -> None:
        self.clock = clock
        self.arriving: list[tuple[int, bytes]] = []
        self.sent: list[tuple[int, bytes]] = []
        self.error: OSError | None = None

    def recv_into(self, buffer: memoryview) -> int:
        if self.error is not None:
            raise self.error
        if not self.arriving or self.arriving[0][0] > self.clock.now_ns:
            raise BlockingIOError(errno.EAGAIN, "")
        _, frame = self.arriving.pop(0)
        buffer[: len(frame)] = frame
        return len(frame)

    def send(self, frame: bytes) -> None:
        if self.error is not None:
            raise self.error
        self.sent.append((self.clock.now_ns, frame))


class Clock:
    """Time that passes only while the relay waits."""

    def __init__(self) -> None:
        self.now_ns = 0

    def select(
        self, ports: list[Port], _: Any, __: Any, wait_s: float | None
    ) -> tuple[list[Port], list[Any], list[Any]]:
        arrivals = [port.arriving[0][0] for port in ports if port.arriving and port.error is None]
        if wait_s is None and not arrivals:
            raise Stopped
        due = [] if wait_s is None else [self.now_ns + round(wait_s * 1e9)]
        self.now_ns = max(self.now_ns, min(arrivals + due))
        return [port for port in ports if port.arriving and port.arriving[0][0] <= self.now_ns], [], []


@pytest.fixture
def ports(monkeypatch: pytest.MonkeyPatch) -> dict[bytes, Port]:
    clock = Clock()
    monkeypatch.setattr(relay.select, "select", clock.select)
    monkeypatch.setattr(relay.time, "monotonic_ns", lambda: clock.now_ns)
    return {address: Port(clock) for address in (ONE, TWO, THREE)}


def frame(target: bytes, content: str = "") -> bytes:
    return bytes(HEADER) + target + ONE + b"\x08\x00" + content.encode()


def run(ports: dict[bytes, Any]) -> None:
    with pytest.raises(Stopped):
        Relay(DELAY_NS, ports).serve()


def test_a_frame_arrives_after_the_delay_and_only_where_it_is_meant_to(ports: dict[bytes, Port]) -> None:
    ports[ONE].arriving = [(100, frame(TWO))]
    run(ports)
    assert ports[TWO].sent == [(1100, frame(TWO))]
    assert ports[ONE].sent == ports[THREE].sent == []


def test_what_is_for_everybody_goes_to_all_but_the_sender(ports: dict[bytes, Port]) -> None:
    ports[ONE].arriving = [(100, frame(EVERYBODY))]
    run(ports)
    assert [len(ports[address].sent) for address in (ONE, TWO, THREE)] == [0, 1, 1]


def test_frames_keep_their_order_and_their_distance(ports: dict[bytes, Port]) -> None:
    ports[ONE].arriving = [(100, frame(THREE, "a")), (1150, frame(THREE, "c"))]
    ports[TWO].arriving = [(120, frame(THREE, "b"))]
    run(ports)
    assert ports[THREE].sent == [
        (1100, frame(THREE, "a")),
        (1120, frame(THREE, "b")),
        (2150, frame(THREE, "c")),
    ]


def test_more_frames_than_are_taken_at_a_time_all_arrive(ports: dict[bytes, Port]) -> None:
    frames = [frame(TWO, str(number)) for number in range(3 * relay.AT_A_TIME)]
    ports[ONE].arriving = [(100, each) for each in frames]
    run(ports)
    assert [sent for _, sent in ports[TWO].sent] == frames


def test_a_frame_for_nobody_here_is_dropped(ports: dict[bytes, Port]) -> None:
    ports[ONE].arriving = [(100, frame(bytes([2, 0, 0, 0, 0, 9])))]
    run(ports)
    assert not any(port.sent for port in ports.values())


def test_what_no_longer_fits_in_memory_is_dropped(ports: dict[bytes, Port], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "WIRE_BYTES", 2 * len(frame(TWO, "a")))
    ports[ONE].arriving = [(100, frame(TWO, each)) for each in "abc"] + [(5000, frame(TWO, "d"))]
    run(ports)
    assert [sent for _, sent in ports[TWO].sent] == [frame(TWO, each) for each in "abd"]


@pytest.mark.parametrize("number", [errno.ENETDOWN, errno.ENOBUFS])
def test_a_link_that_is_cut_or_full_loses_frames_and_nothing_else(ports: dict[bytes, Port], number: int) -> None:
    ports[TWO].error = OSError(number, "")
    ports[ONE].arriving = [(100, frame(TWO)), (200, frame(THREE))]
    run(ports)
    assert ports[THREE].sent == [(1200, frame(THREE))]


def test_any_other_error_ends_the_relay(ports: dict[bytes, Port]) -> None:
    ports[TWO].error = OSError(errno.EBADF, "gone")
    ports[ONE].arriving = [(100, frame(TWO))]
    with pytest.raises(OSError, match="gone"):
        Relay(DELAY_NS, ports).serve()  # type: ignore[arg-type]
