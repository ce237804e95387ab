"""What is said while a sweep runs: figures, and no word of a verdict."""

import re

import pytest

from harness.analysis import summarise
from harness.report.terminal.interim import so_far, summary_so_far
from harness.spec.work import Cell
from tests.comparisons import scaled
from tests.synthetic import default_cells, make_cell, make_run

VERDICT = re.compile(r"doubt|told apart|undecided|\bpays\b|leads|faster|slower|fastest|not distribut|equivalent")


def lines(cells: list[Cell], **more: object) -> tuple[str, ...]:
    """Of a finished run too, which would have a verdict."""
    return so_far(summarise(*make_run(cells, **more)))  # type: ignore[arg-type]


@pytest.mark.parametrize("blocks", [1, 2, 6])
@pytest.mark.parametrize("factor", [0.2, 1.0, 5.0])
def test_however_clear_the_records_are_no_line_is_a_verdict(blocks: int, factor: float) -> None:
    cells = [make_cell(), make_cell(intra_op_threads=2), make_cell("mirrored", 2), make_cell("mirrored", 3)]
    said = lines(
        cells,
        faults=False,
        blocks=blocks,
        noise=0.001,
        change=lambda it: scaled(it, factor) if it.cell.replicas > 1 else it,
    )
    assert len(said) == 1
    assert not VERDICT.search(said[0])
    known = r"(± [\d.]+ %|\[[\d,]+ – [\d,]+\]) in these minutes"
    highest = rf"^\S.* [\d,.]+ examples/s( {known})?, the highest so far, then .* with [\d.]+ % of that;"
    assert re.search(highest, said[0])
    assert re.search(r"; distributed [\d.]+× no strategy", said[0])


def test_what_is_relative_to_one_virtual_device_says_so() -> None:
    [line] = lines([make_cell(), make_cell("mirrored", 2)], faults=False)
    assert line.endswith(" %, of one device")
    whole = make_cell(intra_op_threads=2)
    [line] = lines(
        [make_cell(), whole, make_cell("mirrored", 2)],
        faults=False,
        change=lambda it: scaled(it, 0.6) if it.cell == whole else it,
    )
    assert re.search(r"distributed [\d.]+× no strategy on all 2 cores ± [\d.]+ %$", line)


def test_each_workload_has_its_line_once_there_is_a_record() -> None:
    cells = [make_cell(model=model) for model in ("mlp", "mnist_cnn")]
    assert [line.split(" on ")[0] for line in lines(cells, faults=False)] == ["mlp", "mnist_cnn"]
    manifest, trials = make_run(default_cells((1,), (32,)))
    assert summary_so_far(manifest, trials) is not None
    assert summary_so_far(manifest, []) is None
