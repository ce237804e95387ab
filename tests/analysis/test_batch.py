"""Throughput against batch size, and the knee."""

import math

import pytest

from harness.analysis import summarise
from harness.analysis.batch import BatchCurve, batch_curves
from harness.analysis.ranking import references_of
from harness.record.trial import TrialRecord
from tests.synthetic import failed, make_cell, make_run

SIZES = (32, 64, 128, 256)


def curves(rates: dict[int, float], *, noise: float = 0.001, blocks: int = 4) -> tuple[BatchCurve, ...]:
    """The curves of a run whose throughput at each batch size is known."""

    def measured(trial: TrialRecord) -> TrialRecord:
        size = trial.cell.batch_size
        wobble = math.exp(noise * (-1) ** (trial.block + SIZES.index(size)))
        step = size / rates[size] * wobble
        return trial.model_copy(update={"step_time_s": step, "throughput_examples_per_s": size / step})

    cells = [make_cell("none", 1, size) for size in rates]
    work = summarise(*make_run(cells, blocks=blocks, faults=False, change=measured)).workloads[0]
    trials = [cell.trials for cell in work.cells]
    return batch_curves(trials, references_of(trials))


def test_the_knee_is_the_smallest_batch_that_no_larger_one_beats_by_more_than_3_percent() -> None:
    (curve,) = curves({32: 1000, 64: 1500, 128: 1600, 256: 1610})
    assert (curve.knee, curve.found) == (128, "found")
    assert [point.batch_size for point in curve.points] == list(SIZES)


def test_a_throughput_that_still_rises_has_no_knee() -> None:
    (curve,) = curves({32: 1000, 64: 1500, 128: 2000, 256: 2500})
    assert (curve.knee, curve.found) == (None, "rising")


def test_intervals_that_allow_both_leave_it_undecided() -> None:
    (curve,) = curves({32: 1000, 64: 1500, 128: 2000, 256: 2040}, noise=0.05)
    assert (curve.knee, curve.found) == (None, "undecided")


def test_one_trial_is_undecided() -> None:
    (curve,) = curves({32: 1000, 64: 1000}, blocks=1)
    assert (curve.knee, curve.found) == (None, "undecided")


def test_a_throughput_that_falls_has_its_knee_at_the_smallest() -> None:
    assert curves({32: 1000, 64: 900})[0].knee == 32


def test_gains_are_paired_and_over_the_batch_before() -> None:
    (curve,) = curves({32: 1000, 64: 1500})
    first, second = curve.points
    assert first.gain is None
    assert second.gain is not None
    assert second.gain.value == pytest.approx(1.5, rel=0.01)
    assert second.gain.method == "paired t"


def test_one_batch_size_or_one_that_was_not_measured_is_no_curve() -> None:
    cells = [make_cell("none", 1, 32), make_cell("none", 1, 64)]
    run = make_run(cells, faults=False, change=lambda r: failed(r, "crashed", "x") if r.cell.batch_size == 64 else r)
    trials = [cell.trials for cell in summarise(*run).workloads[0].cells]
    assert batch_curves(trials, references_of(trials)) == ()
