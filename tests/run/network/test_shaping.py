"""How much a shaper lets through at once, and how much it keeps: little, and enough to reach its rate."""

import pytest

from harness.run.network.shaping import burst_bytes, queue_bytes, segment_bytes, shaped


@pytest.mark.parametrize(
    ("rate", "tick_s", "burst"), [(10**9, 1e-9, 125_000), (10**7, 1e-9, 4096), (10**9, 0.004, 500_000)]
)
def test_a_burst_is_a_millisecond_or_a_tick_of_the_kernel_or_two_frames(rate: int, tick_s: float, burst: int) -> None:
    assert burst_bytes(rate, tick_s) == burst


def test_a_queue_holds_twenty_milliseconds_and_never_less_than_a_small_switch() -> None:
    assert queue_bytes(10**9) == 2_500_000
    assert queue_bytes(10**6) == 256 * 1024


@pytest.mark.parametrize("rate", [10**6, 10**8, 10**9, 10**12])
def test_what_tcp_hands_over_at_once_fits_into_a_burst_and_holds_a_frame(rate: int) -> None:
    assert 1514 < segment_bytes(rate) < burst_bytes(rate)


def test_the_rate_is_given_in_bits_and_the_rest_in_bytes() -> None:
    line = shaped("eth0", 10**9)
    assert line == f"qdisc add dev eth0 root tbf rate 1000000000bit burst {burst_bytes(10**9)} limit " + str(
        burst_bytes(10**9) + 2_500_000
    )
