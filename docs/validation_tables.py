"""Writes what `results/validation` found into verdicts.md, between two marks: `python docs/validation_tables.py`."""

import re
from pathlib import Path

from harness.analysis.validation import validation_of
from harness.record.manifest import RunManifest
from harness.record.reading import load_run
from harness.record.validation import ValidationRecord
from harness.report.export.as_markdown import escape, table_lines
from harness.report.text import plural
from harness.report.validation import validation_lines, validation_tables

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "verdicts.md"
RUN = ROOT / "results" / "validation"
MARKS = ("<!-- what results/validation found: begin -->", "<!-- what results/validation found: end -->")


def text() -> str:
    """The tables and findings as Markdown."""
    run = load_run(RUN)
    record = validation_of(run)
    lines = [_on_what(record, run.manifest)]
    for table in validation_tables(record):
        lines += ["", f"**{table.title}**", *table_lines(table)]
    lines += ["", *(f"- {escape(line)}" for line in validation_lines(record) if "--resume" not in line)]
    return re.sub(r"(?<![:=]\d)(?<=\d)%", " %", "\n".join(lines))


def written(page: str) -> str:
    """`page` with `text` between the marks."""
    begin, end = MARKS
    head, _, rest = page.partition(begin)
    _, _, tail = rest.partition(end)
    if not tail:
        raise SystemExit(f"{PAGE.name}: it has no '{begin}' before an '{end}'")
    return f"{head}{begin}\n{text()}\n{end}{tail}"


def _on_what(record: ValidationRecord, manifest: RunManifest) -> str:
    plan = manifest.validation
    assert plan is not None
    facts = record.facts
    so_far = "" if record.complete else f" (all that is done so far of {plural(len(plan.rounds), 'round')})"
    return (
        f"What it found on {facts['cpu.usable_cores']} shared cores ({escape(str(facts['cpu.model']))}, TensorFlow "
        f"{facts['package.tensorflow']}) with nothing else running, in {plural(record.decisions, 'A/A decision')} and "
        f"{plural(_planted(record), 'planted one')}{so_far}, with {plural(record.windows, 'window')} a trial:"
    )


def _planted(record: ValidationRecord) -> int:
    return sum(effect.slower.of for effect in record.effects if effect.plant is not None)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
