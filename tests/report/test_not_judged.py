"""A sweep that is under way or was stopped has figures, and is not judged, wherever one looks at it."""

import csv
import functools
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.analysis import RunSummary, summarise
from harness.record.manifest import RunManifest
from harness.record.trial import TrialRecord
from harness.report.export import exporters
from harness.report.page.report import render, write_report
from harness.report.tables.cells import cell_frame
from harness.report.terminal.run import run_text
from harness.report.words.answer import answer_lines
from harness.report.words.brief import brief_lines
from harness.spec.cell import trained
from tests.comparisons import scaled, validation
from tests.synthetic import make_cell, make_run

JUDGING = re.compile(
    r"Distribute:|istributing pays|ot distribute|Undecided|undecided|cannot be told apart|beyond doubt|may be as fast"
    r"|slower \(95|Fastest:|the fastest has|knee is at|still rises|simplest|would separate"
    r"|[Tt]he fastest (cell|dis|with|to the slowest)|next fastest|\d fastest of"
)
OPEN = ["interrupted", "running"]
CELLS = [
    *(make_cell(batch_size=batch, **keys) for batch in (32, 128, 512) for keys in ({}, {"intra_op_threads": 2})),
    *(make_cell("mirrored", 2, 128, op) for op in ("auto", "hierarchical_copy", "reduction_to_one_device")),
]


def run_of(status: str) -> tuple[RunManifest, list[TrialRecord]]:
    """Three of four blocks, whose differences are clear, and a knee at batch 128."""

    def change(record: TrialRecord) -> TrialRecord | None:
        slower = scaled(record, 1.2 if trained(record.cell).batch_size == 512 else 1.0)
        return slower if record.block < 3 else None

    return make_run(CELLS, status=status, faults=False, noise=0.001, change=change)


Surfaces = Callable[[str], dict[str, str]]


@pytest.fixture(scope="module")
def surfaces() -> Surfaces:
    """What is said of a run, by its status; made once of each."""
    return functools.cache(surfaces_of)


def surfaces_of(status: str) -> dict[str, str]:
    """What is said of the run, by where; of the page all up to how the method works, which is the same of any run."""
    manifest, trials = run_of(status)
    summary = summarise(manifest, trials)
    data = SimpleNamespace(manifest=manifest, trials=trials, rank_unproved=False, results=Path("nowhere"))
    page = render(manifest, trials, summary)
    return {
        "html": page,
        "page": re.sub(
            r"(?s)<script.*?</script>|<style.*?</style>|<[^>]+>", " ", page.partition('id="environment"')[0]
        ),
        "show": run_text(manifest, trials, summary, 200, False),
        "brief": "\n".join(brief_lines(summary)),
        "markdown": exporters()["markdown"].export(data, None) or "",
    }


@pytest.mark.parametrize("status", OPEN)
@pytest.mark.parametrize("where", ["page", "show", "brief", "markdown"])
def test_nothing_judges_it_and_the_figures_are_there(surfaces: Surfaces, status: str, where: str) -> None:
    text = " ".join(surfaces(status)[where].split())
    found = JUDGING.search(text)
    assert found is None, text[max(0, found.start() - 200) : found.end() + 50]
    assert "Not judged: the sweep has not finished." in text
    assert "The highest throughput so far: " in text
    assert re.search(r"--resume \S+ runs the rest", text)


@pytest.mark.parametrize("where", ["page", "show", "markdown"])
def test_the_same_trials_are_judged_once_the_sweep_has_finished(surfaces: Surfaces, where: str) -> None:
    text = surfaces("finished")[where]
    assert JUDGING.search(text)
    assert "Not judged" not in text


@pytest.mark.parametrize(("status", "words"), [("interrupted", "was interrupted"), ("running", "has not finished")])
def test_it_says_why(status: str, words: str) -> None:
    manifest, trials = run_of(status)
    text = "\n".join(answer_lines(summarise(manifest, trials)))
    assert f"The sweep {words}: 27 of 36 planned trials are recorded. It is not judged before its end;" in text


@pytest.mark.parametrize("status", OPEN)
def test_what_machines_read_has_the_figures_and_no_verdict(status: str) -> None:
    manifest, trials = run_of(status)
    data = SimpleNamespace(manifest=manifest, trials=trials, rank_unproved=False, path=None, results=Path("nowhere"))
    document = json.loads(exporters()["json"].export(data, None) or "")
    [answer] = [item["answer"] for item in document["answers"]]
    assert (answer["verdict"], answer["tied_ids"], answer["paying"]) == ("not_judged", [], 0)
    assert answer["simplest_id"] is answer["simplest_distributed_id"] is answer["more_trials"] is None
    assert answer["speed_up"]["value"] > 1
    assert answer["throughput"]["low"] > 0
    rows = list(csv.DictReader(io.StringIO(exporters()["cells"].export(data, None) or "")))
    assert {row["with_best"] for row in rows} == {""}
    assert {float(row["throughput_examples_per_s"]) > 0 for row in rows} == {True}
    assert cell_frame([data])["with_best"].isna().all()  # type: ignore[list-item]


@pytest.mark.parametrize("status", [*OPEN, "finished"])
def test_only_a_finished_sweep_has_a_knee_and_verdicts_on_ops(surfaces: Surfaces, status: str) -> None:
    page = surfaces(status)["html"]
    judged = status == "finished"
    assert ("the knee</td>" in page) == judged
    assert bool(re.search(r">(slower|faster|equivalent|undecided)</td>", page)) == judged


def test_the_rank_of_a_cell_is_a_figure_and_stays() -> None:
    def order(summary: RunSummary) -> list[str]:
        return [cell.cell_id for work in summary.workloads for cell in work.ranking]

    assert order(summarise(*run_of("running"))) == order(summarise(*run_of("finished")))


def test_a_noise_floor_that_no_difference_could_pass_takes_no_page_away(tmp_path: Path) -> None:
    manifest, trials = run_of("finished")
    write_report(manifest, trials, tmp_path / "page.html", validation(paired=1.4))
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Judged by the default margins: delta: the noise floor that validate measured" in page
    assert "Judged by the default margins" not in render(manifest, trials, summarise(manifest, trials))
