"""The answer in a few plain sentences."""

import re

from harness.analysis import summarise
from harness.record.trial import Executed, TrialRecord
from harness.report.words.answer import answer_lines, answers
from harness.spec.cell import Cell
from tests.comparisons import scaled
from tests.synthetic import default_cells, make_cell, make_run, unproved


def gpus() -> list[Cell]:
    """The default sweep as it would be on devices of their own."""
    return [cell for cell in default_cells(device="gpu") if cell.strategy != "tpu"]


def said(*args: object, **kwargs: object) -> str:
    return "\n".join(answer_lines(summarise(*make_run(*args, **kwargs))))  # type: ignore[arg-type]


def test_it_names_the_fastest_its_interval_and_whether_distributing_pays() -> None:
    text = said(gpus())
    assert re.match(
        r"Distribute: mirrored, 2 replicas, batch 128 a replica, reduction_to_one_device, 12,300 examples/s ± [\d.]+ "
        r"%, 1\.87× \[1\.\d\d – 1\.\d\d\] no strategy\.\n",
        text,
    )
    assert "Fastest: mirrored, 2 replicas, batch 128 a replica, reduction_to_one_device, at 12,300" in text
    assert "Distributing pays: the fastest has 1.87× [" in text
    assert "12 of 13 distributed cells gain" in text


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
    """One replica without a strategy is slow, `one_device` so unsteady that it may be anything."""
    spread = (0.5, 1.1, 1.3, 2.0)[record.block] if record.cell.strategy == "one_device" else 1.0
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


def test_unsteady_trials_are_told_with_those_that_the_answer_rests_on() -> None:
    def cut_off(record: TrialRecord) -> TrialRecord:
        assert record.windows is not None
        steady = record.cell.strategy == "none" or record.block > 1
        return record.model_copy(update={"windows": record.windows.model_copy(update={"steady": steady})})

    cells = [make_cell("none"), make_cell("mirrored", 1), make_cell("mirrored", 2)]
    text = said(cells, faults=False, change=cut_off)
    assert (
        "4 of 12 trials, in 2 of 3 cells, were not steady when warm-up was cut off, so their throughput may include "
        "warm-up (2 of 4 of the fastest cell, none of 4 of the fastest without a strategy)."
    ) in text


def test_unsteady_trials_of_others_are_told_apart_from_those_of_the_answer() -> None:
    def cut_off(record: TrialRecord) -> TrialRecord:
        assert record.windows is not None
        steady = record.cell.replicas == 2 or record.cell.strategy == "none"
        return record.model_copy(update={"windows": record.windows.model_copy(update={"steady": steady})})

    text = said([make_cell("none"), make_cell("mirrored", 1), make_cell("mirrored", 2)], faults=False, change=cut_off)
    assert "4 of 12 trials, in 1 of 3 cells, were not steady" in text
    assert "(the fastest cell and the fastest without a strategy were steady in every trial)" in text


def test_a_single_unsteady_trial_of_a_cell_that_matters_to_no_answer_is_left_to_the_details() -> None:
    summary = summarise(*make_run())
    assert sum(cell.measured.unsteady for cell in summary.cells if cell.measured) > 0
    assert "steady" not in said()


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


def test_on_virtual_devices_the_headline_is_that_they_are() -> None:
    text = said()
    assert text.startswith("Virtual devices: this shows overhead, not hardware scaling.\n")
    assert "On these virtual devices distributing pays: the fastest has 1.88× [1.86 – 1.89]" in text
    assert "What a strategy costs here: the best, mirrored ×2 b128 reduction_to_one_device, reaches 9" in text
    slower = said([make_cell("none"), make_cell("mirrored", 2)], physical=1)
    assert "On these virtual devices do not distribute: the best" in slower


def test_undecided_is_a_headline_and_says_what_would_decide() -> None:
    cells = [make_cell("none", device="gpu"), make_cell("mirrored", 2, device="gpu")]
    text = said(cells, physical=1, noise=0.5, seed=3, faults=False)
    assert text.startswith("Undecided: these trials cannot tell whether distributing pays.")
    once = said(cells, blocks=1, faults=False)
    assert once.startswith("Undecided: one trial a cell cannot tell whether distributing pays.")


def test_it_says_what_would_separate_the_cells_that_tie() -> None:
    text = said(gpus())
    assert re.search(r"What would separate \w+.* from the fastest: about \d+ trials a cell \(--trials \d+\)", text)
    work = summarise(*make_run(gpus())).workloads[0]
    for rival in answers(summarise(*make_run(gpus())))[0].rivals:
        assert rival.trials is None or rival.trials > work.ranking[0].measured.trials  # type: ignore[union-attr]


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
    assert "2 trials a cell cannot tell so many cells apart: use --trials 4 or more." in said(blocks=2, noise=0.05)
