"""The decision of an `ab` run: pairs, both stages, what is invalid, and what cannot be known."""

import math
import statistics
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from harness.analysis import summarise
from harness.analysis.comparison import comparison_of_ab
from harness.analysis.estimates.verdict import Judgement, Margins
from harness.analysis.summary import planned_trials
from harness.errors import StorageError, UsageError
from harness.record import Run, TrialRecord
from harness.record.manifest import ComparisonRecord, PlanRecord
from harness.report.comparison.words import headline
from tests.comparisons import MIRRORED, ab_run, sweep_run, validation
from tests.synthetic import WRONG_EVIDENCE, WRONG_REASON, failed, make_cell, unproved, warming

NOISE = tuple(float(value) for value in np.random.default_rng(7).normal(0.0, 0.004, 12))


def slower_by(share: float, blocks: int = 8) -> list[float | None]:
    return [value - math.log1p(share) for value in NOISE[:blocks]]


def wall_of(run: Run) -> Judgement:
    return comparison_of_ab(run).rows[0].verdicts.wall


def changed(run: Run, side: str, block: int, status: str, reason: str, **more: object) -> Run:
    def change(trial: TrialRecord) -> TrialRecord:
        here = (trial.side, trial.block) == (side, block)
        return failed(trial, status, reason, **more) if here else trial  # type: ignore[arg-type]

    return replace(run, trials=[change(trial) for trial in run.trials])


def test_sides_are_paired_over_blocks_so_that_drift_cancels() -> None:
    differences = slower_by(0.05)
    comparison = comparison_of_ab(ab_run(differences))
    wall = comparison.rows[0].verdicts.wall
    expected = stats.ttest_1samp(np.array(differences), 0.0).confidence_interval(0.95)
    assert wall.estimate is not None
    assert wall.estimate.log_bounds() == pytest.approx((expected.low, expected.high))
    assert (wall.estimate.method, comparison.blocks, comparison.verdict) == ("paired t", 8, "slower")
    assert wall.noise == pytest.approx(np.std(np.array(differences), ddof=1))
    assert comparison.exit_code() == 1


def test_the_same_thing_twice_is_equivalent() -> None:
    assert wall_of(ab_run(list(NOISE))).verdict == "equivalent"


def test_after_a_second_stage_the_interval_keeps_the_pilots_deviation_and_freedom() -> None:
    differences = [*NOISE[:6], 0.05, -0.05, 0.06]
    estimate = wall_of(ab_run(differences, pilot=6)).estimate
    assert estimate is not None
    assert (estimate.method, estimate.count, estimate.degrees_of_freedom) == ("Stein t", 9, 5)
    assert estimate.deviation == pytest.approx(np.std(np.array(NOISE[:6]), ddof=1))
    assert estimate.mean == pytest.approx(np.mean(differences))


def test_a_pilot_of_one_complete_pair_planned_nothing_and_every_pair_counts() -> None:
    estimate = wall_of(ab_run([0.01, None, None, *NOISE[:5]], pilot=3)).estimate
    assert estimate is not None
    assert (estimate.method, estimate.count) == ("paired t", 6)


def test_processor_time_is_judged_beside_wall_time() -> None:
    comparison = comparison_of_ab(ab_run(slower_by(0.05), cpu=list(NOISE)))
    verdicts = comparison.rows[0].verdicts
    assert (verdicts.wall.verdict, verdicts.cpu_verdict) == ("slower", "equivalent")
    assert "waits more" in (verdicts.disagreement or "")


def test_without_processor_time_in_every_trial_there_is_no_second_clock() -> None:
    run = ab_run(slower_by(0.05))
    first = run.trials[0].model_copy(update={"cpu_seconds_per_example": 0.0})
    verdicts = comparison_of_ab(replace(run, trials=[first, *run.trials[1:]])).rows[0].verdicts
    assert verdicts.cpu is None
    assert verdicts.wall.verdict == "slower"


@pytest.mark.parametrize(("side", "code"), [("a", 4), ("b", 1)])
def test_one_wrong_trial_makes_the_comparison_invalid_and_names_the_side_and_the_evidence(side: str, code: int) -> None:
    run = ab_run(slower_by(0.05))
    checks = run.trials[0].checks.model_copy(update={"reduction": False, "detail": WRONG_EVIDENCE})
    comparison = comparison_of_ab(changed(run, side, 3, "wrong_result", WRONG_REASON, phase="check", checks=checks))
    wall = comparison.rows[0].verdicts.wall
    assert (wall.verdict, wall.ratio, comparison.exit_code()) == ("invalid", None, code)
    assert (wall.reason or "").startswith(f"{side.upper()} gave a wrong result (1 of 8 trials): {WRONG_REASON}")
    assert WRONG_EVIDENCE["update"] in (wall.reason or "")


@pytest.mark.parametrize(("sides", "code"), [("ab", 0), ("b", 3), ("a", 0)])
def test_unproved_sides_are_decided_and_marked_and_a_proof_that_b_lost_counts_if_strict(sides: str, code: int) -> None:
    run = ab_run(slower_by(-0.05))
    blind = [unproved(trial) if trial.side in sides else trial for trial in run.trials]
    comparison = comparison_of_ab(replace(run, trials=blind))
    assert (comparison.verdict, comparison.exit_code(), comparison.exit_code(strict=True)) == ("faster", 0, code)
    assert headline(comparison).startswith("faster (unproved): ")
    why = f"{sides[-1].upper()} is unproved (sight: a missing replica would be 0.5 of what is allowed): the verdict is"
    assert any(remark.startswith(why) for remark in comparison.remarks)


def test_a_side_without_a_good_trial_is_invalid_with_its_reason() -> None:
    run = ab_run(slower_by(0.05, 3))
    for block in range(3):
        run = changed(run, "b", block, "crashed", "the process died of signal 11")
    reason = wall_of(run).reason
    assert reason == "B crashed in phase 'build' (3 of 3 trials): the process died of signal 11"


def test_sides_that_were_never_alive_together_give_no_pair_and_no_verdict() -> None:
    run = ab_run(slower_by(0.05))
    apart = [t.model_copy(update={"group": f"{t.group}-{t.side}"}) for t in run.trials]
    comparison = comparison_of_ab(replace(run, trials=apart))
    assert comparison.verdict == "invalid"
    assert "no block gave a pair" in (comparison.rows[0].verdicts.wall.reason or "")
    assert any("not alive together" in remark for remark in comparison.remarks)


def test_one_pair_cannot_know() -> None:
    wall = wall_of(ab_run([-0.5]))
    assert wall.verdict == "undecided"
    assert "cannot be known" in (wall.reason or "")


def test_blocks_that_gave_no_pair_are_remarked_with_the_reason() -> None:
    run = changed(ab_run([*slower_by(0.05), None, None]), "b", 2, "crashed", "the process died of signal 11")
    comparison = comparison_of_ab(run)
    assert comparison.blocks == 7
    said = " ".join(comparison.remarks)
    assert "Block 2 gave no pair: B ended crashed (the process died of signal 11)." in said
    assert "Blocks 8 and 9 gave no pair: not run." in said


def test_the_margins_are_those_that_were_planned_unless_others_are_given() -> None:
    run = ab_run(list(NOISE), delta=0.02, epsilon=0.05, margins_source="the command line")
    planned = comparison_of_ab(run)
    assert planned.margins == Margins(0.02, 0.05, "the command line")
    assert not any("chosen after it was measured" in remark for remark in planned.remarks)
    other = comparison_of_ab(run, Margins(0.0, 0.03))
    assert any("chosen after it was measured" in remark for remark in other.remarks)


def test_a_validation_of_the_machine_is_cited_and_its_absence_remarked() -> None:
    run = ab_run(list(NOISE))
    assert any("python -m harness validate" in remark for remark in comparison_of_ab(run).remarks)
    cited = comparison_of_ab(run, validation=validation(paired=0.008))
    assert cited.validation is not None
    assert not any("harness validate" in remark for remark in cited.remarks)


def test_what_sets_the_sides_environments_apart_is_named() -> None:
    run = ab_run(list(NOISE))
    record = run.manifest.comparison
    assert record is not None
    a, b = record.sides
    b = b.model_copy(update={"versions": {"tensorflow": "2.22.0"}, "environment": {"TF_ENABLE_ONEDNN_OPTS": "0"}})
    a = a.model_copy(update={"versions": {"tensorflow": "2.21.0"}})
    manifest = run.manifest.model_copy(update={"comparison": record.model_copy(update={"sides": [a, b]})})
    found = comparison_of_ab(replace(run, manifest=manifest))
    assert [(str(change), change.severity) for change in found.changes] == [
        ("version.tensorflow: 2.21.0 → 2.22.0", "note"),
        ("env.TF_ENABLE_ONEDNN_OPTS: unknown → 0", "asked"),
    ]
    assert [change.key for change in found.unasked] == ["version.tensorflow"], "what was asked for is no warning"


def test_sides_of_two_cells_are_named_by_both() -> None:
    other = make_cell("mirrored", 2, op="nccl")
    comparison = comparison_of_ab(ab_run(slower_by(0.05), cells=(MIRRORED, other)))
    assert comparison.rows[0].name == "mirrored ×2 b32 → mirrored ×2 b32 nccl"
    assert comparison.rows[0].b.cell == other


def test_a_manifest_or_a_record_that_contradicts_itself_is_an_error() -> None:
    run = ab_run(list(NOISE), delta=0.05, epsilon=0.03)
    with pytest.raises(StorageError, match=r"run\.json: comparison: epsilon: given 0\.03"):
        comparison_of_ab(run)
    run = ab_run(list(NOISE))
    other = make_cell("mirrored", 2, op="nccl")
    strange = run.trials[1].model_copy(update={"cell": other, "cell_id": other.cell_id})
    with pytest.raises(StorageError, match=r"side b is cell .* the records were edited"):
        comparison_of_ab(replace(run, trials=[run.trials[0], strange, *run.trials[2:]]))
    with pytest.raises(StorageError, match="2 good trials"):
        comparison_of_ab(replace(run, trials=[*run.trials, run.trials[0]]))
    with pytest.raises(StorageError, match="is not in its cells"):
        comparison_of_ab(replace(run, manifest=run.manifest.model_copy(update={"cells": []})))
    record = run.manifest.comparison
    assert record is not None
    twice = record.model_copy(update={"sides": [record.sides[0]] * 2})
    with pytest.raises(StorageError, match="one side a and one side b"):
        comparison_of_ab(replace(run, manifest=run.manifest.model_copy(update={"comparison": twice})))


def test_a_sweep_is_no_ab_run() -> None:
    with pytest.raises(UsageError, match="--along AXIS"):
        comparison_of_ab(sweep_run("run-a"))


def test_an_ab_run_without_a_trial_is_invalid_and_not_an_error() -> None:
    comparison = comparison_of_ab(replace(ab_run([0.0, 0.0]), trials=[]))
    assert comparison.verdict == "invalid"
    assert comparison.rows[0].verdicts.wall.reason == "A and B alike never ran it"
    assert comparison.rows[0].a.planned == 2


def test_a_summary_of_an_ab_run_counts_what_its_plan_holds() -> None:
    run = ab_run(list(NOISE[:4]))
    assert planned_trials(run.manifest) == {MIRRORED.cell_id: 8}
    summary = summarise(run.manifest, run.trials)
    assert (summary.trials, summary.planned) == (8, 8)


# looks


CLEAR = [-0.06, -0.062, -0.058, -0.061, -0.06]
UNCLEAR = [0.3, -0.3, 0.2, -0.2, 0.1]


@pytest.mark.parametrize(
    ("of_b", "said"),
    [
        (
            {"initial_weights": "other", "unlike": {"compiler": "XLA", "layout": "channels first"}},
            "Not like with like: compiler and initialisation differ. "
            "jax does otherwise than TensorFlow: compiler XLA; layout channels first.",
        ),
        ({}, ""),
    ],
)
def test_of_two_engines_it_says_what_differs_beside_speed_and_what_it_does_not_tell_and_their_versions_are_asked_for(
    of_b: dict[str, object], said: str
) -> None:
    run = ab_run(slower_by(0.05), cells=(MIRRORED, MIRRORED.model_copy(update={"engine": "jax"})))

    def ran(trial: TrialRecord) -> TrialRecord:
        told = {"initial_weights": "drawn", **(of_b if trial.side == "b" else {})}
        return trial.model_copy(update={"executed": trial.executed.model_copy(update=told)})

    a, b = run.manifest.part(ComparisonRecord).sides
    of_jax = {"sweep": b.sweep.model_copy(update={"engine": ["jax"]}), "versions": {"jax": "0.10", "python": "3.12"}}
    sides = [a.model_copy(update={"versions": {"python": "3.11"}}), b.model_copy(update=of_jax)]
    record = run.manifest.part(ComparisonRecord).model_copy(update={"sides": sides})
    manifest = run.manifest.model_copy(update={"comparison": record})
    comparison = comparison_of_ab(replace(run, manifest=manifest, trials=[ran(trial) for trial in run.trials]))
    name = comparison.rows[0].name
    assert [one for one in comparison.remarks if "like with like" in one] == ([f"{name}: {said}"] if said else [])
    assert "The comparison is of this model, batch and machine" in comparison.remarks[-1]
    assert {change.severity for change in comparison.changes} == {"asked"}
    assert "this model, batch and machine" not in " ".join(comparison_of_ab(ab_run(slower_by(0.05))).remarks)


LOOKS = (5, 8, 12)


def under_way(differences: list[float], status: str = "interrupted", live: bool = False) -> Run:
    """A run with looks that holds so many blocks."""
    run = ab_run(differences, looks=LOOKS)
    return replace(run, manifest=run.manifest.model_copy(update={"status": status}), live=live)


@pytest.mark.parametrize(("status", "live"), [("interrupted", False), ("running", True), ("finished", True)])
def test_before_the_first_look_there_is_no_verdict_however_clear_it_looks(status: str, live: bool) -> None:
    comparison = comparison_of_ab(under_way(CLEAR[:4], status, live))
    wall = comparison.rows[0].verdicts.wall
    assert (wall.verdict, wall.ratio, comparison.blocks) == ("undecided", None, 0)
    assert wall.reason == "no verdict before the first look, which is after 5 blocks"
    assert comparison.exit_code() == 0
    assert comparison.exit_code(strict=True) == 3


def test_a_run_whose_time_was_over_before_its_first_look_is_judged_once_by_what_it_has() -> None:
    comparison = comparison_of_ab(under_way(CLEAR[:4], "finished"))
    alone = comparison_of_ab(ab_run(CLEAR[:4], looks=(4,)))
    assert comparison.rows[0].verdicts == alone.rows[0].verdicts
    assert (comparison.verdict, comparison.blocks) == ("slower", 4)
    words = "It was over before its first look, after 5 blocks: the 4 pairs it has are judged, once."
    assert words in comparison.remarks
    assert comparison_of_ab(under_way(CLEAR[:1], "finished")).verdict == "undecided"


def test_between_two_looks_it_says_what_the_completed_one_did_and_no_more() -> None:
    at_look, later = comparison_of_ab(under_way(UNCLEAR)), comparison_of_ab(under_way([*UNCLEAR, -0.9, -0.9]))
    assert later.rows[0].verdicts == at_look.rows[0].verdicts
    assert later.blocks == 5
    assert "Not decided at look 1 of 3, after 5 blocks; the next look is after 8, and 7 are there." in later.remarks


def test_a_look_that_decided_is_the_verdict_whatever_came_after_it() -> None:
    decided = comparison_of_ab(under_way([*CLEAR, 0.3, 0.3, 0.3]))
    assert (decided.verdict, decided.blocks) == ("slower", 5)
    assert decided.rows[0].verdicts == comparison_of_ab(under_way(CLEAR)).rows[0].verdicts


def test_other_margins_are_judged_at_the_look_at_which_the_run_stopped() -> None:
    wide = Margins(0.10, 0.15, "the command line")
    comparison = comparison_of_ab(under_way(CLEAR), wide)
    assert (comparison.verdict, comparison.blocks) == ("equivalent", 5)


def of_windows(cost: float | None) -> Run:
    """A run whose B is 2.8 % ahead, by a plan that takes a window to cost that share of the median one."""
    run = ab_run([0.0275, 0.0277, 0.0276, 0.0274, 0.0278], looks=LOOKS)
    [first, *more] = run.manifest.plans
    windows = [trial.windows for trial in run.trials if trial.windows]
    middle = statistics.median(statistics.median(one.seconds[one.measured_from :]) for one in windows)
    assert first.looks is not None
    looks = first.looks.model_copy(update={"window_cost_s": None if cost is None else cost * middle})
    plans = [PlanRecord.sealed(first.seed, 1, first.blocks, looks=looks), *more]
    return replace(run, manifest=run.manifest.model_copy(update={"plans": plans}))


@pytest.mark.parametrize(
    ("cost", "verdict", "told"),
    [
        (0.1, "undecided", [("10 %", "2.7 %")]),
        (0.02, "equivalent", [("2 %", "2.94 %")]),
        (0.7, "undecided", [("50 %", "1.49 %")]),
        (None, "equivalent", []),
    ],
)
def test_what_is_no_steps_of_a_window_is_taken_off_epsilon_but_in_earlier_plans(
    cost: float | None, verdict: str, told: list[tuple[str, str]]
) -> None:
    comparison = comparison_of_ab(of_windows(cost), Margins(0.03, 0.03))
    assert comparison.verdict == verdict
    assert [said for said in comparison.remarks if "no steps" in said] == [
        f"About {share} of a window is no steps and hides as much of a difference: equivalent is within {within}, so "
        "that steps are within 3 %."
        for share, within in told
    ]


def test_processor_time_is_judged_at_the_same_look() -> None:
    [row] = comparison_of_ab(ab_run(CLEAR, cpu=CLEAR, looks=LOOKS)).rows
    assert row.verdicts.cpu is not None
    assert row.verdicts.cpu.ratio is not None
    assert row.verdicts.cpu.ratio == row.verdicts.wall.ratio


@pytest.mark.parametrize("status", ["interrupted", "running"])
def test_an_older_plan_without_looks_has_no_verdict_before_it_is_complete(status: str) -> None:
    older = ab_run(CLEAR)
    stopped = replace(older, manifest=older.manifest.model_copy(update={"status": status}))
    assert comparison_of_ab(older).verdict == "slower"
    assert comparison_of_ab(stopped).verdict == "undecided"
    assert "no verdict before its plan is complete" in (comparison_of_ab(stopped).rows[0].verdicts.wall.reason or "")


def test_a_trend_of_one_side_is_the_others_too_and_told_once() -> None:
    run = ab_run(slower_by(0.0))
    warms = [warming(trial) if trial.side == "b" else trial for trial in run.trials]
    trends = [text for text in comparison_of_ab(replace(run, trials=warms)).remarks if "course of a trial" in text]
    [told] = trends
    assert told.startswith("A: windows become ")
    assert "longer in the course of a trial, relative to the other's" in told
