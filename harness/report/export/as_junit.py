"""JUnit's XML, a test case a cell, for the page of tests of a CI system."""

from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from harness.analysis import CellSummary, summarise
from harness.analysis.comparison.result import LOST
from harness.record.reading import Run
from harness.report.export.base import Exporter, deliver
from harness.report.words.text import STATUS_WORDS
from harness.visible import printable


@dataclass(frozen=True)
class _Junit:
    name: str = "junit"
    summary: str = "JUnit's XML, a test case a cell, failed where `sweep --strict` is"
    suffix: str = ".xml"

    def export(self, run: Run, target: Path | None) -> str | None:
        """See Exporter."""
        summary = summarise(run.manifest, run.trials, run.rank_unproved)
        suite = Element("testsuite", name=printable(run.manifest.run_id), timestamp=run.manifest.created_utc)
        for cell in summary.cells:
            name = printable(cell.trials.cell.full_name)
            case = SubElement(suite, "testcase", classname=printable(run.manifest.sweep.name), name=name)
            _end(case, cell)
        for key, tag in (("tests", "testcase"), ("failures", "failure"), ("skipped", "skipped")):
            suite.set(key, str(len(list(suite.iter(tag)))))
        indent(suite)
        text = tostring(suite, encoding="unicode")
        return deliver(f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n', target)


def _end(case: Element, cell: CellSummary) -> None:
    """What a case says beside its name: nothing of a cell that was measured."""
    of = cell.trials
    if of.measured is not None:
        return
    problem = of.problem
    said = STATUS_WORDS[of.status] if problem is None else f"{STATUS_WORDS[of.status]}: {problem.reason}"
    found = SubElement(case, "failure" if of.status in LOST else "skipped", message=printable(said))
    if problem is not None and of.status in LOST:
        lines = [*(f"{check}: {text}" for check, text in problem.details), problem.evidence or ""]
        found.set("type", of.status)
        found.text = printable("\n".join(lines))


EXPORTER: Exporter = _Junit()
