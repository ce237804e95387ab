"""The table of every trial, used as a person uses it: search, sort, turn pages, open, copy, without a mouse."""

import csv
import io
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from harness.report.page.report import write_report
from tests.report.conftest import Open
from tests.synthetic import default_cells, make_run

ROWS = "#trials-table tbody tr"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """136 trials of 34 cells, some failed."""
    file = tmp_path_factory.mktemp("trials") / "report.html"
    manifest, trials = make_run()
    write_report(manifest, trials, file)
    return file


def column(page: Any, number: int) -> list[str]:
    texts: list[str] = page.locator(f"{ROWS} > :nth-child({number})").all_inner_texts()
    return texts


def test_search_and_choices_narrow_the_table_and_say_how_far(opened: Open, report: Path) -> None:
    with opened(report) as it:
        assert it.page.locator("#trials-count").inner_text() == "136 trials"
        assert it.page.locator(ROWS).count() == 25
        it.page.get_by_label("Search").fill("mirrored b32 NCCL")
        assert it.page.locator("#trials-count").inner_text() == "8 of 136 trials"
        assert all("nccl" in cell for cell in column(it.page, 2))
        it.page.locator("#trials-filters").get_by_label("replicas").select_option("3")
        assert it.page.locator("#trials-count").inner_text() == "4 of 136 trials"
        it.page.get_by_label("Search").fill("no such thing")
        assert column(it.page, 1) == ["No trial matches."]
        it.page.get_by_role("button", name="Clear").click()
        it.page.wait_for_function("document.getElementById('trials-count').textContent === '136 trials'")
        it.quiet()


def test_reasons_can_be_searched(opened: Open, report: Path) -> None:
    with opened(report) as it:
        it.page.get_by_label("Search").fill("signal 11")
        assert column(it.page, 4) == ["crashed"]


def test_a_heading_sorts_and_tells_assistive_technology_so(opened: Open, report: Path) -> None:
    with opened(report) as it:
        it.page.locator("#trials-pager").get_by_label("rows").select_option("200")
        heading = it.page.locator("#trials-table").get_by_role("columnheader", name="examples/s")
        for direction, descending in (("ascending", False), ("descending", True)):
            heading.get_by_role("button").press("Enter")
            assert heading.get_attribute("aria-sort") == direction
            known = [float(text.replace(",", "")) for text in column(it.page, 5) if text != "–"]
            assert known == sorted(known, reverse=descending)
            assert len(known) > 50
            assert column(it.page, 5)[-1] == "–", "what has no throughput comes last either way"
        assert it.page.locator("#trials-table th[aria-sort]").count() == 1


def test_pages_are_turned_and_every_trial_is_on_one(opened: Open, report: Path) -> None:
    with opened(report) as it:
        seen = column(it.page, 1)
        assert it.page.get_by_role("button", name="Previous").is_disabled()
        while it.page.get_by_role("button", name="Next").is_enabled():
            it.page.get_by_role("button", name="Next").click()
            seen += column(it.page, 1)
        assert seen == [str(number) for number in range(1, 137)]


def test_what_is_filtered_is_downloaded_and_copied_as_csv(opened: Open, report: Path) -> None:
    with opened(report) as it:
        it.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        it.page.get_by_label("Search").fill("central_storage ×3")
        with it.page.expect_download() as download:
            it.page.get_by_role("button", name="Download CSV").click()
        text = Path(download.value.path()).read_text(encoding="utf-8")
        it.page.get_by_role("button", name="Copy as CSV").click()
        it.page.get_by_role("button", name="Copied").wait_for()
        assert it.page.evaluate("navigator.clipboard.readText()") == text
        it.quiet()
    _, trials = make_run()
    rows = list(csv.DictReader(io.StringIO(text)))
    asked = [(n, trial) for n, trial in enumerate(trials, 1) if trial.cell.label.startswith("central_storage ×3")]
    assert [row["trial"] for row in rows] == [str(n) for n, _ in asked]
    for row, (_, trial) in zip(rows, asked, strict=True):
        assert row["cell_id"] == trial.cell_id
        assert row["cell.batch_size"] == str(trial.cell.batch_size)
        assert row["reason"] == (trial.reason or "")
        rate = trial.throughput_examples_per_s
        assert (float(row["throughput_examples_per_s"]) if row["throughput_examples_per_s"] else None) == (
            None if rate is None else float(f"{rate:.6g}")
        )


def test_enter_opens_a_trial_and_escape_closes_it_where_one_was(opened: Open, report: Path) -> None:
    with opened(report) as it:
        button = it.page.get_by_role("button", name="Trial 2: open")
        button.focus()
        it.page.keyboard.press("Enter")
        dialog = it.page.get_by_role("dialog")
        dialog.wait_for()
        assert dialog.get_by_role("heading", level=2).inner_text().startswith("Trial 2: ")
        it.page.keyboard.press("Escape")
        dialog.wait_for(state="hidden")
        assert it.page.evaluate("document.activeElement.textContent") == "2"
        it.quiet()


def test_a_click_opens_windows_phases_environment_checks_and_command(opened: Open, report: Path) -> None:
    _, trials = make_run()
    number = next(n for n, trial in enumerate(trials[:25]) if trial.status == "ok")
    trial = trials[number]
    assert trial.windows is not None
    with opened(report) as it:
        it.page.locator(ROWS).nth(number).locator("td").nth(2).click()
        dialog = it.page.get_by_role("dialog")
        dialog.wait_for()
        assert dialog.locator("svg circle").count() == len(trial.windows.seconds)
        words = " ".join(dialog.inner_text().split())
        measured = len(trial.windows.seconds) - trial.windows.measured_from
        assert f"{measured} measured windows of {trial.windows.steps_per_window} step" in words
        for part in (
            "Phases",
            "first step",
            "passed: the sum over replicas is exact",
            "100 updates applied of 100",
            "What ran, and on what",
            "one step",
            "Repeat it",
        ):
            assert part in words
        dialog.get_by_text("Machine and software of the run").click()
        assert "Synthetic CPU <2.0 GHz> & friends" in dialog.inner_text()
        dialog.get_by_text("Every window").click()
        assert dialog.locator("details table tbody tr").count() == len(trial.windows.seconds)
        command = shlex.split(dialog.locator("#trial-command").inner_text())
        assert command[:4] == ["python", "-m", "harness", "sweep"]
        assert command[command.index("--strategy") + 1] == trial.cell.strategy
        it.quiet()


def test_a_trial_that_failed_shows_reason_and_evidence(opened: Open, report: Path) -> None:
    with opened(report) as it:
        it.page.get_by_label("Search").fill("no progress")
        it.page.locator(ROWS).first.locator("th").click()
        dialog = it.page.get_by_role("dialog")
        dialog.wait_for()
        assert "timed out in phase 'warmup': no progress for 120 s" in dialog.inner_text()
        dialog.get_by_text("Stacks and output").click()
        assert "threading.py" in dialog.inner_text()


def test_an_address_opens_its_trial(opened: Open, report: Path) -> None:
    with opened(report, at="#trial-136") as it:
        it.page.get_by_role("dialog").wait_for()
        assert it.page.get_by_role("dialog").get_by_role("heading", level=2).inner_text().startswith("Trial 136: ")


def test_without_javascript_the_first_trials_stand_there_and_where_the_rest_is(opened: Open, report: Path) -> None:
    with opened(report, script=False) as it:
        assert it.page.locator(ROWS).count() == 25
        words = it.page.locator("#trials").inner_text()
        assert "The first 25 of 136 trials" in words
        assert "trials.jsonl" in words
        assert not it.page.get_by_label("Search").is_visible()


def test_the_static_rows_are_those_that_the_script_draws(opened: Open, report: Path) -> None:
    with opened(report, script=False) as it:
        static = it.page.locator(ROWS).all_inner_texts()
    with opened(report) as it:
        assert it.page.locator(ROWS).all_inner_texts() == static


def test_a_run_of_one_trial_has_a_table_of_one_row(opened: Open, tmp_path: Path) -> None:
    manifest, trials = make_run(default_cells((1,), (32,))[:1], blocks=1, faults=False)
    write_report(manifest, trials, tmp_path / "one.html")
    with opened(tmp_path / "one.html") as it:
        assert it.page.locator(ROWS).count() == 1
        assert it.page.locator("#trials-filters select").count() == 0
        it.quiet()


def test_the_table_of_an_own_step_says_that_no_flags_repeat_it(opened: Open, tmp_path: Path) -> None:
    manifest, trials = make_run([*default_cells((1,), (32,))[:1]], blocks=1, faults=False)
    odd = trials[0].cell.model_copy(update={"model": "odd,name"})
    changed = [trial.model_copy(update={"cell": odd, "cell_id": odd.cell_id}) for trial in trials]
    write_report(manifest.model_copy(update={"cells": [odd]}), changed, tmp_path / "odd.html")
    with opened(tmp_path / "odd.html", at="#trial-1") as it:
        it.page.get_by_role("dialog").wait_for()
        assert "No flags of sweep say this cell" in it.page.get_by_role("dialog").inner_text()
        assert json.loads(it.page.evaluate("JSON.stringify(document.querySelectorAll('#trial-command').length)")) == 0
