"""What a reader sees before scrolling: the answer in three sentences at most, and one figure, whole."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.record.manifest import RunManifest
from harness.record.reading import load_run
from harness.record.trial import TrialRecord
from harness.report.page.report import write_report
from tests.comparisons import scaled
from tests.report.conftest import Open
from tests.synthetic import default_cells, make_cell, make_run

SCREEN = {"width": 1280, "height": 800}
BEFORE = """figure => [...document.querySelectorAll('#answer p, #answer .headline, #answer li')]
  .filter(it => it.compareDocumentPosition(figure) & Node.DOCUMENT_POSITION_FOLLOWING)
  .filter(it => !it.matches('.workload')).map(it => it.innerText)"""
WHOLE = make_cell("none", 1, 128, intra_op_threads=2)
Made = tuple[RunManifest, list[TrialRecord]]


def kept() -> Made:
    run = load_run(Path(__file__).parents[2] / "results" / "reference")
    return run.manifest, run.trials


def of_whole(factor: float) -> Made:
    change: Callable[[TrialRecord], TrialRecord] = lambda it: scaled(it, factor) if it.cell == WHOLE else it  # noqa: E731
    return make_run([*default_cells(), WHOLE], change=change)


@pytest.mark.parametrize(
    "make",
    [
        kept,
        make_run,
        lambda: of_whole(1.0),
        lambda: of_whole(0.3),
        lambda: make_run(blocks=2),
        lambda: make_run(blocks=1),
    ],
    ids=["kept", "one device", "pays", "does not pay", "two trials", "one trial"],
)
def test_the_first_figure_ends_within_the_first_screen_after_three_sentences_at_most(
    opened: Open, tmp_path: Path, make: Callable[[], Made]
) -> None:
    write_report(*make(), tmp_path / "page.html")
    with opened(tmp_path / "page.html") as it:
        it.page.set_viewport_size(SCREEN)
        figure = it.page.locator("figure").first
        box = figure.bounding_box()
        assert box is not None
        assert box["height"] > 100
        assert box["y"] + box["height"] <= SCREEN["height"]
        told = figure.evaluate(BEFORE)
        assert 1 <= sum(len(re.findall(r"[.?!](?=\s|$)", text)) for text in told) <= 3, told
