"""How a link is given its rate: the token bucket of the kernel's traffic control."""

import math
import time

LATENCY_S = 0.02
"""Longest wait in a shaper's queue; what would wait longer is dropped, as by a switch of that much memory."""
BURST_S = 0.002
SMALLEST_BURST_BYTES = 32 * 1024


def burst_bytes(rate: int, tick_s: float | None = None) -> int:
    """What a shaper of `rate` bits per second lets through at once after a pause, in bytes.

    Small, so that a message pays for its bytes; but no smaller than what becomes due between two looks at the
    clock, or the rate would not be reached. `tick_s` is how far apart those are: by default the resolution of
    the kernel's timers, which is its tick (1/HZ) where it has no high-resolution ones.
    """
    resolution = time.clock_getres(time.CLOCK_MONOTONIC) if tick_s is None else tick_s
    return max(SMALLEST_BURST_BYTES, math.ceil(rate / 8 * max(BURST_S, resolution)))


def shaped(interface: str, rate: int) -> str:
    """A line for `tc -batch -` that gives what leaves through an interface its rate, in bits per second."""
    burst = burst_bytes(rate)
    return f"qdisc add dev {interface} root tbf rate {rate}bit burst {burst} latency {LATENCY_S * 1e3:g}ms"
