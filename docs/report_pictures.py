"""Takes the pictures of a report that README.md and the pages show: `python docs/report_pictures.py`.

It writes the pages of `reports` anew from the runs that are kept, and photographs that of the reference run in a
headless Chromium, which must be on the PATH. The pages ask no network for anything, and neither does this.
"""

import html
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from harness.record.reading import load_run
from harness.report.kinds import PageRequest, presentation_of, section_of

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
PAGE = ROOT / "reports" / "reference.html"
PAGES = {
    PAGE: "reference",
    PAGE.with_name("explained.html"): "explained",
    PAGE.with_name("collectives.html"): "collectives",
    PAGE.with_name("engines.html"): "engines/two-cores",
    PAGE.with_name("workloads.html"): "workloads",
    PAGE.with_name("h100.html"): "h100/engines",
}
"""Each page with the run that it is made from, below `results`."""
BESIDE = {"reference": ("explained", "collectives"), "h100/engines": ("h100/explained",)}
"""Runs that have a section on the page of another."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars")
_WHOLE = "display:block;border:0;width:100vw;height:100vh"
DARK = "--blink-settings=preferredColorScheme=0"


@dataclass(frozen=True)
class Shot:
    """One picture: where on the page, how large the window is in pixels, and in which theme."""

    name: str
    anchor: str
    width: int
    height: int
    dark: bool = False


SHOTS = (
    Shot("report", "", 1200, 1010),
    Shot("report-scaling", "#scaling", 1200, 1010, dark=True),
    Shot("report-wrong", "#problems", 1200, 700),
)


def take(browser: str, shot: Shot) -> Path:
    """Photograph the page. Raises CalledProcessError when the browser fails."""
    target = IMAGES / f"{shot.name}.png"
    with tempfile.TemporaryDirectory() as profile:
        # in a frame: headless Chromium takes a blank picture of a page that is scrolled to an anchor
        frame = Path(profile) / "frame.html"
        address = html.escape(PAGE.as_uri() + shot.anchor)
        frame.write_text(f'<body style="margin:0"><iframe src="{address}" style="{_WHOLE}"></iframe>', encoding="utf-8")
        command = [
            browser,
            *FLAGS,
            *([DARK] if shot.dark else []),
            f"--user-data-dir={profile}",
            f"--window-size={shot.width},{shot.height}",
            f"--screenshot={target}",
            frame.as_uri(),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    return target


def main() -> int:
    """Write the page and every picture; 1 without a browser."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    for page, folder in PAGES.items():
        run, *others = (load_run(ROOT / "results" / name) for name in (folder, *BESIDE.get(folder, ())))
        sections = [section_of(other, ROOT / "results") for other in others]
        presentation_of(run.manifest).write_page(run, PageRequest(page, ROOT / "results", others=sections))
        print(page.relative_to(ROOT))
    if browser is None:
        print(f"no browser ({', '.join(BROWSERS)}) on the PATH: install one to take the pictures", file=sys.stderr)
        return 1
    for shot in SHOTS:
        print(take(browser, shot).relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
