"""The answer in a few plain sentences."""

import functools
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.analysis import summarise
from harness.record.manifest import RunManifest
from harness.record.trial import Executed, TrialRecord
from harness.report.export.rows import answer_row
from harness.report.figures.ranking import ranking_figure
from harness.report.tables.sweep import executed_words
from harness.report.words.answer import answer_lines, answers
from harness.report.words.brief import brief_lines
from harness.report.words.exactness import ranking_note
from harness.report.words.problems import remarks
from harness.spec.axes import ENGINE
from harness.spec.cell import trained
from harness.spec.work import Cell
from tests.comparisons import scaled
from tests.report.answers import half_and_whole, no_base_in_half, said
from tests.synthetic import default_cells, failed, make_cell, make_run, unproved, warming

ROOT = Path(__file__).parents[2]


def gpus() -> list[Cell]:
    """The default sweep as it would be on devices of their own."""
    return [cell for cell in default_cells(device="gpu") if cell.strategy != "tpu"]


def test_it_names_the_fastest_its_interval_and_whether_distributing_pays() -> None:
    text = said(gpus())
    assert re.match(
        r"Distribute: mirrored, 2 replicas, batch 128 a replica, reduction_to_one_device, 12,300 examples/s ± [\d.]+ "
        r"% in these minutes, 1\.87× \[1\.\d\d – 1\.\d\d\] no strategy\.\n",
        text,
    )
    assert "Fastest: mirrored, 2 replicas, batch 128 a replica, reduction_to_one_device, at 12,300" in text
    assert "Distributing pays: the fastest has 1.87× [" in text
    assert "12 of 13 distributed cells gain" in text


def test_undecided_for_the_sake_of_a_cell_that_scatters_says_that_the_best_is_slower_and_what_that_cell_needs() -> None:
    cells = [make_cell(), *(make_cell("mirrored", n) for n in (2, 3, 4))]

    def scatters(record: TrialRecord) -> TrialRecord:
        slower, by_block = (1.0, 2.2, 3.3, 2.2)[cells.index(record.cell)], (0.7, 1.4, 0.65, 1.5)
        return scaled(record, slower * (by_block[record.block] if record.cell == cells[3] else 1.0))

    summary = summarise(*make_run(cells, faults=False, change=scatters))
    assert summary.workloads[0].answer.more_trials == 10, "the best, which is known, would say 5"
    text, glance = "\n".join(answer_lines(summary)), "\n".join(brief_lines(summary))
    assert "is undecided: the best distributed cell (mirrored, 2 replicas, " in text
    assert "; it is slower, but of 1 of 3 distributed cells that is not known; about 10 trials a cell " in text
    assert "when corrected" not in text
    assert ", and 1 of 3 may not be slower; about 10 trials " in glance


def test_it_names_what_cannot_be_told_apart_and_the_simplest_of_it() -> None:
    assert "3 other cells cannot be told apart from the fastest; the simplest of them is mirrored, 2 replicas" in said()


def test_an_op_that_was_left_to_tensorflow_is_named_with_what_ran() -> None:
    def collective(record: TrialRecord) -> TrialRecord:
        ran = Executed(operations={"CollectiveReduceV2[ring]": 2}, fingerprint="ring")
        return record.model_copy(update={"executed": ran}) if record.cell.strategy == "mirrored" else record

    cells = [make_cell("none", device="gpu"), make_cell("mirrored", 2, device="gpu")]
    text = said(cells, faults=False, change=collective)
    named = "mirrored, 2 replicas, batch 32 a replica, op auto (ran CollectiveReduceV2[ring])"
    assert text.startswith(f"Distribute: {named}, ")
    assert f"Fastest: {named}, at " in text


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
        r"Mirrored, 2 replicas, [^\n]*mixed_bfloat16, [^\n]*, [\d,]+ examples/s ± [\d.]+ % in these minutes: in "
        r"float32 distributing does not pay, and in mixed_bfloat16 no cell without a strategy is ranked\.\n",
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


def test_one_precision_is_not_told_as_a_choice() -> None:
    text = said([make_cell(device="gpu", xla=True), make_cell("mirrored", 2, device="gpu", xla=True)])
    assert "whatever" not in text
    assert "no strategy (" not in text


def test_models_and_data_are_ranked_apart_with_the_reason() -> None:
    text = said([make_cell(device="gpu"), make_cell(device="gpu", model="mlp"), make_cell(device="gpu", data="other")])
    assert "3 rankings, for another model is other work and other data are other work." in text
    assert "rankings, for" not in said(gpus())


def test_what_is_unproved_is_left_out_with_the_reason_and_recommended_only_if_asked() -> None:
    cells = [make_cell("none", device="gpu"), make_cell("mirrored", 2, device="gpu")]
    blind = {"faults": False, "change": lambda record: unproved(record) if record.cell.replicas == 2 else record}
    text = said(cells, **blind)
    assert text.startswith("No strategy, one device, batch 32, 4,")
    assert "the only cell that could be proved." in text
    assert "no cell with more than one replica was measured and proved." in text
    why = "sight: a missing replica would be 0.5 of what is allowed"
    assert f"1 measured cell is unproved and left out of the ranking ({why}); --rank-unproved ranks it." in text
    asked = "\n".join(answer_lines(summarise(*make_run(cells, **blind), rank_unproved=True)))  # type: ignore[arg-type]
    assert asked.startswith("Distribute: mirrored, 2 replicas, batch 32 a replica (unproved), ")
    assert "1 ranked cell could not be proved: marked, and ranked as asked for." in asked


def test_where_nothing_could_be_proved_nothing_is_recommended() -> None:
    text = said([make_cell("none")], faults=False, change=unproved)
    assert text.startswith("Nothing to recommend: of 1 cell none could be proved.")


def test_one_trial_gives_a_headline_without_a_plus_minus() -> None:
    assert said([make_cell("none", device="gpu")], blocks=1).startswith(
        "No strategy, one device, batch 32, 3,660 examples/s: the only cell that was measured."
    )


def uncertain(record: TrialRecord) -> TrialRecord:
    """One replica without a strategy is slow, `one_device` so noisy that it may be as fast as two."""
    spread = (0.45, 0.5, 0.7, 0.8)[record.block] if record.cell.strategy == "one_device" else 1.0
    return scaled(record, spread)


def test_where_distributing_pays_the_simplest_tie_named_first_is_one_that_distributes() -> None:
    cells = [
        make_cell(strategy, n, device="gpu")
        for strategy, n in (("none", 1), ("one_device", 1), ("mirrored", 2), ("central_storage", 2))
    ]
    text = said(cells, faults=False, change=uncertain, noise=0.02)
    assert "Distributing pays: the fastest has" in text
    assert re.search(
        r"2 other cells cannot be told apart from the fastest(, which is itself the simplest that distributes"
        r"|; the simplest that distributes is \w+, 2 replicas[^.]*)\.",
        text,
    )
    assert re.search(
        r"Among those that tie, on one replica: one_device, 1 replica, batch 32 a replica, which may be as fast or up "
        r"to [\d.]+ % slower \([\d.]+ % \[[\d.]+ – [\d,.]+\] of the fastest\)\.",
        text,
    )


def test_a_trend_in_the_fastest_cell_is_told_and_one_in_another_is_left_to_the_details() -> None:
    also = [make_cell("one_device"), make_cell("central_storage", 1), make_cell("central_storage", 2)]
    cells = [make_cell("none"), make_cell("mirrored", 1), make_cell("mirrored", 2), *also]

    def told(replicas: int) -> str:
        def change(record: TrialRecord) -> TrialRecord:
            distributed = record.cell.strategy == "mirrored" and record.cell.replicas == replicas
            return warming(record) if distributed else record

        assert any(cell.measured and cell.measured.trend for cell in summarise(*run(change)).cells)
        return said(cells, faults=False, change=change)

    def run(change: Callable[[TrialRecord], TrialRecord]) -> tuple[RunManifest, list[TrialRecord]]:
        return make_run(cells, faults=False, change=change)

    expected = r"In the course of a trial of the fastest cell windows become \d+ % shorter: raise --max-warmup"
    assert re.search(expected, told(2))
    assert "course of a trial" not in told(1)


def test_it_counts_what_has_no_throughput() -> None:
    assert "Of 34 cells, without a throughput: 2 wrong result, 10 not supported here and 1 timed out." in said()


def test_it_warns_that_a_larger_global_batch_is_not_the_same_training() -> None:
    assert "The fastest cell takes 256 examples a step where the fastest without a strategy takes 128" in said()


def test_it_explains_why_a_throughput_is_less_certain_than_a_comparison() -> None:
    assert "speed varied by 12 % between blocks" in said(drift=0.08)
    assert "varied by" not in said(drift=0.001)


def test_it_advises_against_distributing_where_everything_is_slower_and_says_overhead() -> None:
    text = said([make_cell("none", device="gpu"), make_cell("mirrored", 2, device="gpu")], physical=1)
    assert text.startswith("Do not distribute: no strategy, one device, batch 32, ")
    assert "Do not distribute: the best distributed cell" in text
    assert "shared devices: overhead only, not hardware scaling" in text


def test_undecided_is_a_headline_and_says_what_would_decide() -> None:
    cells = [make_cell("none", device="gpu"), make_cell("mirrored", 2, device="gpu")]
    text = said(cells, physical=1, noise=0.5, seed=3, faults=False)
    assert text.startswith("Undecided: these trials cannot tell whether distributing pays.")
    once = said(cells, blocks=1, faults=False)
    assert once.startswith("Undecided: one trial a cell cannot tell whether distributing pays.")


def test_undecided_beside_a_row_that_the_ranking_leaves_out_says_why_both_can_be() -> None:
    cells = [make_cell("none", device="gpu"), make_cell("mirrored", 2, device="gpu")]
    why = "though the ranking leaves mirrored ×2 b32 out: its limit has one side, this interval two"
    texts = {seed: said(cells, physical=1, noise=0.2, seed=seed, faults=False) for seed in (2, 3)}
    assert all("is undecided: " in text for text in texts.values())
    assert why in texts[2]
    assert why not in texts[3]


def test_two_cells_that_a_third_is_faster_than_are_both_left_out_and_nothing_is_explained() -> None:
    def faster(record: TrialRecord) -> TrialRecord:
        return scaled(record, 0.25) if trained(record.cell).precision == "mixed_bfloat16" else record

    cells = [make_cell("none", device="gpu"), make_cell("mirrored", 2, device="gpu")]
    cells.append(make_cell("mirrored", 2, device="gpu", precision="mixed_bfloat16"))
    text = said(cells, physical=1, noise=0.2, seed=3, faults=False, change=faster)
    assert "is undecided: " in text
    assert "Every other cell is slower beyond doubt." in text
    assert "though the ranking leaves" not in text


def test_it_says_what_would_separate_the_cells_that_tie() -> None:
    text = said(gpus())
    assert re.search(r"What would separate \w+.* from the fastest: about \d+ trials a cell \(--trials \d+\)", text)
    work = summarise(*make_run(gpus())).workloads[0]
    for rival in answers(summarise(*make_run(gpus())))[0].rivals:
        assert rival.trials is None or rival.trials > work.ranking[0].measured.trials  # type: ignore[union-attr]


def lost_but_one(cells: list[Cell]) -> Callable[[TrialRecord], TrialRecord]:
    """Of the first cell one trial ended well, and no trial took turns with another."""

    def change(record: TrialRecord) -> TrialRecord:
        apart = record.model_copy(update={"group": f"{record.group}-{record.cell_id}"})
        return failed(apart, "crashed", "died") if apart.cell == cells[0] and apart.block else apart

    return change


def test_a_cell_of_one_good_trial_is_said_to_be_uncompared_and_not_to_be_equal() -> None:
    cells = [make_cell("none"), *(make_cell("mirrored", 2, batch) for batch in (32, 128, 512))]
    made = make_run(cells, drift=0.004, faults=False, change=lost_but_one(cells))
    text, glance = "\n".join(answer_lines(summarise(*made))), "\n".join(brief_lines(summarise(*made)))
    for told in (text, glance):
        assert "1 other cell has too few good trials to be compared." in told
        assert "simplest" not in told
    assert "affordable" not in text
    assert "nothing can be told apart" not in text
    noisy = make_run(cells, drift=0.004, noise=0.9, seed=3, faults=False, change=lost_but_one(cells))
    [answer] = answers(summarise(*noisy))
    assert len(answer.rivals) == 3
    assert "1 other cell has too few good trials to be compared." in answer.separation
    assert "take them as equal" not in answer.separation


def test_how_long_that_takes_is_said_where_it_is_known() -> None:
    summary = summarise(*make_run(gpus()))
    assert re.search(r"\(--trials \d+, about [\d.,]+ (s|min|h) here\)", answers(summary, 30.0)[0].separation)


def test_each_workload_has_an_answer_of_its_own() -> None:
    text = said([make_cell("none"), make_cell("none", model="mlp")], faults=False)
    assert text.count("Fastest: ") == 2
    assert "mlp on digits" in text


def test_a_clear_winner_is_called_one() -> None:
    assert "Every other cell is slower beyond doubt." in said([make_cell("none", 1, 32), make_cell("none", 1, 512)])


def test_two_trials_that_leave_everything_open_are_called_too_few() -> None:
    assert "2 trials a cell cannot tell so many cells apart: use --trials 4 or more." in said(blocks=2, noise=0.15)


def test_one_page_advises_one_number_of_trials_where_there_is_one() -> None:
    summary = summarise(*make_run(gpus(), blocks=1))
    told = [*answer_lines(summary), *brief_lines(summary), *(remark.remedy for remark in remarks(summary))]
    numbers = re.findall(r"--trials (\d+)", "\n".join(told))
    assert len(numbers) >= 4
    assert set(numbers) == {"4"}
    assert sum("apart" in line and "--trials" in line for line in answer_lines(summary)) == 1


def test_more_trials_are_no_advice_where_a_cell_lost_all_but_one_of_enough() -> None:
    cells = [make_cell("none"), make_cell("mirrored", 2)]
    found = remarks(summarise(*make_run(cells, faults=False, change=lost_but_one(cells))))
    [remark] = [remark for remark in found if remark.text.startswith("One trial")]
    assert remark.remedy == ""


def test_beside_an_engine_that_compiles_whole_steps_it_is_said_that_tensorflow_did_not() -> None:
    compiles = {"engine": "jax", "unlike": {"compiler": "XLA compiles the whole step"}}

    def on_jax(record: TrialRecord) -> TrialRecord:
        told = compiles if record.cell.get("engine") == "jax" else {}
        return record.model_copy(update={"executed": record.executed.model_copy(update=told)})

    def told(*cells: Cell) -> str:
        return "\n".join(answer_lines(summarise(*make_run(list(cells), faults=False, change=on_jax))))

    jax, words = (
        make_cell("none", engine="jax"),
        "jax compiled the whole step with XLA, and TensorFlow runs a graph of ops",
    )
    assert words in told(jax, make_cell("none"))
    assert words not in told(jax, make_cell("none", xla=True))
    assert words not in told(jax, make_cell("none", engine="torch"))
    assert "PyTorch ran op after op beside jax: " in told(jax, make_cell("none", engine="torch"))
    assert "PyTorch" not in told(jax, make_cell("none"))


@pytest.mark.parametrize(("of_torch", "told"), [(1.0, True), (1.4, False)])
def test_engines_of_which_one_device_takes_more_processors_are_named_with_how_many(of_torch: float, told: bool) -> None:
    def busy(record: TrialRecord) -> TrialRecord:
        assert record.throughput is not None
        cores = of_torch if record.cell.get("engine") == "torch" else 1.4
        return record.model_copy(update={"cpu_seconds_per_example": cores / record.throughput})

    cells = [make_cell("none"), make_cell("none", engine="torch")]
    text = "\n".join(answer_lines(summarise(*make_run(cells, faults=False, change=busy))))
    found = re.findall(r"Without a strategy (\w+) keeps ([\d.]+) processors busy and (\w+) ([\d.]+): some of", text)
    assert [(many, few) for many, _, few, _ in found] == [(ENGINE, "torch")] * told
    assert [float(busy) for _, *most, _, least in found for busy in (*most, least)] == pytest.approx(
        [1.4, 1.0] * told, rel=0.05
    )


def test_float32_that_gpus_computed_as_tf32_is_said_beside_the_answer_and_in_the_table_of_what_ran() -> None:
    def on_new_cards(record: TrialRecord, engine: str = "") -> TrialRecord:
        told = {"arithmetic": "tf32", "engine": engine}
        return record.model_copy(update={"executed": record.executed.model_copy(update=told)})

    cells = [make_cell("none", device="gpu"), make_cell("mirrored", 2, device="gpu")]
    summary = summarise(*make_run(cells, faults=False, change=on_new_cards))
    assert "float32 was computed as TF32" in "\n".join(answer_lines(summary))
    assert all(executed_words(cell).endswith("; float32 computed as TF32") for cell in summary.workloads[0].ranking)
    assert "PyTorch" not in "\n".join(answer_lines(summary))
    torch = summarise(*make_run(cells, faults=False, change=functools.partial(on_new_cards, engine="torch")))
    assert "on GPUs that can, as JAX does, and PyTorch in convolutions; " in "\n".join(answer_lines(torch))
    plain = summarise(*make_run(cells, faults=False))
    assert "TF32" not in "\n".join(answer_lines(plain))
