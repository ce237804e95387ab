"""The report that is kept in the repository is what today's code makes of the run that is kept; so are its exports."""

import hashlib
import importlib.metadata
import re
import tempfile
from pathlib import Path

import pytest

from harness.record.reading import load_run
from harness.report.export import exporters
from harness.report.kinds import PageRequest, presentation_of
from tests.report.export.runs import reference

ROOT = Path(__file__).parents[2]
SAID = (
    r'<meta name="harness-headline" content="([^"]*)"',
    r'<h2 class="headline">(.*?)</h2>',
    r"<strong>(.*?)</strong>",
)
"""What the page says of itself, its headline, and the figures that are set large."""


KEPT = [
    ("reference", "reference"),
    ("explained", "explained"),
    ("collectives", "collectives"),
    ("engines", "engines/two-cores"),
]


@pytest.mark.parametrize(("page", "folder"), KEPT)
def test_a_kept_report_says_what_todays_code_says_of_its_run(page: str, folder: str, tmp_path: Path) -> None:
    run, written = load_run(ROOT / "results" / folder), tmp_path / "page.html"
    presentation_of(run.manifest).write_page(run, PageRequest(written, ROOT / "results"))
    today = written.read_text(encoding="utf-8")
    kept = (ROOT / "reports" / f"{page}.html").read_text(encoding="utf-8")
    for pattern in SAID:
        said = re.findall(pattern, today)
        assert said or pattern != SAID[0]
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
    "asv": "abcc0b74a665526d",
    "cells": "f758378b14388377",
    "csv": "9f8c77f25a7e3e4a",
    "github-action-bigger": "3b963a11a2f9b023",
    "github-action-smaller": "48fd2553d14d6cb8",
    "json": "f5901b95555fbd84",
    "junit": "cfd31d24b48ada12",
    "markdown": "59aecc4d9047d8ee",
    "pytest-benchmark": "42e0169faf1460c6",
    "windows": "0961d253a78d6ae6",
}


def test_every_text_export_of_the_kept_run_is_as_it_was() -> None:
    assert export_digests() == DIGESTS
