"""The order, the set that cannot be told apart from the best, and whether distributing pays."""

import numpy as np
import pytest

from harness.analysis import summarise
from harness.analysis.estimates.intervals import LogEstimate
from harness.analysis.ranking import payoff_of, trials_to_separate
from harness.record.trial import TrialRecord
from tests.comparisons import scaled
from tests.synthetic import failed, make_cell, make_run


def ratio(mean: float, error: float | None = 0.01) -> LogEstimate:
    return LogEstimate(mean, error, 3 if error is not None else None, None, 4, "paired t")


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ([ratio(0.5), ratio(-0.5)], "pays"),
        ([ratio(-0.4), ratio(-0.5)], "do_not_distribute"),
        ([ratio(0.005), ratio(-0.5)], "undecided"),
        ([ratio(0.5, None)], "cannot_know"),
        ([], "not_measured"),
    ],
)
def test_distributing_pays_when_one_cell_is_surely_faster(ratios: list[LogEstimate], verdict: str) -> None:
    assert payoff_of(ratios)[0] == verdict


def test_a_cell_that_is_clearly_slower_is_told_apart() -> None:
    work = summarise(*make_run()).workloads[0]
    assert work.ranking[0].place is not None
    assert work.ranking[0].place.against_best is None
    slowest = work.ranking[-1].place
    assert slowest is not None
    assert not slowest.with_best


def test_with_one_trial_each_nothing_can_be_told_apart() -> None:
    work = summarise(*make_run(blocks=1)).workloads[0]
    assert all(cell.place is not None and cell.place.with_best for cell in work.ranking)
    assert work.answer.verdict == "cannot_know"
    assert work.answer.throughput is not None
    assert not work.answer.throughput.known


def one_by_one(record: TrialRecord) -> TrialRecord:
    """As where one trial at a time is alive: none takes turns with another, and Welch's compares them."""
    return record.model_copy(update={"group": f"{record.group}-{record.cell_id}"})


def test_a_cell_of_one_good_trial_that_met_no_other_keeps_none_above_it_in_the_set() -> None:
    cells = [make_cell("none", 1, 32), *(make_cell("mirrored", 2, batch) for batch in (32, 128, 512))]

    def lost(record: TrialRecord) -> TrialRecord:
        good = record.cell != cells[0] or record.block == 0
        return one_by_one(record if good else failed(record, "crashed", "died"))

    work = summarise(*make_run(cells, drift=0.004, faults=False, change=lost)).workloads[0]
    assert work.answer.tied_ids == (cells[0].cell_id,), "nothing is known of it, and it is the slowest"
    assert work.ranking[-1].cell_id == cells[0].cell_id
    assert work.answer.simplest_id == work.answer.best_id, "it is not recommended either"


def test_a_noisy_cell_that_may_be_the_fastest_keeps_no_clearly_slower_one_above_it_in_the_set() -> None:
    cells = [make_cell("mirrored", 2, batch) for batch in (512, 256, 128, 64)]

    def noisy(record: TrialRecord) -> TrialRecord:
        last = record.cell == cells[3]
        return one_by_one(scaled(record, (0.3, 3.0, 0.5, 2.0)[record.block]) if last else record)

    work = summarise(*make_run(cells, drift=0.004, faults=False, change=noisy)).workloads[0]
    assert [cell.cell_id for cell in work.ranking] == [cell.cell_id for cell in cells]
    assert [cell.place is not None and cell.place.with_best for cell in work.ranking] == [True, False, False, True]


def test_groups_that_memory_made_are_compared_through_their_base() -> None:
    work = summarise(*make_run(groups=4, drift=0.3, noise=0.001)).workloads[0]
    halves = [
        cell.place.against_best.relative_half_width for cell in work.ranking if cell.place and cell.place.against_best
    ]
    assert max(half for half in halves if half is not None) < 0.02, "the drift of 30 % between groups is in none"
    assert work.ranking[0].label == "mirrored ×2 b128 reduction_to_one_device"


def test_when_every_distributed_cell_is_slower_the_answer_is_not_to_distribute() -> None:
    cells = [make_cell("none"), make_cell("mirrored", 2), make_cell("mirrored", 3)]
    answer = summarise(*make_run(cells, physical=1)).workloads[0].answer
    assert answer.verdict == "do_not_distribute"
    assert answer.shared
    assert answer.simplest_id == cells[0].cell_id


def test_of_engines_that_tie_the_faster_is_the_simplest_whatever_its_own_loop_is_called() -> None:
    cells = [
        make_cell("none"),
        make_cell("none", engine="jax", loop="jit"),
        make_cell("none", engine="jax", loop="jit", steps_per_execution=5),
    ]

    def change(record: TrialRecord) -> TrialRecord:
        first = (0.6, 1.1, 0.7, 1.2)[record.block]
        return scaled(record, {cells[0].cell_id: 1.0, cells[1].cell_id: 0.97}.get(record.cell_id, first))

    run = make_run(cells, noise=0.001, faults=False, change=change)
    work = summarise(*run).workloads[0]
    assert [cell.cell_id for cell in work.ranking] == [cell.cell_id for cell in reversed(cells)]
    assert len(work.answer.tied_ids) == 2
    assert work.answer.simplest_id == cells[1].cell_id


def test_a_difference_within_the_noise_is_undecided_and_says_how_many_trials_would_do() -> None:
    cells = [make_cell("none"), make_cell("mirrored", 2, 16)]
    answer = summarise(*make_run(cells, noise=0.05, seed=6)).workloads[0].answer
    assert answer.verdict == "undecided"
    assert answer.more_trials is None or answer.more_trials > 4


def test_distributing_does_not_pay_beside_an_interval_that_holds_1() -> None:
    cells = [make_cell("none"), *(make_cell("mirrored", n, batch) for n in (2, 3) for batch in (32, 128))]
    answer = summarise(*make_run(cells, noise=0.54, seed=6, faults=False)).workloads[0].answer
    assert answer.paying, "each by itself, some cells gain"
    assert answer.speed_up is not None
    assert answer.speed_up.low is not None
    assert answer.speed_up.low < 1
    assert answer.verdict == "undecided"


def test_the_trials_that_would_decide_are_by_the_limit_that_left_it_undecided() -> None:
    cells = [make_cell("none"), *(make_cell("mirrored", n, batch) for n in (2, 3) for batch in (32, 128))]
    answer = summarise(*make_run(cells, noise=0.45, seed=24, faults=False)).workloads[0].answer
    assert answer.verdict == "undecided"
    assert answer.more_trials == 12, "the limit of one cell alone, of which four were tried, would say 6"


def test_without_a_base_there_is_a_best_and_no_verdict() -> None:
    def no_base(record: TrialRecord) -> TrialRecord:
        return failed(record, "crashed", "died") if record.cell.strategy == "none" else record

    answer = summarise(*make_run(change=no_base)).workloads[0].answer
    assert answer.best_id is not None
    assert (answer.verdict, answer.speed_up) == ("not_measured", None)


def test_trials_to_separate_are_the_fewest_whose_interval_leaves_one_out() -> None:
    seen = ratio(0.02, 0.01)  # a deviation of 0.02 over four pairs
    needed = trials_to_separate(seen, 3.0)
    assert needed is not None
    for trials, separates in ((needed - 1, False), (needed, True)):
        assert bool(3.0 * 0.02 / np.sqrt(trials) <= 0.02 + 1e-12) == separates
    assert trials_to_separate(ratio(0.02), 1.0) == 5, "one more than there are, at least"


def test_more_comparisons_and_smaller_differences_need_more_trials() -> None:
    few, corrected = trials_to_separate(ratio(0.02), 3.0), trials_to_separate(ratio(0.02), 4.0)
    smaller = trials_to_separate(ratio(-0.01), 3.0)
    assert few is not None
    assert corrected is not None
    assert smaller is not None
    assert few < corrected
    assert few < smaller


def test_what_a_thousand_trials_would_not_separate_or_one_trial_cannot_tell_has_no_number() -> None:
    assert trials_to_separate(ratio(1e-5), 3.0) is None
    assert trials_to_separate(ratio(0.0), 3.0) is None
    assert trials_to_separate(ratio(0.02, None), None) is None
