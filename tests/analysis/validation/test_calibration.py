"""Figures of a validation that come out wrong when its intervals, its noise or its plants are."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from harness.analysis.comparison.clocks import Verdicts
from harness.analysis.estimates.verdict import Margins, invalid
from harness.analysis.validation.calibration import holding, plant_sizes, spreads
from harness.analysis.validation.decisions import Decided, decisions_of
from harness.analysis.validation.summary import validation_of
from harness.record.manifest import RunManifest
from harness.record.trial import Plant, TrialRecord
from harness.record.validation import PlantSize, ValidationRecord
from tests.analysis.noises import as_seen, heavy_tailed, normal, scaled
from tests.comparisons import MIRRORED
from tests.validations import Arm, Round, slow, validation_run

BLOCKS = 8
DEVIATION = 0.015


def drawn(seed: int, decisions: int, offset: float = 0.0) -> list[list[float]]:
    """Log ratios of decisions whose blocks scatter by 1.5 % and that lie `offset` (standard deviation) apart."""
    noise = np.random.default_rng(seed)
    moved = noise.normal(0, offset, (decisions, 1)) if offset else np.zeros((decisions, 1))
    found: list[list[float]] = (noise.normal(0, DEVIATION, (decisions, BLOCKS)) + moved).tolist()
    return found


def again(values: Sequence[Sequence[float]]) -> ValidationRecord:
    return validation_of(validation_run([Round([Arm(logs)], pilot=len(logs)) for logs in values]))


def test_how_many_intervals_hold_what_is_there_is_counted() -> None:
    wiggle = (0.001, -0.001, 0.0005, -0.0005, 0.0008, -0.0008)
    off, on = [0.004 + value for value in wiggle], list(wiggle)
    [effect] = again([off, on, on]).effects
    assert effect.holds is not None
    assert (effect.holds.count, effect.holds.of) == (2, 3)


def test_independent_blocks_hold_0_and_scatter_as_predicted() -> None:
    record = again(drawn(1, 100))
    [effect], [spread] = record.effects, record.spreads
    assert effect.holds is not None
    assert effect.holds.low <= 0.95 <= effect.holds.high
    assert not spread.contradicted
    assert spread.decisions == 100
    assert spread.predicted == pytest.approx(DEVIATION / math.sqrt(BLOCKS), rel=0.1)


def test_decisions_that_lie_further_apart_than_their_blocks_say_are_found() -> None:
    """As where each decision has a memory layout of its own: no false alarm, and intervals that are too narrow."""
    record = again(drawn(2, 100, offset=0.005))
    [effect], [spread] = record.effects, record.spreads
    assert effect.false_alarms is not None
    assert effect.false_alarms.count <= 2
    assert effect.holds is not None
    assert effect.holds.high < 0.95
    assert spread.contradicted
    assert spread.low > 1


# what the figures hold, simulated


@dataclass(frozen=True)
class Simulated(Decided):
    """A decision that is made of its log ratios, without the trials behind them: the figures look at nothing else."""

    logs: tuple[float, ...] = ()
    plant_share: float = 0.0

    @property
    def values(self) -> tuple[float, ...]:
        return self.logs

    @property
    def unchosen(self) -> tuple[float, ...]:
        return self.logs

    @property
    def truth(self) -> float:
        return -math.log1p(self.plant_share)


def simulated(logs: Sequence[float], share: float = 0.0) -> Simulated:
    """Of log ratios about 0, with something planted that takes `share` longer."""
    plant = Plant(kind="device_work", share=share) if share else None
    there = tuple(value - math.log1p(share) for value in logs)
    return Simulated(0, MIRRORED, plant, None, UNJUDGED, (), 0.0, logs=there, plant_share=share)


UNJUDGED = Verdicts(invalid("simulated", Margins()))
Draw = Callable[[np.random.Generator, int, int], NDArray[np.float64]]
SETS: dict[Draw, int] = {normal: 3000, heavy_tailed: 1000, as_seen: 700}
"""Simulated validations of twenty decisions each, fewer where each pair is made of its windows."""
each_noise = pytest.mark.parametrize("noise", SETS)


@functools.cache
def sets(noise: Draw) -> list[list[list[float]]]:
    """The log ratios of their blocks."""
    logs = noise(np.random.default_rng(10), SETS[noise] * 20, BLOCKS)
    scattered: list[list[list[float]]] = (DEVIATION * logs / logs.std()).reshape(-1, 20, BLOCKS).tolist()
    return scattered


def least(share: float, of: int, errors: float = 3) -> float:
    """What a true share comes to at least: in 999 of 1,000 such simulations, of two errors in 98 of 100."""
    return share - errors * math.sqrt(share * (1 - share) / of)


@each_noise
def test_the_intervals_of_decisions_hold_what_is_there_95_times_in_100_and_a_fifth_shorter_they_would_not(
    noise: Draw,
) -> None:
    rows = [row for decisions in sets(noise)[:200] for row in decisions]
    right, shorter = (holding([simulated(scaled(row, times)) for row in rows]) for times in (1, 0.8))
    assert shorter.count / shorter.of < least(0.95, right.of) <= right.count / right.of <= 0.98


@each_noise
def test_the_interval_of_the_spread_holds_1_95_times_in_100_and_a_shorter_one_would_not(noise: Draw) -> None:
    # normal ones hold 1 95 times in 100, and a fifth shorter 89. Heavy tails make it wider: it holds 97 times, a fifth
    # shorter 90 to 93, and six tenths of it, which are found out, 80 to 85
    times = 0.8 if noise is normal else 0.6
    held = []
    for rows in sets(noise):
        [spread] = spreads([simulated(row) for row in rows])
        lower, upper = (spread.ratio * (end / spread.ratio) ** times for end in (spread.low, spread.high))
        held.append((not spread.contradicted, lower <= 1 <= upper))
    right, shorter = np.mean(held, axis=0)
    assert shorter < least(0.95, len(held)) <= right
    assert right <= (0.96 if noise is normal else 0.98)


@each_noise
def test_the_interval_of_a_plants_size_holds_what_is_stated_93_times_in_100_and_a_fifth_shorter_it_would_not(
    noise: Draw,
) -> None:
    held = []
    for rows in sets(noise)[:1000]:
        [size] = plant_sizes([simulated(row, share) for row, share in zip(rows, [0.03, 0.10] * 10, strict=True)])
        assert size.low is not None
        held.append((not size.missed, abs(size.ratio - 1) <= 0.8 * (size.ratio - size.low)))
    right, shorter = np.mean(held, axis=0)
    assert shorter < least(0.93, len(held), errors=2) <= right


def planted(ratio: float, noise: float = 0.0005) -> PlantSize:
    """Sixteen decisions on a slow-down of 3 or 10 % that comes to `ratio` of what is stated."""
    shift = np.random.default_rng(3).normal(0, noise, (16, BLOCKS))
    rounds = [
        Round([slow("device_work", share, [*(-ratio * math.log1p(share) + row)])], pilot=BLOCKS)
        for row, share in zip(shift, [0.03, 0.10] * 8, strict=True)
    ]
    [size] = validation_of(validation_run(rounds)).plants
    return size


def test_a_plant_that_comes_to_another_size_than_stated_has_missed_it() -> None:
    right, small = planted(1.0), planted(0.9)
    assert (right.missed, small.missed) == (False, True)
    assert (right.counted, small.counted) == (True, False)
    assert right.ratio == pytest.approx(1.0, abs=0.01)
    assert small.ratio == pytest.approx(0.9, abs=0.01)
    assert right.decisions == right.holds.of == 16
    assert right.holds.count > 12
    assert small.holds.count == 0


def test_one_decision_cannot_tell_whether_a_plant_has_its_size() -> None:
    [size] = validation_of(validation_run([Round([slow("input_stall", 0.03, [-0.05, -0.051, -0.049] * 2)])])).plants
    assert (size.low, size.high, size.missed, size.counted) == (None, None, False, False)


def test_where_a_decision_stopped_is_not_in_its_calibration() -> None:
    """Of decisions that stop once they are near 0 all later means are near it: the first look's blocks tell."""
    [one] = decisions_of(*_with(drawn(5, 1)[0]))
    early = replace(one, fixed=frozenset(pair.block for pair in one.pairs[:3]))
    assert early.unchosen == one.values[:3]
    assert one.unchosen == one.values
    [spread] = spreads([early])
    assert spread.observed == pytest.approx(abs(sum(one.values[:3]) / 3))


def _with(logs: Sequence[float]) -> tuple[RunManifest, Sequence[TrialRecord]]:
    run = validation_run([Round([Arm(logs)], pilot=len(logs))])
    return run.manifest, run.trials
