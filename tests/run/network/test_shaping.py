"""How much a shaper lets through at once: little, but what becomes due between two looks at the clock."""

import pytest

from harness.run.network.shaping import burst_bytes, shaped


@pytest.mark.parametrize(
    ("rate", "tick_s", "burst"),
    [
        (10**9, 1e-9, 250_000),
        (10**7, 1e-9, 32 * 1024),
        (64_000, 1e-9, 32 * 1024),
        (10**9, 0.004, 500_000),
    ],
)
def test_a_burst_is_two_milliseconds_or_a_tick_of_the_kernel_or_a_few_frames(
    rate: int, tick_s: float, burst: int
) -> None:
    assert burst_bytes(rate, tick_s) == burst


def test_the_rate_is_given_in_bits() -> None:
    assert shaped("eth0", 10**12).startswith("qdisc add dev eth0 root tbf rate 1000000000000bit burst ")
