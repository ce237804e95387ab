"""Two runs: what is compared with what, what refuses it, and what is never a verdict."""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from scipy import stats

from harness.analysis.comparison import Comparison, Row, choose_margins, compare_along, compare_runs
from harness.analysis.estimates.verdict import Margins, holm
from harness.analysis.ranking import benjamini_hochberg
from harness.errors import StorageError, UsageError
from harness.record import Run, TrialRecord
from harness.record.manifest import DeviceRecord
from harness.record.reading import load_run
from harness.report.comparison.notes import notes_of
from harness.report.comparison.rule import methods
from harness.report.comparison.words import row_notes
from harness.spec.work import OwnStepCell
from tests.comparisons import MIRRORED, ab_run, pair_of_runs, sweep_run, validation
from tests.faulted import write_example
from tests.synthetic import WRONG_EVIDENCE, WRONG_REASON, failed, make_cell, unproved, warming
from tests.validations import Arm, Round, validation_run

MARGINS = Margins()
OPS = [make_cell(), *(make_cell("mirrored", 2, op=op) for op in ("hierarchical_copy", "auto", "nccl"))]


def of(comparison: Comparison, name: str) -> Row:
    [row] = [row for row in comparison.rows if row.name == name]
    return row


def wrong(cell_id: str) -> Callable[[TrialRecord], TrialRecord]:
    def change(record: TrialRecord) -> TrialRecord:
        if record.cell_id != cell_id or record.block:
            return record
        checks = record.checks.model_copy(update={"reduction": False, "detail": WRONG_EVIDENCE})
        return failed(record, "wrong_result", WRONG_REASON, phase="check", checks=checks)

    return change


def test_a_run_that_takes_longer_is_slower_and_its_processor_time_says_that_it_waits() -> None:
    comparison = compare_runs(*pair_of_runs(wall=1.06), MARGINS)
    assert comparison.verdict == "slower"
    for row in comparison.rows:
        assert row.verdicts.wall.ratio is not None
        assert row.verdicts.wall.ratio.low is not None
        assert row.verdicts.wall.ratio.high is not None
        assert row.verdicts.wall.ratio.low < 1 / 1.06 < row.verdicts.wall.ratio.high
        assert row.verdicts.cpu_verdict == "equivalent"
        assert "waits more" in (row.verdicts.disagreement or "")
        assert row.disagreement == row.verdicts.disagreement


@pytest.mark.parametrize("device", ["gpu", "virtual-gpu"])
def test_of_accelerators_the_hosts_processor_time_does_not_say_that_a_side_waits(device: str) -> None:
    cells = [make_cell("mirrored", 2, device=device)]
    comparison = compare_runs(sweep_run("run-a", cells), sweep_run("run-b", cells, seed=2, wall=1.06), MARGINS)
    [row] = comparison.rows
    assert (row.verdicts.wall.verdict, row.verdicts.cpu_verdict) == ("slower", "equivalent")
    assert row.disagreement is None
    assert "waits more" not in " ".join((*row_notes(comparison, row), *notes_of(comparison)))
    [instrument] = [method for method in methods(comparison) if method.figure == "Second instrument"]
    assert "On accelerators it is the host's" in instrument.here


def test_of_processors_it_does_however_their_kind_is_called() -> None:
    cells, devices = [make_cell("mirrored", 2, device="whole-cpu")], {"whole-cpu": DeviceRecord(on_processors=True)}
    runs = (sweep_run("run-a", cells), sweep_run("run-b", cells, seed=2, wall=1.06))
    a, b = (replace(run, manifest=run.manifest.model_copy(update={"devices": devices})) for run in runs)
    [row] = compare_runs(a, b, MARGINS).rows
    assert "waits more" in (row.disagreement or "")


def test_two_runs_of_one_build_are_equivalent() -> None:
    comparison = compare_runs(*pair_of_runs(), MARGINS)
    assert comparison.counts == {"equivalent": 2}
    assert comparison.verdict == "equivalent"


def test_swapping_the_runs_inverts_every_ratio() -> None:
    a, b = pair_of_runs(wall=1.06)
    there, back = compare_runs(a, b, MARGINS), compare_runs(b, a, MARGINS)
    assert {row.verdicts.wall.verdict for row in back.rows} == {"faster"}
    for forth, other in zip(there.rows, back.rows, strict=True):
        assert forth.verdicts.wall.estimate is not None
        assert other.verdicts.wall.estimate is not None
        assert forth.verdicts.wall.estimate.mean == pytest.approx(-other.verdicts.wall.estimate.mean)


def test_two_runs_are_compared_by_welch_although_their_groups_have_the_same_names() -> None:
    a, b = pair_of_runs()
    assert {trial.group for trial in a.trials} == {trial.group for trial in b.trials}
    estimate = of(compare_runs(a, b, MARGINS), MIRRORED.label).verdicts.wall.estimate
    assert estimate is not None
    assert estimate.method == "Welch t"
    logs = [
        [math.log(t.throughput_examples_per_s or 0) for t in run.trials if t.cell_id == MIRRORED.cell_id]
        for run in (b, a)
    ]
    expected = stats.ttest_ind(*logs, equal_var=False).confidence_interval(0.95)
    assert estimate.log_bounds(0.95) == pytest.approx((expected.low, expected.high))


def test_the_order_of_the_records_does_not_matter() -> None:
    a, b = pair_of_runs(wall=1.02)
    shuffled = replace(b, trials=b.trials[::-1])
    assert compare_runs(a, b, MARGINS).rows == compare_runs(a, shuffled, MARGINS).rows


@pytest.mark.parametrize("side", ["A", "B"])
def test_a_cell_that_is_wrong_on_one_side_is_invalid_with_the_side_and_the_evidence(side: str) -> None:
    changes = {side: wrong(MIRRORED.cell_id)}
    a = sweep_run("run-a", seed=1, change=changes.get("A"))
    b = sweep_run("run-b", seed=2, change=changes.get("B"))
    comparison = compare_runs(a, b, MARGINS)
    row = of(comparison, MIRRORED.label)
    assert row.verdicts.wall.verdict == "invalid"
    assert row.verdicts.cpu is None
    reason = row.verdicts.wall.reason or ""
    assert reason.startswith(f"{side} gave a wrong result (1 of 8 trials)")
    assert WRONG_REASON in reason
    assert WRONG_EVIDENCE["update"] in reason
    # the other cell is judged as if there were nothing else
    assert comparison.rows[0].verdicts.wall.comparisons == 1
    assert comparison.counts == {"equivalent": 1, "invalid": 1}


def test_a_cell_without_a_good_trial_is_invalid_and_nothing_valid_is_exit_code_four_unless_b_lost_it() -> None:
    crash = {"change": lambda record: failed(record, "crashed", "the process died of signal 11", phase="steady")}
    a, b = pair_of_runs(**crash)
    comparison = compare_runs(a, b, MARGINS)
    assert comparison.verdict == compare_runs(b, a, MARGINS).verdict == "invalid"
    assert (comparison.exit_code(), compare_runs(b, a, MARGINS).exit_code()) == (1, 4)
    assert comparison.rows[0].verdicts.wall.reason == (
        "B crashed in phase 'steady' (8 of 8 trials): the process died of signal 11"
    )


def test_cells_that_one_run_alone_has_are_listed_and_not_compared() -> None:
    a = sweep_run("run-a", [make_cell(), MIRRORED, make_cell("mirrored", 3)])
    b = sweep_run("run-b", [make_cell(), MIRRORED, make_cell("central_storage", 2)], seed=2)
    comparison = compare_runs(a, b, MARGINS)
    assert [row.name for row in comparison.rows] == ["none ×1 b32", "mirrored ×2 b32"]
    assert (comparison.only_a, comparison.only_b) == (("mirrored ×3 b32",), ("central_storage ×2 b32",))


def test_runs_without_a_common_cell_are_an_error_that_says_what_each_has() -> None:
    a, b = sweep_run("run-a"), sweep_run("run-b", [make_cell(model="mlp"), make_cell("mirrored", 2, model="mlp")])
    with pytest.raises(
        StorageError, match=r"A has none ×1 b32.*B has none ×1 b32.*model is mnist_cnn in A and mlp in B"
    ):
        compare_runs(a, b, MARGINS)


def test_a_key_that_one_kind_of_work_lacks_is_not_named_as_what_differs() -> None:
    own = OwnStepCell(step="a.b:c", amount=32)
    b = sweep_run("run-b", [make_cell()])
    trials = [trial.model_copy(update={"cell": own, "cell_id": own.cell_id}) for trial in b.trials]
    b = replace(b, manifest=b.manifest.model_copy(update={"cells": [own]}), trials=trials)
    with pytest.raises(StorageError, match="no cell in common") as raised:
        compare_runs(sweep_run("run-a"), b, MARGINS)
    assert "None" not in str(raised.value)


def test_cells_of_several_models_are_told_apart_by_name() -> None:
    cells = [make_cell(), make_cell(model="mlp")]
    comparison = compare_runs(sweep_run("run-a", cells), sweep_run("run-b", cells, seed=2), MARGINS)
    assert [row.name for row in comparison.rows] == ["none ×1 b32, mnist_cnn", "none ×1 b32, mlp"]


def test_an_empty_run_the_same_run_twice_and_what_is_no_sweep_are_errors() -> None:
    a, b = pair_of_runs()
    with pytest.raises(StorageError, match=r"run-b' holds no trial yet.*--resume run-b"):
        compare_runs(a, replace(b, trials=[]), MARGINS)
    with pytest.raises(UsageError, match=r"'run-a' is the same run as RUN_A; --along AXIS"):
        compare_runs(a, sweep_run("run-a", seed=5), MARGINS)
    with pytest.raises(UsageError, match=r"'ab-run' is an `ab` run.*compare ab-run"):
        compare_runs(a, ab_run([0.0] * 4), MARGINS)
    with pytest.raises(UsageError, match="is an `ab` run"):
        compare_along(ab_run([0.0] * 4), "strategy", MARGINS)


def test_what_is_no_sweep_is_told_so_even_before_its_first_trial(tmp_path: Path) -> None:
    a, _ = pair_of_runs()
    killed = replace(validation_run([Round([Arm([0.0] * 6)])]), trials=[])
    for other, verb in ((killed, "validate"), (load_run(write_example(tmp_path)), "faults")):
        with pytest.raises(UsageError, match=f"is a run of {verb}, not a sweep"):
            compare_runs(a, other, MARGINS)


def test_machines_that_differ_in_what_decides_speed_are_refused_unless_it_is_asked_for() -> None:
    a, _ = pair_of_runs()
    facts = {"cpu.model": "Another CPU", "cpu.governor": "powersave", "package.tensorflow": "2.20.0"}
    b = sweep_run("run-b", seed=2, facts=facts)
    with pytest.raises(StorageError) as error:
        compare_runs(a, b, MARGINS)
    said = str(error.value)
    assert "cpu.governor: performance → powersave" in said
    assert "cpu.model: Synthetic CPU → Another CPU" in said
    assert "--across-machines" in said
    assert "tensorflow" not in said
    comparison = compare_runs(a, b, MARGINS, across_machines=True)
    assert [change.severity for change in comparison.changes][:2] == ["refuse", "refuse"]
    assert any("machines differ" in remark for remark in comparison.remarks)


def test_another_version_of_tensorflow_another_machine_id_and_other_settings_are_notes() -> None:
    a, _ = pair_of_runs()
    facts = {"machine.id": "ba9876543210", "package.tensorflow": "2.20.0"}
    b = sweep_run("run-b", seed=2, facts=facts)
    b = replace(
        b, manifest=b.manifest.model_copy(update={"sweep": b.manifest.sweep.model_copy(update={"window": 0.5})})
    )
    changes = compare_runs(a, b, MARGINS).changes
    assert {change.severity for change in changes} == {"note"}
    assert [change.key for change in changes][:2] == ["machine.id", "package.tensorflow"]
    assert "sweep.window" in [change.key for change in changes]


def test_an_engines_version_has_not_changed_where_an_earlier_run_called_it_otherwise() -> None:
    of_torch = [make_cell(), make_cell(engine="torch")]
    a = sweep_run("run-a", of_torch, facts={"engine.torch": "2.13.0", "engine.python": "3.11.7"})
    both = {"engine.torch.torch": "2.13.0", "engine.torch.python": "3.12.0", "engine.jax.jax": "0.10.2"}
    b = sweep_run("run-b", [*of_torch, make_cell(engine="jax")], seed=2, facts=both)
    changes = compare_runs(a, b, MARGINS).changes
    assert {str(change) for change in changes if change.key.startswith("engine.")} == {
        "engine.torch.python: 3.11.7 → 3.12.0",
        "engine.jax.jax: unknown → 0.10.2",
    }


def test_what_was_a_setting_of_earlier_runs_is_compared_with_its_default_too() -> None:
    a, b = pair_of_runs()
    b = replace(
        b,
        manifest=b.manifest.model_copy(update={"sweep": b.manifest.sweep.model_copy(update={"intra_op_threads": [4]})}),
    )
    for runs, said in (((a, b), "0 → 4"), ((b, a), "4 → 0")):
        assert f"sweep.intra_op_threads: {said}" in map(str, compare_runs(*runs, MARGINS).changes)


def test_one_trial_a_side_cannot_know_and_decides_nothing() -> None:
    comparison = compare_runs(sweep_run("run-a", blocks=1), sweep_run("run-b", blocks=1, seed=2, wall=3.0), MARGINS)
    for row in comparison.rows:
        assert row.verdicts.wall.verdict == "undecided"
        assert "cannot be known" in (row.verdicts.wall.reason or "")
        assert row.verdicts.wall.ratio is not None
        assert not row.verdicts.wall.ratio.known


def test_undecided_runs_say_how_many_trials_a_side_would_decide() -> None:
    a = sweep_run("run-a", noise=0.03, blocks=4)
    b = sweep_run("run-b", noise=0.03, blocks=4, seed=9)
    undecided = [
        row.verdicts.wall for row in compare_runs(a, b, MARGINS).rows if row.verdicts.wall.verdict == "undecided"
    ]
    assert undecided
    assert all(wall.blocks_needed is not None and wall.blocks_needed > 4 for wall in undecided)


def test_many_comparisons_are_corrected_together_by_the_rule_asked_for() -> None:
    cells = [make_cell(batch_size=batch) for batch in (16, 32, 64, 128)]
    a = sweep_run("run-a", cells, blocks=5, noise=0.01)
    b = sweep_run("run-b", cells, blocks=5, noise=0.01, seed=2, wall=1.02)
    plain = [row.verdicts.wall.p_different for row in compare_runs(a, b, MARGINS, correction="none").rows]
    assert all(p is not None for p in plain)
    values = [p for p in plain if p is not None]
    for name, rule in (("fdr", benjamini_hochberg), ("holm", holm)):
        comparison = compare_runs(a, b, MARGINS, correction=name)  # type: ignore[arg-type]
        assert [row.verdicts.wall.p_different for row in comparison.rows] == pytest.approx(rule(values))
        assert {row.verdicts.wall.comparisons for row in comparison.rows} == {4}


def test_exit_codes_are_slower_then_nothing_valid_then_undecided_when_strict() -> None:
    slower = compare_runs(*pair_of_runs(wall=1.06), MARGINS)
    assert (slower.exit_code(), slower.exit_code(strict=True)) == (1, 1)
    unknown = compare_runs(sweep_run("run-a", blocks=1), sweep_run("run-b", blocks=1, seed=2), MARGINS)
    assert (unknown.exit_code(), unknown.exit_code(strict=True)) == (0, 3)
    same = compare_runs(*pair_of_runs(), MARGINS)
    assert (same.exit_code(), same.exit_code(strict=True)) == (0, 0)


def test_what_was_measured_in_a_and_fails_in_b_is_exit_code_one_proved_or_not() -> None:
    cells = [make_cell(), make_cell("mirrored", 2)]

    def changed(run: Run, change: Callable[[TrialRecord], TrialRecord]) -> Run:
        return replace(run, trials=[change(t) if t.cell.replicas == 2 else t for t in run.trials])

    a = changed(sweep_run("run-a", cells), unproved)
    b = changed(sweep_run("run-b", cells, seed=2), lambda t: failed(t, "crashed", "it stopped"))
    assert compare_runs(a, b, MARGINS).exit_code() == 1


def test_a_cell_that_b_has_not_or_did_not_measure_is_exit_code_three_when_strict() -> None:
    cells = [make_cell(), MIRRORED]
    a, fewer = sweep_run("run-a", cells), sweep_run("run-b", cells[:1], seed=2)

    def cannot(trial: TrialRecord) -> TrialRecord:
        return failed(trial, "unsupported", "no such device") if trial.cell_id == MIRRORED.cell_id else trial

    refused = sweep_run("run-b", cells, seed=2, change=cannot)
    missing = replace(refused, trials=[trial for trial in refused.trials if trial.status == "ok"])
    for b in (fewer, refused, missing):
        lost, gained = compare_runs(a, b, MARGINS), compare_runs(b, a, MARGINS)
        assert lost.counts["equivalent"] == 1
        assert (lost.exit_code(), lost.exit_code(strict=True)) == (0, 3)
        assert (gained.exit_code(), gained.exit_code(strict=True)) == (0, 0)


def test_the_time_between_the_runs_and_the_missing_validation_are_remarked() -> None:
    a, b = pair_of_runs(manifest={"created_utc": "2026-11-22T01:23:45Z", "finished_utc": "2026-11-22T02:23:45Z"})
    said = " ".join(compare_runs(a, b, MARGINS).remarks)
    assert "24 hours apart" in said
    assert "python -m harness validate" in said
    cited = compare_runs(a, b, choose_margins(validation(), unpaired=True), validation=validation())
    assert cited.validation is not None
    assert "python -m harness validate" not in " ".join(cited.remarks)


@pytest.mark.parametrize(
    ("live", "status", "says"),
    [
        (True, "running", "'results/run-b' is still being measured: a sweep has no verdict before it is finished"),
        (
            False,
            "interrupted",
            "did not finish, and has no verdict before that; `python -m harness sweep --resume",
        ),
        (False, "running", "did not finish"),
    ],
)
def test_a_sweep_that_is_under_way_or_was_stopped_is_not_judged(live: bool, status: str, says: str) -> None:
    a, b = pair_of_runs(manifest={"status": status})
    stopped = replace(b, live=live)
    with pytest.raises(StorageError, match=re.escape(says)):
        compare_runs(a, stopped, MARGINS)
    with pytest.raises(StorageError, match=re.escape(says)):
        compare_along(stopped, "replicas", MARGINS)


def test_runs_that_overlapped_on_one_machine_are_remarked() -> None:
    a, b = pair_of_runs()
    assert "overlapped in time" in " ".join(compare_runs(a, b, MARGINS).remarks)
    elsewhere = sweep_run("run-c", seed=2, facts={"machine.id": "ba9876543210"})
    assert "overlapped" not in " ".join(compare_runs(a, elsewhere, MARGINS).remarks)


def test_a_cell_whose_traced_program_differs_between_the_runs_is_remarked() -> None:
    def retraced(record: TrialRecord) -> TrialRecord:
        executed = record.executed.model_copy(update={"fingerprint": "other", "operations": {"AddN": 4}})
        return record.model_copy(update={"executed": executed})

    a, b = pair_of_runs(change=retraced)
    assert any("B runs 4 × AddN" in remark for remark in compare_runs(a, b, MARGINS).remarks)


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ("tf32", "float32", "A computed float32 as TF32, B in full"),
        ("float32", "tf32", "B computed float32 as TF32, A in full"),
        ("tf32", "tf32", ""),
        ("", "tf32", ""),
    ],
)
def test_sides_whose_gpus_computed_float32_otherwise_differ_in_their_arithmetic(a: str, b: str, said: str) -> None:
    def computing(arithmetic: str) -> Callable[[TrialRecord], TrialRecord]:
        return lambda record: record.model_copy(
            update={"executed": record.executed.model_copy(update={"arithmetic": arithmetic})}
        )

    one, other = (sweep_run(f"run-{n}", seed=n, change=computing(of)) for n, of in enumerate((a, b)))
    named = [remark for remark in compare_runs(one, other, MARGINS).remarks if "arithmetic" in remark]
    assert len(named) == (2 if said else 0)
    assert all(said in remark for remark in named)


def test_a_trend_is_told_of_the_run_that_has_it_and_of_both_where_both_have_one() -> None:
    def warms(record: TrialRecord) -> TrialRecord:
        return warming(record) if record.cell == MIRRORED else record

    # one cell in common; what MIRRORED takes turns with differs
    a = sweep_run("run-a", [MIRRORED, make_cell(), OPS[1]], change=warms)
    b = sweep_run("run-b", [MIRRORED, make_cell(batch_size=64), OPS[3]], seed=2, change=warms)
    trends = [remark for remark in compare_runs(a, b, MARGINS).remarks if "in the course of a trial" in remark]
    assert [remark[:2] for remark in trends] == ["A:", "B:"]
    assert all("shorter in the course of a trial, relative to those of the trials that took" in text for text in trends)
