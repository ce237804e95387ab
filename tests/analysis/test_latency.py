"""α + S/β fitted to times: what was planted is found within its interval, and what is no line is told to be none."""

from collections.abc import Sequence
from typing import cast

import numpy as np
import pytest

from harness.analysis.latency import LatencyBandwidth, OverBlocks, fit
from tests.analysis.noises import reach

SIZES = (4, 2**12, 2**16, 2**20, 2**24)
ALPHA_S, BETA = 2e-4, 2e9


def times(
    noise: float = 0.0, blocks: int = 5, seed: int = 1, bend: float = 1.0, drift: float = 0.0
) -> dict[int, dict[int, float]]:
    """Times by the model; `bend` multiplies those of the middle size, `drift` is the machine's between blocks."""
    draw = np.random.default_rng(seed)
    speeds = np.exp(draw.normal(0, drift, blocks))
    return {
        size: {
            block: (ALPHA_S + size / BETA)
            * (bend if size == 2**16 else 1.0)
            * float(speeds[block] * np.exp(draw.normal(0, noise)))
            for block in range(blocks)
        }
        for size in SIZES
    }


def line_of(**planted: float) -> LatencyBandwidth:
    """The fit to such times."""
    line = fit(times(**planted))  # type: ignore[arg-type]
    assert line is not None
    return line


def share_held(estimates: Sequence[OverBlocks], truth: float, times: float = 1.0) -> float:
    """How often the truth lies between the limits, of intervals `times` as long."""
    reaches = [reach(cast("tuple[float, float]", (one.low, one.high)), truth) for one in estimates]
    return float(np.mean(np.array(reaches) <= times))


def test_without_noise_the_line_is_found_exactly() -> None:
    line = line_of()
    assert line.latency_s.value == pytest.approx(ALPHA_S)
    assert line.bandwidth == pytest.approx(BETA)
    assert line.blocks == 5
    assert [residual.size for residual in line.residuals] == list(SIZES)
    assert max(abs(residual.share.value) for residual in line.residuals) < 1e-9


@pytest.mark.parametrize(("noise", "drift"), [(0.05, 0.0), (0.02, 0.1)])
def test_intervals_hold_what_was_planted_as_often_as_they_say_and_shorter_they_would_not(
    noise: float, drift: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [line_of(noise=noise, drift=drift, seed=seed) for seed in range(400)]
    for estimates, truth in (
        ([line.latency_s for line in lines], ALPHA_S),
        ([line.seconds_a_byte for line in lines], 1 / BETA),
    ):
        assert share_held(estimates, truth, 0.8) < 0.92 < share_held(estimates, truth)
    assert sum(line.worst.beyond_doubt for line in lines) < 0.05 * len(lines)
    monkeypatch.setattr("harness.analysis.latency.MUCH", 0.0)
    assert sum(line.worst.beyond_doubt for line in lines) > 0.05 * len(lines), "one size of five, were little enough"


def test_a_size_that_is_on_no_line_is_named() -> None:
    line = line_of(noise=0.02, bend=1.6)
    assert line.worst.beyond_doubt
    assert line.worst.size == 2**16
    assert line.worst.share.value > 0.2


def test_limits_of_the_bandwidth_are_those_of_its_inverse() -> None:
    line = line_of(noise=0.05)
    low, high = line.bandwidth_limits
    assert line.seconds_a_byte.low is not None
    assert high == pytest.approx(1 / line.seconds_a_byte.low)
    assert low is not None
    assert line.bandwidth is not None
    assert low < line.bandwidth < (high or 0)


def test_where_larger_buffers_take_no_longer_there_is_no_bandwidth_but_a_lower_limit() -> None:
    flat = {size: {0: 1.0 + index / 100, 1: 1.0 - index / 90} for index, size in enumerate(SIZES)}
    line = fit(flat)
    assert line is not None
    assert line.bandwidth is None
    assert line.bandwidth_limits[0] is not None
    assert line.bandwidth_limits[1] is None


def test_of_one_block_there_is_a_line_without_an_interval() -> None:
    line = line_of(blocks=1)
    assert line.latency_s == OverBlocks(line.latency_s.value)
    assert line.bandwidth_limits == (None, None)
    assert not line.worst.beyond_doubt


def test_a_block_in_which_a_size_is_missing_is_left_out() -> None:
    some = times(noise=0.05)
    del some[2**20][3]
    line = fit(some)
    assert line is not None
    assert line.blocks == 4


def test_through_two_sizes_no_line_is_fitted_nor_through_none() -> None:
    some = times()
    assert fit({size: some[size] for size in SIZES[:2]}) is None
    assert fit({}) is None
    assert fit({size: {number: 1.0} for number, size in enumerate(SIZES)}) is None
