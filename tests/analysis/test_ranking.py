"""The order, the set that cannot be told apart from the best, and whether distributing pays."""

import numpy as np
import pytest
from scipy import stats

from harness.analysis import summarise
from harness.analysis.estimates.drift import adjusted_means
from harness.analysis.estimates.intervals import LogEstimate, Sample
from harness.analysis.ranking import benjamini_hochberg, judge, trials_to_separate
from harness.record.trial import TrialRecord
from tests.synthetic import failed, make_cell, make_run


def ratio(mean: float, error: float | None = 0.01) -> LogEstimate:
    return LogEstimate(mean, error, 3 if error is not None else None, None, 4, "paired t")


def test_benjamini_hochberg_is_scipys() -> None:
    chance = np.random.default_rng(0)
    p_values = [float(p) for p in chance.uniform(0, 0.2, 30)]
    assert benjamini_hochberg(p_values) == pytest.approx(list(stats.false_discovery_control(p_values)))
    assert benjamini_hochberg([]) == []


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
    assert judge(ratios)[0] == verdict


def test_the_truly_fastest_cell_stays_among_the_best_at_least_95_times_in_100() -> None:
    kept, rounds = 0, 300
    cells = [make_cell(f"s{index}", 1) for index in range(8)]
    for seed in range(rounds):
        # all eight have the same truth: the first is as good a "truly fastest" as any
        run = make_run(cells, seed=seed, noise=0.02, faults=False, windows=5)
        place = summarise(*run).cells[0].place
        kept += place is not None and place.with_best
    assert kept / rounds >= 0.95


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


def test_a_lost_trial_in_a_slow_block_does_not_lift_a_cell_in_the_order() -> None:
    groups = ("a", "b", "c")
    drift = {"a": 0.0, "b": 0.0, "c": -0.5}
    full = Sample(tuple(1.0 + drift[g] for g in groups), groups)
    lossy = Sample(tuple(0.9 + drift[g] for g in groups[:2]), groups[:2])
    assert lossy.mean > full.mean
    adjusted = adjusted_means({"full": full, "lossy": lossy})
    assert adjusted["full"] - adjusted["lossy"] == pytest.approx(0.1)


def test_when_all_cells_ran_in_all_groups_the_adjusted_means_are_the_means() -> None:
    samples = {"a": Sample((1.0, 2.0), ("g", "h")), "b": Sample((1.5, 2.1), ("g", "h"))}
    assert adjusted_means(samples) == pytest.approx({name: sample.mean for name, sample in samples.items()})
    assert adjusted_means({}) == {}


def test_groups_that_memory_made_are_compared_through_their_base() -> None:
    work = summarise(*make_run(groups=4, drift=0.3, noise=0.001)).workloads[0]
    methods = {cell.place.against_best.method for cell in work.ranking if cell.place and cell.place.against_best}
    assert "paired t through the base" in methods
    assert "Welch t" not in methods
    assert work.ranking[0].label == "mirrored ×2 b128 reduction_to_one_device"


def test_when_every_distributed_cell_is_slower_the_answer_is_not_to_distribute() -> None:
    cells = [make_cell("none"), make_cell("mirrored", 2), make_cell("mirrored", 3)]
    answer = summarise(*make_run(cells, physical=1)).workloads[0].answer
    assert answer.verdict == "do_not_distribute"
    assert answer.shared
    assert answer.simplest_id == cells[0].cell_id


def test_a_difference_within_the_noise_is_undecided_and_says_how_many_trials_would_do() -> None:
    cells = [make_cell("none"), make_cell("mirrored", 2, 16)]
    answer = summarise(*make_run(cells, noise=0.05, seed=6)).workloads[0].answer
    assert answer.verdict == "undecided"
    assert answer.more_trials is None or answer.more_trials > 4


def test_without_a_base_there_is_a_best_and_no_verdict() -> None:
    def no_base(record: TrialRecord) -> TrialRecord:
        return failed(record, "crashed", "died") if record.cell.strategy == "none" else record

    answer = summarise(*make_run(change=no_base)).workloads[0].answer
    assert answer.best_id is not None
    assert (answer.verdict, answer.speed_up) == ("not_measured", None)


def test_trials_to_separate_are_the_fewest_whose_interval_leaves_one_out() -> None:
    seen = ratio(0.02, 0.01)  # a deviation of 0.02 over four pairs
    needed = trials_to_separate(seen, 0.95)
    assert needed is not None
    for trials, separates in ((needed - 1, False), (needed, True)):
        half = stats.t.ppf(0.975, trials - 1) * 0.02 / np.sqrt(trials)
        assert bool(half <= 0.02) == separates


def test_more_comparisons_and_smaller_differences_need_more_trials() -> None:
    few, corrected = trials_to_separate(ratio(0.02), 0.95), trials_to_separate(ratio(0.02), 0.999)
    smaller = trials_to_separate(ratio(-0.01), 0.95)
    assert few is not None
    assert corrected is not None
    assert smaller is not None
    assert few < corrected
    assert few < smaller


def test_what_a_thousand_trials_would_not_separate_or_one_trial_cannot_tell_has_no_number() -> None:
    assert trials_to_separate(ratio(1e-5), 0.95) is None
    assert trials_to_separate(ratio(0.0), 0.95) is None
    assert trials_to_separate(ratio(0.02, None), 0.95) is None
