"""The answer in a few plain sentences."""

import re

from harness.analysis import summarise
from harness.report.answer import answer_lines, answers
from harness.spec.cell import Cell
from tests.synthetic import default_cells, make_cell, make_run


def gpus() -> list[Cell]:
    """The default sweep as it would be on devices of their own."""
    return [cell for cell in default_cells(device="gpu") if cell.strategy != "tpu"]


def said(*args: object, **kwargs: object) -> str:
    return "\n".join(answer_lines(summarise(*make_run(*args, **kwargs))))  # type: ignore[arg-type]


def test_it_names_the_fastest_its_interval_and_whether_distributing_pays() -> None:
    text = said(gpus())
    assert text.startswith("Distribute: mirrored, 2 replicas, batch 128 a replica, reduction_to_one_device, 12,300")
    assert "Fastest: mirrored, 2 replicas, batch 128 a replica, reduction_to_one_device, at 12,300" in text
    assert "Distributing pays: it has 1.87× [" in text
    assert "12 of 13 distributed cells gain" in text


def test_it_names_what_cannot_be_told_apart_and_the_simplest_of_it() -> None:
    assert "3 other cells cannot be told apart from it; the simplest of them is mirrored, 2 replicas" in said()


def test_it_counts_what_has_no_throughput() -> None:
    assert "Of 34 cells, without a throughput: 2 wrong result, 10 not supported here and 1 timed out." in said()


def test_it_warns_that_a_larger_global_batch_is_not_the_same_training() -> None:
    assert "It takes 256 examples a step where the fastest cell without a strategy takes 128" in said()


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
    assert "On these virtual devices distributing pays: it has 1.88× [1.86 – 1.89]" in text
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
