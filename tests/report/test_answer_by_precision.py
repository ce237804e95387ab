"""The answer where cells of several precisions, or with XLA, compete."""

import re

from harness.analysis import summarise
from harness.record.manifest import RunManifest
from harness.record.trial import TrialRecord
from harness.report.export.rows import answer_row
from harness.report.figures.ranking import ranking_figure
from harness.report.words.answer import answer_lines
from harness.report.words.exactness import ranking_note
from harness.spec.cell import trained
from harness.spec.work import Cell
from tests.comparisons import scaled
from tests.report.answers import half_and_whole, no_base_in_half, said
from tests.synthetic import failed, make_cell, make_run

VARIANTS = [{"precision": p, "xla": x} for p in ("float32", "mixed_bfloat16") for x in (False, True)]


SPEED = {"float32": 1.0, "mixed_bfloat16": 1.5}


def of_variants(record: TrialRecord) -> TrialRecord:
    """bfloat16 takes half as long again, XLA a fifth less: the fastest is float32 with XLA."""
    cell = trained(record.cell)
    return scaled(record, SPEED[cell.precision] * (0.8 if cell.xla else 1.0))


def test_precision_and_xla_are_one_ranking_with_one_headline_that_names_both() -> None:
    cells = [make_cell(*of, device="gpu", **keys) for of in (("none",), ("mirrored", 2)) for keys in VARIANTS]
    summary = summarise(*make_run(cells, faults=False, change=of_variants))
    [work] = summary.workloads
    assert len(work.ranking) == 8
    assert len({cell.label for cell in work.ranking}) == 8
    text = "\n".join(answer_lines(summary))
    assert re.match(
        r"Distribute: mirrored, 2 replicas, batch 32 a replica, XLA, op auto \(ran \S+\), float32, [\d,]+ examples/s ± "
        r"[\d.]+ % in these minutes, "
        r"1\.\d\d× \[1\.\d\d – 1\.\d\d\] no strategy \(float32, XLA\)\.\n",
        text,
    )
    assert (
        "the throughput of the fastest cell without a strategy, whatever its precision and XLA (no strategy, one "
        "device, batch 32, XLA, float32), chosen as the best of 4"
    ) in text
    assert "One ranking whatever the precision and XLA, for the work is the same; a cell's efficiency and its" in text
    assert "'× no strategy' are over no strategy of its own precision and XLA." in text
    assert "Precision changes the numbers that a step computes: what that does to accuracy was not measured." in text


def test_what_precision_gains_is_no_gain_of_distributing_where_its_base_case_failed() -> None:
    half = {"precision": "mixed_bfloat16"}
    cells = [make_cell(device="gpu"), make_cell(device="gpu", **half), make_cell("mirrored", 2, device="gpu", **half)]

    def change(record: TrialRecord) -> TrialRecord:
        if record.cell_id == cells[1].cell_id:
            return failed(record, "crashed", "signal 11")
        return scaled(record, 0.1) if record.cell_id == cells[2].cell_id else record

    text = said(cells, faults=False, change=change)
    assert "istribute: " not in text
    assert (
        "Whether distributing pays is unknown: no cell with more than one replica was measured in the precision of one "
        "without a strategy."
    ) in text
    both = said([*cells, make_cell("mirrored", 2, device="gpu")], faults=False, change=change)
    assert "chosen as the best of" not in both, "only that of float32 is compared with no strategy of float32"


def test_not_to_distribute_is_no_headline_of_a_cell_that_distributes() -> None:
    text = said(half_and_whole(), faults=False, change=no_base_in_half)
    assert "o not distribute" not in text
    assert re.match(
        r"Mirrored, 2 replicas, [^\n]*mixed_bfloat16, [^\n]*, [\d,]+ examples/s \[[\d,]+ – [\d,]+\] in these "
        r"minutes: in float32 distributing does not pay, "
        r"and in mixed_bfloat16 no cell without a strategy is ranked\.\n",
        text,
    )
    assert "Distributing does not pay in float32: the best there (mirrored, 2 replicas, batch 32 a replica, " in text
    virtual = said(half_and_whole("virtual-cpu"), faults=False, change=no_base_in_half)
    assert "On these virtual devices distributing does not pay in float32: the best there (" in virtual


def test_the_whole_machine_of_another_precision_does_not_stand_for_that_of_the_fastest_base() -> None:
    half = {"precision": "mixed_bfloat16"}
    whole = make_cell(intra_op_threads=2)
    cells = [make_cell(), whole, make_cell(**half), make_cell("mirrored", 2, **half), make_cell("mirrored", 2)]
    faster = [cells[2], cells[3]]

    def verdict(cells: list[Cell]) -> str:
        def change(record: TrialRecord) -> TrialRecord:
            cell = trained(record.cell)
            return scaled(record, (0.2 if cell in faster else 1.0) * (1.0 if cell.is_base else 0.2))

        return summarise(*make_run(cells, faults=False, change=change)).workloads[0].answer.verdict

    assert verdict(cells) == "beats_one_device"
    assert verdict([*cells, make_cell(intra_op_threads=2, **half)]) == "pays"


def test_each_efficiency_and_speed_up_stays_within_its_own_precision_and_xla() -> None:
    cells = [make_cell(*of, device="gpu", **keys) for of in (("none",), ("mirrored", 2)) for keys in VARIANTS]
    summary = summarise(*make_run(cells, faults=False, change=of_variants))
    distributed = [cell for cell in summary.cells if cell.trials.cell.replicas_in_sync == 2]
    for cell in distributed:
        assert cell.vs_none is not None
        base, of = trained(summary.by_id[cell.vs_none.base_id].trials.cell), trained(cell.trials.cell)
        assert (base.precision, base.xla) == (of.precision, of.xla)
    ratios = [cell.vs_none.speed_up.value for cell in distributed if cell.vs_none]
    assert max(ratios) / min(ratios) < 1.05, "they scale alike, however fast each is"


def test_of_cells_that_tie_one_at_the_defaults_is_simpler() -> None:
    cells = [make_cell(device="gpu", **keys) for keys in VARIANTS]
    work = summarise(*make_run(cells, faults=False, noise=0.05, seed=3)).workloads[0]
    assert len(work.answer.tied_ids) == 3
    assert work.answer.simplest_id == cells[0].cell_id
    assert work.answer.best_id != cells[0].cell_id


def apart_by_precision(cells: list[Cell]) -> tuple[RunManifest, list[TrialRecord]]:
    """A run kept from when cells of each precision were in groups of their own."""

    def change(record: TrialRecord) -> TrialRecord:
        of = of_variants(record)
        return of.model_copy(update={"group": f"{of.group}-{trained(of.cell).precision}"})

    return make_run(cells, faults=False, change=change, drift=0.3, noise=0.001)


def test_cells_of_a_kept_run_that_did_not_take_turns_are_not_said_to_have() -> None:
    half = {"precision": "mixed_bfloat16"}
    cells = [make_cell(*of, device="gpu", **keys) for of in (("none",), ("mirrored", 2)) for keys in ({}, half)]
    told = {}
    for name, run in {"kept": apart_by_precision(cells), "new": make_run(cells, faults=False, drift=0.3)}.items():
        summary = summarise(*run)
        [work] = summary.workloads
        assert work.linked == (name == "new")
        figure = ranking_figure(work, "ranking")
        assert figure is not None
        told[name] = "\n".join([*answer_lines(summary), ranking_note(work, summary.noise), figure.caption])
    said_of_kept = (
        "Cells of different precision did not take turns in this run: what the machine did in between is in their "
        "comparison."
    )
    for words, kept in (
        (said_of_kept, True),
        ("'× no strategy' compares trials that took turns", True),
        ("comparisons of cells that took turns are made within a block", True),
        ("'% of fastest' and '× no strategy' compare trials that took turns", False),
        ("; comparisons are made within a block", False),
        ("to all cells alike", False),
    ):
        assert (words in told["kept"], words in told["new"]) == (kept, not kept), words


def test_a_ranking_claims_no_value_of_cells_that_it_does_not_rank() -> None:
    half = {"precision": "mixed_bfloat16"}
    cells = [make_cell(device="gpu"), make_cell("mirrored", 2, device="gpu"), make_cell(device="gpu", **half)]

    def crash(record: TrialRecord) -> TrialRecord:
        return failed(record, "crashed", "signal 11") if record.cell_id == cells[2].cell_id else record

    both, one = (summarise(*make_run(cells, faults=False, change=change)) for change in (None, crash))
    assert ", float32 and mixed_bfloat16, " in both.workloads[0].workload.label
    assert ", float32, " in one.workloads[0].workload.label
    assert answer_row(both.workloads[0])["workload"]["precision"] == ["float32", "mixed_bfloat16"]
    assert answer_row(one.workloads[0])["workload"]["precision"] == "float32"
    nothing = summarise(*make_run(cells, faults=False, change=lambda record: failed(record, "crashed", "signal 11")))
    assert ", float32 and mixed_bfloat16, " in nothing.workloads[0].workload.label
