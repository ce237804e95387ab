"""The report that is kept in the repository is that which today's code makes of the run that is kept."""

import re
from pathlib import Path

from harness.analysis import summarise
from harness.record.reading import load_run
from harness.report.page.report import render

ROOT = Path(__file__).parents[2]
SAID = (
    r'<meta name="harness-headline" content="([^"]*)"',
    r'<h2 class="headline">(.*?)</h2>',
    r"<strong>(.*?)</strong>",
)
"""What the page says of itself, its headline, and the figures that are set large."""


def test_the_kept_report_says_what_todays_code_says_of_the_kept_run() -> None:
    run = load_run(ROOT / "results" / "reference")
    today = render(run.manifest, run.trials, summarise(run.manifest, run.trials))
    kept = (ROOT / "reports" / "reference.html").read_text(encoding="utf-8")
    for pattern in SAID:
        said = re.findall(pattern, today)
        assert said
        assert re.findall(pattern, kept) == said, "make the page anew: python docs/report_pictures.py"
