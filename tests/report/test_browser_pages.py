"""Every kind of page in a real browser: three widths, both themes, silent, accessible, asking nobody for anything."""

import csv
import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from axe_playwright_python.sync_playwright import Axe

from harness.analysis.comparison import compare_runs
from harness.analysis.estimates.verdict import Margins
from harness.analysis.faults import summarise_faults
from harness.analysis.history.false_alarms import false_alarms
from harness.analysis.history.series import history
from harness.analysis.validation.summary import validation_of
from harness.record.reading import load_manifest
from harness.report.comparison import Surface, renderer
from harness.report.faults.page import faults_page
from harness.report.history import history_page
from harness.report.kinds import PageRequest, presentation_of
from harness.report.page.index import update_index
from harness.report.page.report import write_report
from harness.report.tables.published import imported_page
from harness.report.tables.validation import validation_page
from harness.run.kinds.published_table import import_table
from tests.comparisons import sweep_run
from tests.explained import explain_run
from tests.faulted import PLAN, example, run_manifest
from tests.histories import nights
from tests.report.collectives import BETWEEN, ON_ONE, RING, in_three_sizes
from tests.report.conftest import Open, Opened
from tests.report.pipelines import RATES, run_at
from tests.report.quantities import run_of
from tests.report.rooflines import known
from tests.report.rooflines import run as counted_run
from tests.synthetic import default_cells, make_run
from tests.validations import Arm, Round, slow, validation_run

KINDS = (
    *("report", "comparison", "index", "history", "faults", "validation", "imported", "explain", "limits"),
    *("pipelines", "collectives"),
)
BUFFERS = (RING, ON_ONE, BETWEEN)
WIDTHS = (1400, 820, 390)
THEMES = ("light", "dark")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with every kind of cell, one page of every other kind, and the index of all."""
    folder = tmp_path_factory.mktemp("pages")
    manifest, trials = make_run()
    write_report(manifest, trials, folder / "report.html")
    a = sweep_run("run-a", default_cells(), faults=True, noise=0.02)
    facts = {"package.tensorflow": "2.22.0", "env.XLA_FLAGS": "--xla_" + "long_" * 30}
    b = sweep_run("run-b", default_cells(), faults=True, noise=0.02, seed=2, wall=1.04, facts=facts)
    of = explain_run()
    presentation_of(of.manifest).write_page(of, PageRequest(folder / "explain.html", folder))
    write_report(*counted_run(), folder / "limits.html", limits=known())
    for kind, made in (
        ("pipelines", run_at(RATES, folder / "a")),
        ("collectives", run_of(in_three_sizes(*BUFFERS), folder / "b")),
    ):
        write_report(made.manifest, made.trials, folder / f"{kind}.html", limits=known())
    comparison = renderer("html").render(compare_runs(a, b, Margins()), Surface())
    (folder / "comparison.html").write_text(comparison, encoding="utf-8")
    for kind, text in others(folder):
        (folder / f"{kind}.html").write_text(text, encoding="utf-8")
    update_index(folder)
    return folder


def others(folder: Path) -> Iterator[tuple[str, str]]:
    """(name, page) of what is neither a report nor a comparison; two machines' history, with a change."""
    quick = nights(12, machine="aaaa", processor="A quick one", slower_from=6)
    series = history([*quick, *nights(3, machine="bbbb", processor="A slow one")])
    yield "history", history_page(series, {}, 15, false_alarms(series, 20))
    yield "faults", faults_page(run_manifest(), summarise_faults(PLAN, example()))
    rounds = [Round([Arm([0.002] * 6), slow("device_work", 0.05, [-0.05] * 5 + [None])]) for _ in range(3)]
    yield "validation", validation_page(validation_of(validation_run(rounds)))
    path, _ = import_table(Path("harness/report/data/published_scaling.csv"), folder / "results")
    yield "imported", imported_page(load_manifest(path))


@pytest.fixture(scope="module", params=[*itertools.product(KINDS, WIDTHS)], ids=lambda of: "-".join(map(str, of)))
def wide(request: pytest.FixtureRequest, opened: Open, folder: Path) -> Iterator[tuple[Opened, int]]:
    """A page that is open at a width, and the width."""
    kind, width = request.param
    with opened(folder / f"{kind}.html", width) as it:
        yield it, width


def test_a_page_is_drawn_silent_and_alone_at_every_width_in_both_themes(
    wide: tuple[Opened, int], tmp_path: Path
) -> None:
    it, width = wide
    for theme in THEMES:
        it.page.emulate_media(color_scheme=theme)
        it.page.screenshot(path=tmp_path / "page.png", full_page=width == max(WIDTHS))
        content = it.page.evaluate("document.documentElement.scrollWidth")
        paper = it.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert content <= width, f"{content} pixels of content in a window of {width}, {theme}"
        assert (paper == "rgb(255, 255, 255)") == (theme == "light")
        assert (tmp_path / "page.png").stat().st_size > 5_000
    it.quiet()


CUT = """frames => frames.filter(it => it.querySelector('table') && it.checkVisibility())
  .map(it => [it.classList.contains('cut'), it.scrollWidth > it.clientWidth])"""


def test_a_table_that_is_wider_than_the_page_says_so_and_no_other(wide: tuple[Opened, int]) -> None:
    it, width = wide
    it.page.evaluate("document.querySelectorAll('details').forEach(it => it.open = true)")
    it.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    found = it.page.locator(".scroll").evaluate_all(CUT)
    assert all(said == cut for said, cut in found)
    assert width > 390 or any(cut for _, cut in found)


def test_a_report_has_every_figure_and_published_scaling_is_hidden_until_it_is_asked_for(
    opened: Open, folder: Path
) -> None:
    with opened(folder / "report.html") as it:
        assert it.page.locator("svg").count() >= 7
        laid_over = [it.page.locator(name).first for name in ("svg .overlay", ".overlay-note")]
        assert [part.is_visible() for part in laid_over] == [False, False]
        it.page.get_by_text("Show scaling published for other hardware").first.click()
        assert [part.is_visible() for part in laid_over] == [True, True]


def test_a_report_prints(opened: Open, folder: Path) -> None:
    with opened(folder / "report.html") as it:
        assert it.page.pdf().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("kind", "frame"), [("report", "#ranking .scroll:has(table)"), ("explain", ".scroll:has(table)")]
)
def test_what_names_the_rows_stays_in_sight_while_a_table_scrolls(
    opened: Open, folder: Path, kind: str, frame: str
) -> None:
    with opened(folder / f"{kind}.html", 390) as it:
        scrolled = it.page.locator(frame).first
        scrolled.evaluate("it => it.scrollLeft = it.scrollWidth")
        edge = scrolled.bounding_box()["x"]
        for name in ("cell", "part"):
            for cell in scrolled.locator("thead th").get_by_text(name, exact=True).all():
                assert edge <= cell.bounding_box()["x"] <= edge + 2
        row = scrolled.locator("tbody tr").first
        named = row.locator("th").or_(row.locator("td:first-child:not(:has(~ th))")).first
        assert edge <= named.bounding_box()["x"] <= edge + 2


@pytest.mark.parametrize("kind", KINDS)
def test_on_paper_no_table_is_cut(opened: Open, folder: Path, kind: str) -> None:
    """On A4 across, without the margins that the page asks for."""
    with opened(folder / f"{kind}.html", 1031) as it:
        it.page.emulate_media(media="print")
        wide = "tables => tables.map(it => it.getBoundingClientRect().right)"
        assert max(it.page.locator("table").evaluate_all(wide)) <= 1031
        assert b"/MediaBox [0 0 842.88 595.91998]" in it.page.pdf(prefer_css_page_size=True, format="A4")


@pytest.mark.parametrize("kind", KINDS)
def test_axe_finds_nothing_serious(opened: Open, folder: Path, kind: str) -> None:
    with opened(folder / f"{kind}.html", 1200) as it:
        for theme in THEMES:
            it.page.emulate_media(color_scheme=theme)
            assert serious(it.page) == [], theme


def test_axe_finds_nothing_serious_in_a_trial_that_is_open(opened: Open, folder: Path) -> None:
    with opened(folder / "report.html", 1200, at="#trial-2") as it:
        it.page.wait_for_selector("dialog[open]")
        for theme in THEMES:
            it.page.emulate_media(color_scheme=theme)
            assert serious(it.page) == [], theme


def serious(page: object) -> list[str]:
    """Serious and critical findings: rule, and the first element that it is about."""
    found = Axe().run(page).response["violations"]
    return [
        f"{item['id']}: {item['nodes'][0]['html'][:200]}" for item in found if item["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("kind", ["report", "comparison", "history", "faults", "explain", "limits"])
def test_every_figures_data_can_be_downloaded_as_csv(opened: Open, folder: Path, kind: str) -> None:
    with opened(folder / f"{kind}.html") as it:
        links = it.page.locator("figure a[download]")
        assert links.count() >= it.page.locator("figure").count() > 0
        for index in range(links.count()):
            rows = list(csv.reader(io.StringIO(unquote(links.nth(index).get_attribute("href").partition(",")[2]))))
            assert len(rows) > 1
            assert {len(row) for row in rows} == {len(rows[0])}
        first = links.first
        first.evaluate("link => link.closest('details')?.setAttribute('open', '')")
        with it.page.expect_download() as download:
            first.click()
        assert Path(download.value.path()).read_text(encoding="utf-8").count("\n") > 1


def test_the_index_sorts_and_its_links_open_the_pages(opened: Open, folder: Path) -> None:
    with opened(folder / "index.html") as it:
        first = it.page.locator("#reports tbody tr").first.locator("th")
        it.page.get_by_role("button", name="report", exact=True).click()
        assert first.inner_text() == "collectives.html"
        it.page.get_by_role("button", name="report", exact=True).press("Enter")
        assert first.inner_text() == "validation.html"
        assert it.page.locator("th[aria-sort]").evaluate_all("cells => cells.map(cell => cell.ariaSort)") == [
            "descending"
        ]
        it.quiet()
        it.page.get_by_role("link", name="report.html").click()
        it.page.wait_for_selector("#trials-bar:not([hidden])")
        assert it.page.url == (folder / "report.html").as_uri()
