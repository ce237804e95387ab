"""The answer at a glance, which a sweep ends with."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.analysis import summarise
from harness.record.reading import load_run
from harness.report.words.answer import answer_lines
from harness.report.words.brief import brief_lines
from harness.spec.cell import trained
from harness.spec.work import Cell
from tests.comparisons import scaled
from tests.report.answers import half_and_whole, no_base_in_half
from tests.report.golden import RUNS
from tests.synthetic import default_cells, make_cell, make_run, unproved

REFERENCE = Path(__file__).parents[2] / "results" / "reference"
WHOLE = make_cell("none", 1, 128, intra_op_threads=2)


def brief(cells: list[Cell], **kwargs: object) -> tuple[str, ...]:
    return brief_lines(summarise(*make_run(cells, **kwargs)))  # type: ignore[arg-type]


def rows_of_80(lines: Sequence[str]) -> int:
    """Rows of a terminal that has as many columns; it breaks a line anywhere."""
    return sum(-(-len(line) // 80) for line in lines)


@pytest.mark.parametrize(
    ("whole", "fastest", "pays"),
    [
        (1.0, "Distribute: mirrored ×2 b128", "× [1.8"),
        (0.3, "Do not distribute: no strategy on all 2 cores, batch 128", "Distributed, at best 0.5"),
        (None, "Fastest: mirrored ×2 b128", "Whether distributing pays is unknown: 1.88× [1.86 – 1.89] one device"),
    ],
)
def test_it_says_what_is_fastest_whether_that_pays_what_ties_and_what_is_wrong(
    whole: float | None, fastest: str, pays: str
) -> None:
    cells = [*default_cells(), *([WHOLE] if whole else [])]
    lines = brief(cells, change=lambda it: scaled(it, whole or 1.0) if it.cell == WHOLE else it)
    assert lines[0].startswith(fastest)
    assert any(pays in line for line in lines[:2])
    assert any(
        "tie with it; the simplest: mirrored ×2 b128." in line or "slower (95 %, all together)" in line
        for line in lines
    )
    assert "2 wrong, 10 not supported here and 1 timed out" in lines[-1]


@pytest.mark.parametrize("name", RUNS)
def test_with_the_two_lines_about_records_and_report_it_fits_into_eight_rows_of_eighty_columns(name: str) -> None:
    assert rows_of_80(brief_lines(summarise(*RUNS[name]()))) <= 6


@pytest.mark.parametrize("whole", [1.0, 0.3, None])
@pytest.mark.parametrize("blocks", [1, 2, 4])
def test_so_it_does_whatever_the_verdict(whole: float | None, blocks: int) -> None:
    cells = [*default_cells(), *([WHOLE] if whole else [])]
    change = lambda it: scaled(it, whole or 1.0) if it.cell == WHOLE else it  # noqa: E731
    assert rows_of_80(brief(cells, blocks=blocks, change=change)) <= 6


def test_the_kept_run_is_answered_in_six_rows_of_eighty_columns() -> None:
    run = load_run(REFERENCE)
    lines = brief_lines(summarise(run.manifest, run.trials))
    assert rows_of_80(lines) <= 6
    assert lines[0] == "Fastest: central_storage ×3 b128, 13,200 examples/s ± 4.7 % in these minutes."
    assert lines[1] == (
        "Whether distributing pays is undecided: 1.02× [0.980 – 1.06] no strategy on all 2 cores; "
        "about 15 trials a cell would decide it."
    )
    assert lines[2] == "4 others tie with it; the simplest: no strategy on all 2 cores, batch 128."


def test_a_throughput_that_is_not_known_is_told_with_how_to_know_it() -> None:
    wide = summarise(*make_run([make_cell()], blocks=2, change=lambda it: scaled(it, 1 + 2 * it.block)))
    remedy = "2 trials cannot tell the throughput here: use --trials 4 or more."
    assert f"[wider than 100-fold] in these minutes. {remedy}" in brief_lines(wide)[0]
    assert remedy in answer_lines(wide)
    known = summarise(*make_run([make_cell()], blocks=2, drift=0.01))
    assert "--trials" not in " ".join([*brief_lines(known), *answer_lines(known)])


def test_what_distributing_comes_to_is_said_of_its_base_case_where_another_cell_is_the_fastest() -> None:
    first, second, *_ = brief(half_and_whole(), faults=False, change=no_base_in_half)
    assert first.startswith("Fastest: mirrored ×2 b32 mixed_bfloat16, ")
    assert re.fullmatch(
        r"In float32 distributing does not pay: mirrored ×2 b32, float32 has 0\.\d+× \[[\d. –]+\] no strategy "
        r"\(float32\)\.",
        second,
    )
    cells = [make_cell(), make_cell("one_device"), make_cell("mirrored", 2)]
    slow = {"none": 1.0, "one_device": 0.5, "mirrored": 8.0}
    first, second, *_ = brief(cells, faults=False, change=lambda it: scaled(it, slow[trained(it.cell).strategy]))
    assert first.startswith("Do not distribute: one_device ×1 b32, ")
    assert re.match(r"Distributed, at best 0\.\d+× \[[\d. –]+\] no strategy: mirrored ×2 b32", second)


def test_what_is_unproved_is_told_in_the_line_of_what_is_wrong() -> None:
    cells = [make_cell(), make_cell("mirrored", 2), make_cell("mirrored", 3)]
    lines = brief(cells, status="interrupted", change=lambda it: unproved(it) if it.cell.replicas == 2 else it)
    assert "1 measured cell is unproved and left out of the ranking" in lines[-1]
    assert "The sweep was interrupted" in lines[-1]


def test_each_of_several_answers_names_a_cell_where_whether_distributing_pays_is_undecided_too() -> None:
    cells = [make_cell(*of, model=model) for model in ("mlp", "mnist_cnn") for of in (("none",), ("mirrored", 2))]
    lines = brief(cells, faults=False, blocks=1)
    for model, line in zip(("mlp", "mnist_cnn"), lines, strict=False):
        assert line.startswith(f"{model}: The highest throughput: mirrored ×2 b32, 7,4")
        assert line.endswith(" Undecided: one trial a cell cannot tell whether distributing pays.")


def test_several_answers_are_a_line_each_as_far_as_there_is_room_and_the_rest_is_counted() -> None:
    cells = [make_cell(model=model) for model in ("mlp", "mnist_cnn", "a.b:c", "a.b:d", "a.b:e")]
    lines = brief(cells, faults=False)
    assert [line.partition(": The only cell")[0] for line in lines[:2]] == ["mlp", "mnist_cnn"]
    assert lines[2:] == (
        "And 3 answers more, which show prints and the report has.",
        "5 rankings, for another model is other work.",
    )
    assert rows_of_80(lines) <= 6
