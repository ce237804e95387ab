"""How a link is given its rate: the token bucket of the kernel's traffic control."""

import math
import time

BURST_S = 0.001
SMALLEST_BURST_BYTES = 4096
"""Two full frames and a little."""
QUEUE_S = 0.02
SMALLEST_QUEUE_BYTES = 256 * 1024
"""What a shaper keeps when more comes than may go; the rest is lost, as in a switch of that much memory."""

LARGEST_SEGMENT_BYTES = 64 * 1024
"""What the kernel takes for largest by itself."""


def burst_bytes(rate: int, tick_s: float | None = None) -> int:
    """What a shaper of `rate` bits per second lets through at once after a pause, in bytes.

    Small, so that a message pays for its bytes: 1 ms worth, of which the links of sender and receiver let through
    only one. No smaller than what becomes due between two looks at the clock, or the rate would not be reached:
    `tick_s` is how far apart those are, by default the resolution of the kernel's timers, which is its tick (1/HZ)
    where it has no high-resolution ones.
    """
    resolution = time.clock_getres(time.CLOCK_MONOTONIC) if tick_s is None else tick_s
    return max(SMALLEST_BURST_BYTES, math.ceil(rate / 8 * max(BURST_S, resolution)))


def queue_bytes(rate: int) -> int:
    """What may wait for a link of `rate` bits per second."""
    return max(SMALLEST_QUEUE_BYTES, math.ceil(rate / 8 * QUEUE_S))


def segment_bytes(rate: int) -> int:
    """The largest piece that TCP should hand to a link of `rate` bits per second.

    A piece that is larger than the burst is cut into frames by the shaper, and each would cost the relay as much as
    the piece; one that nearly fills the burst waits until the bucket is full, and what comes meanwhile runs over.
    """
    return min(LARGEST_SEGMENT_BYTES, burst_bytes(rate) * 2 // 3)


def shaped(interface: str, rate: int) -> str:
    """A line for `tc -batch -` that gives what leaves through an interface its rate, in bits per second."""
    burst = burst_bytes(rate)
    return f"qdisc add dev {interface} root tbf rate {rate}bit burst {burst} limit {burst + queue_bytes(rate)}"
