"""The page in a real browser, on a wide and on a narrow window, light and dark, and on paper."""

import re
import subprocess
from pathlib import Path

import pytest

from harness.report.page.report import write_report
from tests.synthetic import make_run

OVERLAY = """<script>addEventListener('load', () => {
  const root = document.documentElement;
  const shown = (name) => getComputedStyle(document.querySelector(name)).display !== 'none';
  root.dataset.overlay = shown('svg .overlay') + ' ' + shown('.overlay-note');
  document.querySelector('.switch').click();
  root.dataset.overlay += ' ' + shown('svg .overlay') + ' ' + shown('.overlay-note');
})</script>"""
MEASURE = """<script>addEventListener('load', () => {
  const root = document.documentElement;
  root.dataset.seen = [root.scrollWidth, innerWidth, document.querySelectorAll('svg').length].join(' ');
})</script>"""
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of a run with every kind of cell, which also measures itself once it is drawn."""
    folder = tmp_path_factory.mktemp("browser")
    manifest, trials = make_run()
    write_report(manifest, trials, folder / "report.html")
    text = (folder / "report.html").read_text(encoding="utf-8")
    measured = folder / "measured.html"
    measured.write_text(text.replace("</body>", OVERLAY + MEASURE + "</body>"), encoding="utf-8")
    return measured


def run(chromium: Path, profile: Path, page: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Open the page headless, with a profile of its own and no network to fall back on."""
    command = [str(chromium), *FLAGS, f"--user-data-dir={profile}", *flags, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


@pytest.mark.parametrize("width", [1400, 500])
def test_the_page_draws_every_figure_and_never_scrolls_sideways(
    chromium: Path, page: Path, tmp_path: Path, width: int
) -> None:
    done = run(chromium, tmp_path, page, f"--window-size={width},1000", "--dump-dom")
    seen = re.search(r'data-seen="(\d+) (\d+) (\d+)"', done.stdout)
    assert seen is not None, "the page's own script did not run"
    content, window, figures = map(int, seen.groups())
    assert content <= window, f"{content} pixels of content in a window of {window}"
    assert figures >= 7
    assert 'data-overlay="false false true true"' in done.stdout, "published scaling is hidden until it is asked for"


@pytest.mark.parametrize("theme", [(), ("--blink-settings=preferredColorScheme=0",)])
def test_the_console_stays_silent_in_light_and_dark(
    chromium: Path, page: Path, tmp_path: Path, theme: tuple[str, ...]
) -> None:
    picture = tmp_path / "page.png"
    done = run(chromium, tmp_path / "profile", page, *theme, "--window-size=1200,3000", f"--screenshot={picture}")
    assert "CONSOLE" not in done.stderr
    assert picture.stat().st_size > 50_000


def test_the_page_prints(chromium: Path, page: Path, tmp_path: Path) -> None:
    paper = tmp_path / "page.pdf"
    run(chromium, tmp_path / "profile", page, f"--print-to-pdf={paper}")
    assert paper.read_bytes().startswith(b"%PDF")
