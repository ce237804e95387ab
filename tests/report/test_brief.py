"""The answer at a glance, which a sweep ends with."""

import pytest

from harness.analysis import summarise
from harness.report.words.brief import brief_lines
from harness.spec.cell import Cell
from tests.comparisons import scaled
from tests.synthetic import default_cells, make_cell, make_run, unproved

WHOLE = make_cell("none", 1, 128, intra_op_threads=2)


def brief(cells: list[Cell], **kwargs: object) -> tuple[str, ...]:
    return brief_lines(summarise(*make_run(cells, **kwargs)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("whole", "fastest", "pays"),
    [
        (1.0, "Distribute: mirrored, 2 replicas, batch 128", "× [1.8"),
        (0.3, "Do not distribute: no strategy on all 2 cores, batch 128", "On these virtual devices do not distribute"),
        (None, "Fastest: mirrored, 2 replicas, batch 128", "Whether distributing pays is unknown"),
    ],
)
def test_it_says_what_is_fastest_whether_that_pays_what_ties_and_what_is_wrong_in_five_lines(
    whole: float | None, fastest: str, pays: str
) -> None:
    cells = [*default_cells(), *([WHOLE] if whole else [])]
    lines = brief(cells, change=lambda it: scaled(it, whole or 1.0) if it.cell == WHOLE else it)
    assert len(lines) <= 5
    assert lines[0].startswith(fastest)
    assert any(pays in line for line in lines[:2])
    assert any("cannot be told apart" in line or "slower beyond doubt" in line for line in lines)
    assert "2 wrong result, 10 not supported here and 1 timed out" in lines[-1]


def test_what_is_unproved_is_told_in_the_line_of_what_is_wrong() -> None:
    cells = [make_cell(), make_cell("mirrored", 2), make_cell("mirrored", 3)]
    lines = brief(cells, status="interrupted", change=lambda it: unproved(it) if it.cell.replicas == 2 else it)
    assert "1 measured cell is unproved and left out of the ranking" in lines[-1]
    assert "The sweep was interrupted" in lines[-1]


def test_each_of_several_answers_names_a_cell_where_whether_distributing_pays_is_undecided_too() -> None:
    cells = [make_cell(*of, model=model) for model in ("mlp", "mnist_cnn") for of in (("none",), ("mirrored", 2))]
    lines = brief(cells, faults=False, blocks=1)
    for model, line in zip(("mlp", "mnist_cnn"), lines, strict=False):
        assert line.startswith(f"{model} on digits")
        assert "Undecided: one trial a cell cannot tell whether distributing pays. Fastest: mirrored, 2" in line


def test_several_answers_are_a_line_each_and_the_rest_is_counted() -> None:
    cells = [make_cell(model=model) for model in ("mlp", "mnist_cnn", "a.b:c", "a.b:d", "a.b:e")]
    lines = brief(cells, faults=False)
    assert [line.partition(" on ")[0] for line in lines[:3]] == ["mlp", "mnist_cnn", "a.b:c"]
    assert lines[3:] == (
        "And 2 answers more, which show prints and the report has.",
        "5 rankings, for another model is other work.",
    )
