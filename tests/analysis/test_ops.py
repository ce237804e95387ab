"""Cross-device ops side by side: what is compared with what, and the verdict on it."""

import math

import pytest

from harness.analysis import WorkloadSummary, summarise
from harness.analysis.estimates.verdict import Margins
from harness.analysis.ops import axes_of, judge_ops
from harness.record.trial import TrialRecord
from harness.spec.grouping import SIDE_BY_SIDE
from harness.spec.work import Cell
from tests.comparisons import scaled
from tests.synthetic import make_cell, make_run

OPS = ("auto", "hierarchical_copy", "reduction_to_one_device", "ring")


def workload(cells: list[Cell], **changes: object) -> WorkloadSummary:
    return summarise(*make_run([make_cell("none"), *cells], faults=False, **changes)).workloads[0]  # type: ignore[arg-type]


def test_counts_of_servers_are_no_ops() -> None:
    cells = [make_cell("parameter_server", 1, workers=2, ps=ps, global_batch_size=32) for ps in (1, 2)]
    assert workload(cells).ops == ()


def slower_by(shares: dict[str, float]) -> WorkloadSummary:
    """Every op takes the same, but those in `shares` that much longer."""

    def planted(record: TrialRecord) -> TrialRecord:
        wall = 1 + shares.get(record.cell.cross_device_op, 0.0)
        place = 3 * record.block + 5 * (record.cell.cross_device_op in OPS[:2]) + len(record.cell.cross_device_op)
        alike = 0.01 * math.exp(0.002 * (place % 7 - 3))
        return scaled(record, wall * alike / (record.step_time_s or 1.0), 1.0)

    return workload([make_cell("mirrored", 2, op=op) for op in OPS], blocks=8, change=planted)


def test_an_op_is_judged_against_the_reference_by_the_rule_of_a_comparison() -> None:
    work = slower_by({"ring": 0.2, "hierarchical_copy": -0.2})
    verdicts = judge_ops(work.ops, Margins())
    assert {item.op: verdicts[item.cell_id].verdict for item in work.ops[0].results if item.cell_id in verdicts} == {
        "ring": "slower",
        "hierarchical_copy": "faster",
        "reduction_to_one_device": "equivalent",
    }


def test_ops_are_judged_together() -> None:
    verdicts = judge_ops(slower_by({}).ops, Margins())
    assert {(judgement.correction, judgement.comparisons) for judgement in verdicts.values()} == {("fdr", 3)}


def test_one_trial_a_cell_leaves_every_op_undecided() -> None:
    work = workload([make_cell("mirrored", 2, op=op) for op in OPS], blocks=1)
    assert {judgement.verdict for judgement in judge_ops(work.ops, Margins()).values()} == {"undecided"}


def test_another_axis_that_is_set_side_by_side_is_told_and_compared_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.analysis.ops.SIDE_BY_SIDE", SIDE_BY_SIDE | {"cycle_time"})
    [group] = workload([make_cell("mirrored", 2, cycle_time=time) for time in (0, 5)]).ops
    assert [item.name for item in group.results] == ["auto", "auto, cycle_time 5"]
    assert axes_of([group]) == ("cycle_time",)
    [both] = workload([make_cell("mirrored", 2, op=op, cycle_time=time) for op, time in (("auto", 0), ("ring", 5))]).ops
    assert axes_of([both]) == ()
