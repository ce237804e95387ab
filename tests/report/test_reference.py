"""The report that is kept in the repository is what today's code makes of the run that is kept; so are its exports."""

import hashlib
import importlib.metadata
import re
import tempfile
from pathlib import Path

import pytest

from harness.analysis import summarise
from harness.record.reading import load_run
from harness.report.export import exporters
from harness.report.page.report import render
from tests.report.export.runs import reference

ROOT = Path(__file__).parents[2]
SAID = (
    r'<meta name="harness-headline" content="([^"]*)"',
    r'<h2 class="headline">(.*?)</h2>',
    r"<strong>(.*?)</strong>",
)
"""What the page says of itself, its headline, and the figures that are set large."""


@pytest.mark.parametrize(("page", "folder"), [("reference", "reference"), ("engines", "engines/two-cores")])
def test_a_kept_report_says_what_todays_code_says_of_its_run(page: str, folder: str) -> None:
    run = load_run(ROOT / "results" / folder)
    today = render(run.manifest, run.trials, summarise(run.manifest, run.trials))
    kept = (ROOT / "reports" / f"{page}.html").read_text(encoding="utf-8")
    for pattern in SAID:
        said = re.findall(pattern, today)
        assert said
        assert re.findall(pattern, kept) == said, "make the page anew: python docs/report_pictures.py"


def export_digests() -> dict[str, str]:
    """The beginning of the SHA-256 of the kept run in each format that is text.

    Another processor's last digits, and the version of pytest-benchmark that is installed, are no change.
    """
    found = {}
    for name, exporter in exporters().items():
        if name in NO_TEXT:
            continue
        with tempfile.TemporaryDirectory() as folder:
            exporter.export(reference(), target := Path(folder) / "made")
            files = sorted(target.rglob("*.json")) if target.is_dir() else [target]
            text = "".join(file.read_bytes().decode() for file in files)
        text = text.replace(importlib.metadata.version("pytest-benchmark"), "VERSION")
        text = re.sub(r"\d+\.\d+(e[+-]?\d+)?", lambda number: f"{float(number[0]):.10g}", text)
        found[name] = hashlib.sha256(text.encode()).hexdigest()[:16]
    return found


NO_TEXT = ("parquet", "windows-parquet", "tensorboard")
# Made anew by: .venv/bin/python -c 'from tests.report.test_reference import export_digests; print(export_digests())'
DIGESTS = {
    "asv": "7382b28b79f8e7c6",
    "cells": "c8391857fc26301b",
    "csv": "432233da3d15c804",
    "github-action-bigger": "dc70dba954171729",
    "github-action-smaller": "81527fdd3c6af124",
    "json": "9090c169e3854c15",
    "markdown": "1f7916973ec07523",
    "pytest-benchmark": "87fa22463e60604a",
    "windows": "0dedfe41e45f2a1f",
}


def test_every_text_export_of_the_kept_run_is_as_it_was() -> None:
    assert export_digests() == DIGESTS
