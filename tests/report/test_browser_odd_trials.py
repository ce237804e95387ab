"""The table of every trial with odd names, selected text, on a phone and on paper."""

import csv
import gzip
import io
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from harness.record.trial import Windows
from harness.report.page.report import write_report
from tests.report.conftest import Open
from tests.synthetic import default_cells, make_cell, make_run

COUNT = "#trials-count"
ODD = ["two  spaces", "two spaces", " leading", "trailing ", "a,b", "<b>"]


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cells whose models' names differ in spaces only, some with a network and most without."""
    file = tmp_path_factory.mktemp("odd") / "report.html"
    cells = [make_cell(model=name) for name in ODD]
    cells += [make_cell("mirrored", 2, model="<b>").model_copy(update={"network": "rate=100mbit"})]
    manifest, trials = make_run(cells, blocks=2, faults=False)
    write_report(manifest, trials, file)
    return file


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """136 trials of 34 cells."""
    file = tmp_path_factory.mktemp("paper") / "report.html"
    write_report(*make_run(), file)
    return file


def choose(page: Any, key: str, label: str) -> str:
    page.locator(f"#trials-filters select[data-key={key}]").select_option(label=label)
    return str(page.locator(COUNT).inner_text())


def test_a_key_that_most_cells_do_not_have_can_be_chosen_as_none(opened: Open, odd: Path) -> None:
    with opened(odd) as it:
        assert choose(it.page, "network", "(none)") == "12 of 14 trials"
        assert choose(it.page, "network", "rate=100mbit") == "2 of 14 trials"
        assert choose(it.page, "network", "all") == "14 trials"


def test_names_that_differ_in_spaces_only_are_choices_of_their_own(opened: Open, odd: Path) -> None:
    with opened(odd) as it:
        options = it.page.locator("#trials-filters select[data-key=model] option")
        assert options.count() == len(ODD) + 1
        for index in range(1, options.count()):
            it.page.locator("#trials-filters select[data-key=model]").select_option(index=index)
            found = it.page.locator(COUNT).inner_text()
            assert found in ("2 of 14 trials", "4 of 14 trials")
        shown = options.all_text_contents()
        assert {"two\u00a0\u00a0spaces", "two spaces", "\u00a0leading", "trailing\u00a0"} < set(shown)
        it.quiet()


def test_enter_opens_a_trial_though_text_is_selected_and_a_click_that_selects_does_not(
    opened: Open, report: Path
) -> None:
    with opened(report) as it:
        it.page.evaluate("getSelection().selectAllChildren(document.querySelector('h1'))")
        it.page.locator("#trials-table tbody td.words").first.dispatch_event("click")
        assert it.page.locator("dialog[open]").count() == 0
        it.page.get_by_role("button", name="Trial 2: open").focus()
        it.page.keyboard.press("Enter")
        it.page.get_by_role("dialog").wait_for()


def good_trial() -> tuple[int, Windows]:
    """The place of the first good trial of `report`, and its windows."""
    return next((n, trial.windows) for n, trial in enumerate(make_run()[1]) if trial.status == "ok" and trial.windows)


def test_the_windows_of_a_trial_can_be_saved_as_csv(opened: Open, report: Path) -> None:
    number, windows = good_trial()
    with opened(report, at=f"#trial-{number + 1}") as it:
        link = it.page.get_by_role("dialog").locator("a.csv")
        text = unquote((link.get_attribute("href") or "").partition(",")[2])
        with it.page.expect_download() as download:
            link.click()
        assert download.value.suggested_filename == f"trial-{number + 1}-windows.csv"
        assert Path(download.value.path()).read_text(encoding="utf-8") == text
        it.quiet()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == len(windows.seconds)
    assert [row["used"] for row in rows].count("warm-up") == windows.measured_from
    for row, wall, cpu in zip(rows, windows.seconds, windows.cpu_seconds, strict=True):
        assert float(row["wall_s"]) == pytest.approx(wall, rel=1e-2)
        assert float(row["processor_s"]) == pytest.approx(cpu, rel=1e-2)
        assert float(row["step_s"]) == pytest.approx(wall / windows.steps_per_window, rel=1e-2)


@pytest.mark.parametrize("width", [390, 1200])
def test_the_chart_of_windows_has_letters_that_can_be_read_at_every_width(
    opened: Open, report: Path, width: int
) -> None:
    with opened(report, width, at=f"#trial-{good_trial()[0] + 1}") as it:
        letters = it.page.get_by_role("dialog").locator("svg[role=img] text").first
        letters.wait_for()
        drawn = it.page.evaluate(
            """() => {
              const svg = document.querySelector("dialog svg");
              const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
              return parseFloat(getComputedStyle(svg).fontSize) * scale;
            }"""
        )
        assert drawn >= 11


def test_paper_says_which_rows_of_the_table_it_has(opened: Open, report: Path) -> None:
    with opened(report) as it:
        line = it.page.locator("#trials-paper")
        assert not line.is_visible()
        it.page.get_by_role("button", name="Next").click()
        it.page.emulate_media(media="print")
        assert line.is_visible()
        assert line.inner_text().startswith("Rows 26 to 50 of 136, sorted by number. All 136 trials are in the file")
        it.page.emulate_media(media="screen")
        it.page.get_by_label("Search").fill("mirrored b32 NCCL")
        it.page.emulate_media(media="print")
        assert "Rows 1 to 8 of 8, which search and choices left of 136" in line.inner_text()


def test_without_a_script_every_table_is_unfolded_on_paper(opened: Open, report: Path) -> None:
    with opened(report, script=False) as it:
        folded = it.page.locator("details:not([open]) table").first
        assert folded.bounding_box() is None or not folded.is_visible()
        it.page.emulate_media(media="print")
        assert folded.is_visible()
        box = folded.bounding_box()
        assert box is not None
        assert box["height"] > 50


def test_marked_rows_keep_their_ground_on_paper(opened: Open, report: Path) -> None:
    with opened(report) as it:
        it.page.emulate_media(media="print")
        row = it.page.locator("#ranking tr.marked").first
        assert row.evaluate("row => getComputedStyle(row).printColorAdjust") == "exact"
        assert row.locator(".mark").inner_text().startswith("*")


def test_a_long_csv_is_saved_as_plain_csv_by_the_page_and_gzipped_without_a_script(
    opened: Open, tmp_path: Path
) -> None:
    cells = default_cells(range(1, 9), range(8, 60, 8))
    manifest, trials = make_run(cells, blocks=1, faults=False)
    write_report(manifest, trials, tmp_path / "long.html")
    link = "#ranking figcaption a.csv"
    with opened(tmp_path / "long.html") as it:
        with it.page.expect_download() as download:
            it.page.locator(link).click()
        assert download.value.suggested_filename == "ranking-w0.csv"
        text = Path(download.value.path()).read_text(encoding="utf-8")
        it.quiet()
    assert len(list(csv.DictReader(io.StringIO(text)))) == len(cells)
    with opened(tmp_path / "long.html", script=False) as it:
        with it.page.expect_download() as download:
            it.page.locator(link).click()
        assert download.value.suggested_filename == "ranking-w0.csv.gz"
        assert gzip.decompress(Path(download.value.path()).read_bytes()).decode() == text


def test_no_text_of_the_saved_table_is_a_formula_to_a_spreadsheet(opened: Open, tmp_path: Path) -> None:
    cells = [make_cell(model="=1+1"), make_cell(model="mlp")]
    write_report(*make_run(cells, blocks=1, faults=False), tmp_path / "page.html")
    with opened(tmp_path / "page.html") as it:
        with it.page.expect_download() as download:
            it.page.get_by_role("button", name="Download CSV").click()
        saved = Path(download.value.path()).read_text(encoding="utf-8")
    assert {row["cell.model"] for row in csv.DictReader(io.StringIO(saved))} == {"'=1+1", "mlp"}
