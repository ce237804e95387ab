"""α + S/β fitted to times: what was planted is found within its interval, and what is no line is told to be none."""

from collections.abc import Sequence
from typing import cast

import numpy as np
import pytest

from harness.analysis.latency import LatencyBandwidth, OverBlocks, Piece, fit
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


def line_of(**planted: float) -> Piece:
    """The one line that is fitted to such times."""
    return only(fit(times(**planted)))  # type: ignore[arg-type]


def only(fitted: LatencyBandwidth | None) -> Piece:
    """Its one piece."""
    assert fitted is not None
    [piece] = fitted.pieces
    return piece


def share_held(estimates: Sequence[OverBlocks], truth: float, times: float = 1.0) -> float:
    """How often the truth lies between the limits, of intervals `times` as long."""
    reaches = [reach(cast("tuple[float, float]", (one.low, one.high)), truth) for one in estimates]
    return float(np.mean(np.array(reaches) <= times))


def test_without_noise_the_line_is_found_exactly() -> None:
    line = line_of()
    assert line.latency_s.value == pytest.approx(ALPHA_S)
    assert line.bandwidth == pytest.approx(BETA)
    assert len(line.lines) == 5
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
    line = only(fit(flat))
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


@pytest.mark.parametrize(("lacking", "blocks", "sizes"), [(2, 3, SIZES), (3, 5, SIZES[:-1])])
def test_a_size_that_fewer_than_half_of_the_blocks_have_takes_no_other_block_with_it(
    lacking: int, blocks: int, sizes: Sequence[int]
) -> None:
    some = times(noise=0.05)
    for block in range(lacking):
        del some[2**24][block]
    line = fit(some)
    assert line is not None
    assert (line.blocks, line.sizes) == (blocks, sizes)


def test_of_three_sizes_none_is_left_out_for_lack_of_blocks() -> None:
    three = {size: of for size, of in times(noise=0.05).items() if size in SIZES[-3:]}
    three[SIZES[-1]] = {0: three[SIZES[-1]][0]}
    line = fit(three)
    assert line is not None
    assert (line.blocks, line.sizes) == (1, tuple(SIZES[-3:]))


def test_through_two_sizes_no_line_is_fitted_nor_through_none() -> None:
    some = times()
    assert fit({size: some[size] for size in SIZES[:2]}) is None
    assert fit({}) is None
    assert fit({size: {number: 1.0} for number, size in enumerate(SIZES)}) is None


# several pieces

MANY = tuple(4**power for power in range(1, 13))
"""4 B to 16 MiB."""
Planted = Sequence[tuple[int, float, float]]
"""Of each piece (its largest size, α, 1/β)."""
LINE = ((4**12, 2e-4, 1e-9),)
TWO = ((4**8, 2e-4, 1e-8), (4**12, 1.4e-3, 1e-9))
THREE = ((4**5, 2e-4, 1e-9), (4**8, 3e-4, 1e-8), (4**12, 1.4e-3, 1e-9))


def cut(noise: float, seed: int, pieces: Planted = TWO, drift: float = 0.1) -> dict[int, dict[int, float]]:
    """Times of five blocks by such pieces."""
    draw = np.random.default_rng(seed)
    speeds = np.exp(draw.normal(0, drift, 5))
    found: dict[int, dict[int, float]] = {}
    for size in MANY:
        alpha, slope = next((alpha, slope) for largest, alpha, slope in pieces if size <= largest)
        noises = speeds * np.exp(draw.normal(0, noise, 5))
        found[size] = {block: (alpha + slope * size) * float(noises[block]) for block in range(5)}
    return found


def fitted(noise: float, seed: int, pieces: Planted = TWO, drift: float = 0.1) -> LatencyBandwidth:
    """The fit to `cut`."""
    found = fit(cut(noise, seed, pieces, drift))
    assert found is not None
    return found


def ends(of: LatencyBandwidth) -> list[tuple[int, int]]:
    """The range of each piece."""
    return [(piece.smallest, piece.largest) for piece in of.pieces]


def test_pieces_are_found_where_they_were_planted_with_their_lines() -> None:
    for planted in (LINE, TWO, THREE):
        found = fitted(1e-6, 1, planted, drift=0.0)
        assert len(found.pieces) == len(planted)
        for piece, (_, alpha, slope) in zip(found.pieces, planted, strict=True):
            assert piece.latency_s.value == pytest.approx(alpha, rel=1e-3)
            assert piece.seconds_a_byte.value == pytest.approx(slope, rel=1e-3)


@pytest.mark.parametrize("noise", [0.01, 0.03])
def test_intervals_of_pieces_hold_what_was_planted_as_often_as_they_say(noise: float) -> None:
    found = [fitted(noise, seed) for seed in range(200)]
    right = [one for one in found if ends(one) == [(4, 4**8), (4**9, 4**12)]]
    assert len(right) > 0.9 * len(found)
    assert share_held([one.latency_s for one in found], TWO[0][1]) > 0.91
    assert share_held([one.seconds_a_byte for one in found], TWO[1][2]) > 0.91
    assert share_held([one.latency_s for one in found], TWO[0][1], 0.7) < 0.91


def test_one_line_is_cut_in_no_more_than_one_of_twenty(monkeypatch: pytest.MonkeyPatch) -> None:
    def cuts() -> float:
        return float(np.mean([len(fitted(0.1, seed, LINE).pieces) > 1 for seed in range(200)]))

    assert cuts() < 0.03
    monkeypatch.setattr("harness.analysis.latency.MUCH", 0.0)
    assert cuts() < 0.08, "the F test alone"
    monkeypatch.setattr("harness.analysis.latency.FALSE_CUTS", 1.0)
    assert cuts() > 0.15, "what it is there for"


def test_what_bends_by_little_is_one_line() -> None:
    slight = ((4**8, 2e-4, 1e-9), (4**12, 2.1e-4, 1.05e-9))
    assert len(fitted(0.002, 1, slight).pieces) == 1


def test_of_too_few_sizes_or_one_block_there_is_one_line_that_does_not_hold_or_is_not_known_to() -> None:
    bent = cut(0.01, 1)
    few = {size: bent[size] for size in (4, 4**5, 4**8, 4**9, 4**12)}
    assert only(fit(few)).worst.beyond_doubt
    assert not only(fit({size: {0: of[0]} for size, of in bent.items()})).worst.beyond_doubt


def test_between_two_pieces_a_size_lies_on_the_line_that_joins_them_and_beyond_all_on_the_nearest() -> None:
    found = fitted(1e-9, 1, drift=0.0)
    below, above = (alpha + slope * size for (_, alpha, slope), size in zip(TWO, (4**8, 4**9), strict=True))
    assert found.at(4**8) == pytest.approx(below, rel=1e-6)
    assert found.at((4**8 + 4**9) // 2) == pytest.approx((below + above) / 2, rel=1e-6)
    assert found.at(4**9) == pytest.approx(above, rel=1e-6)
    assert found.at(4**13) == pytest.approx(TWO[1][1] + TWO[1][2] * 4**13, rel=1e-6)
    assert found.at(0) == pytest.approx(TWO[0][1], rel=1e-6)


def test_buffers_one_after_the_other_take_what_each_takes_with_an_interval_over_blocks() -> None:
    found = fitted(0.01, 1)
    both = found.taken([4**5, 4**12])
    assert both.value == pytest.approx(found.at(4**5) + found.at(4**12))
    assert both.low is not None
    assert both.low < both.value
