"""The answer in a few plain sentences."""

import functools
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.analysis import summarise
from harness.record.manifest import RunManifest
from harness.record.trial import Executed, TrialRecord
from harness.report.tables.sweep import executed_words
from harness.report.words import separation
from harness.report.words.answer import answer_lines, answers
from harness.report.words.brief import brief_lines
from harness.report.words.problems import remarks
from harness.report.words.separation import Rival, separation_words
from harness.spec.axes import ENGINE
from harness.spec.cell import trained
from harness.spec.work import Cell
from tests.comparisons import scaled
from tests.report.answers import said
from tests.synthetic import default_cells, failed, make_cell, make_run, paging, unproved, warming

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
    assert summary.workloads[0].answer.more_trials == 21, "the best, which is known, would say fewer"
    text, glance = "\n".join(answer_lines(summary)), "\n".join(brief_lines(summary))
    assert "is undecided: the best distributed cell (mirrored, 2 replicas, " in text
    assert "; it is slower, but of 1 of 3 distributed cells that is not known; about 21 trials a cell " in text
    assert "when corrected" not in text
    assert ", and 1 of 3 may not be slower; about 21 trials " in glance


@pytest.mark.parametrize(("share", "page_faults", "told"), [(0.4, 5000, True), (0.1, 5000, False), (0.4, 5, False)])
def test_a_step_that_pays_for_memory_which_is_given_back_is_told_with_what_ends_it(
    share: float, page_faults: int, told: bool
) -> None:
    def pays(record: TrialRecord) -> TrialRecord:
        distributed = record.cell.replicas_in_sync > 1
        return paging(record, share, page_faults) if distributed else paging(record, 0.02, 30)

    summary = summarise(*make_run([make_cell(), make_cell("mirrored", 2)], faults=False, change=pays))
    pays_for = "40 % of its processor time in the kernel, with 5,000 page faults a step"
    words = f"mirrored ×2 b32 spends {pays_for} (none ×1 b32: 2 %)"
    assert (words in "\n".join(answer_lines(summary))) == told
    found = [remark for remark in remarks(summary) if "gives back" in remark.text]
    assert [remark.cells for remark in found] == [(f"mirrored ×2 b32 ({pays_for})",)] * told


def test_where_the_memory_is_kept_already_its_variable_is_not_told_again() -> None:
    manifest, trials = make_run([make_cell("mirrored", 2)], faults=False, change=paging)
    facts = {**manifest.facts, "env.MALLOC_TOP_PAD_": "67108864"}
    kept = manifest.model_copy(update={"machine": manifest.machine.model_copy(update={"facts": facts})})
    for given, told in ((manifest, 1), (kept, 0)):
        assert len([remark for remark in remarks(summarise(given, trials)) if "gives back" in remark.text]) == told


def test_page_faults_that_were_not_counted_are_not_told() -> None:
    summary = summarise(*make_run([make_cell(), make_cell("mirrored", 2)], faults=False))
    assert all(cell.measured is None or cell.measured.paging is None for cell in summary.cells)
    assert "page faults" not in "\n".join(answer_lines(summary))


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
    assert "Of 34 cells, without a throughput: 2 wrong, 10 not supported here and 1 timed out." in said()


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
    assert text.startswith("Undecided whether distributing pays; until then take no strategy, one device, batch 32.\n")
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
    assert "Every other cell is slower (95 %, all together)." in text
    assert "though the ranking leaves" not in text


def test_it_says_what_would_separate_the_cells_that_tie() -> None:
    text = said(gpus())
    assert re.search(r"What would separate \w+.* from the fastest: about \d+ trials a cell \(--trials \d+\)", text)
    work = summarise(*make_run(gpus())).workloads[0]
    for rival in answers(summarise(*make_run(gpus())))[0].rivals:
        assert rival.trials is None or rival.trials > work.ranking[0].measured.trials  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("equal", "words"),
    [
        (1, "1 differs by so little that no affordable number would do: take it as equal."),
        (2, "2 differ by so little that no affordable number would do: take them as equal."),
    ],
)
def test_of_one_cell_that_is_as_good_as_equal_it_speaks_as_of_one(
    monkeypatch: pytest.MonkeyPatch, equal: int, words: str
) -> None:
    tied = [Rival("a", "99 %", True, 20, ""), *(Rival("b", "100 %", True, None, "") for _ in range(equal))]
    monkeypatch.setattr(separation, "rivals", lambda _: tied)
    [work] = summarise(*make_run(gpus())).workloads
    assert words in separation_words(work, None)


def lost_but_one(cells: list[Cell]) -> Callable[[TrialRecord], TrialRecord]:
    """Of the first cell one trial ended well, and no trial took turns with another."""

    def change(record: TrialRecord) -> TrialRecord:
        apart = record.model_copy(update={"group": f"{record.group}-{record.cell_id}"})
        return failed(apart, "crashed", "died") if apart.cell == cells[0] and apart.block else apart

    return change


def test_a_base_of_one_good_trial_beside_a_cell_of_several_is_not_said_to_be_one_trial_a_cell() -> None:
    cells = [make_cell("none", device="gpu"), make_cell("mirrored", 2, device="gpu")]

    def once(record: TrialRecord) -> TrialRecord:
        return failed(record, "crashed", "died") if record.cell == cells[0] and record.block else record

    made = make_run(cells, blocks=3, faults=False, change=once)
    text, glance = "\n".join(answer_lines(summarise(*made))), "\n".join(brief_lines(summarise(*made)))
    for told in (text, glance):
        assert "one trial a cell" not in told
        assert "cannot be known from too few good trials: " in told
    assert text.startswith("Undecided: too few good trials cannot tell whether distributing pays.")
    assert "With too few good trials nothing can be told apart: --trials 4 or more." in text


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
    assert "Every other cell is slower (95 %, all together)." in said(
        [make_cell("none", 1, 32), make_cell("none", 1, 512)]
    )


def test_two_trials_that_leave_everything_open_are_told_one_number_that_would_decide() -> None:
    text = said(blocks=2, noise=0.15)
    assert "cannot tell so many cells apart" not in text
    assert len(re.findall(r"about \d+ trials a cell", text)) == 1


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
    assert f"{words}, each by itself, unless it is asked to compile: --xla false,true" in told(jax, make_cell("none"))
    both = told(jax, make_cell("none"), make_cell("none", xla=True))
    assert f"{words}, each by itself, unless it is asked to compile." in both, "and this run has"
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
    for engine, does in {"torch": "PyTorch does in convolutions", "jax": "JAX does"}.items():
        others = summarise(*make_run(cells, faults=False, change=functools.partial(on_new_cards, engine=engine)))
        assert f"on GPUs that can, as {does}; " in "\n".join(answer_lines(others))
    plain = summarise(*make_run(cells, faults=False))
    assert "TF32" not in "\n".join(answer_lines(plain))
