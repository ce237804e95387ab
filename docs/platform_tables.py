"""Writes into docs/platform.md what kept sheets of `doctor --prove` have seen: `python docs/platform_tables.py`."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from validation_tables import written

from harness.record.proof import ProofRecord, ProofResult, Subject
from harness.report.export.as_markdown import table_lines
from harness.report.proof import QUESTIONS, where
from harness.report.tables.table import Head, Table
from harness.report.words.text import listed
from harness.trial.engines import catalogue_of

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "platform.md"
KEPT = ROOT / "results" / "machines"
MARKS = ("<!-- what kept sheets saw: begin -->", "<!-- what kept sheets saw: end -->")
COUNTED: tuple[ProofResult, ...] = ("passed", "failed", "unknown")


def sheets() -> list[ProofRecord]:
    """The kept sheets, in the order of their names."""
    return [ProofRecord.model_validate_json(path.read_bytes()) for path in sorted(KEPT.glob("proof-*.json"))]


def text(records: Sequence[ProofRecord]) -> str:
    """What was verified where, when and on which versions, what failed, and which devices no sheet has seen."""
    seen = {proof.device for record in records for proof in record.of("passed") if proof.subject == "cell"}
    never = [f"`{kind}`" for kind in catalogue_of().devices if kind not in seen]
    lines = [f"Never seen by any sheet: {listed(never)}." if never else "Every kind of device was seen.", ""]
    for record in records:
        lines += [_where(record), *table_lines(_table(record)), "", *_failed(record)]
    return "\n".join(lines).rstrip()


def _where(record: ProofRecord) -> str:
    return f"{where(record)}, {record.created_utc[:10]}:"


def _table(record: ProofRecord) -> Table:
    """A row for each question on each kind of device."""
    counts: dict[tuple[str, Subject], Counter[ProofResult]] = {}
    for proof in record.proofs:
        counts.setdefault((proof.device, proof.subject), Counter())[proof.verdict] += 1
    columns = (Head("device", False), Head("asked", False), *map(Head, ("passed", "failed", "cannot tell")))
    rows = (
        (device, QUESTIONS[subject], *(str(found[verdict]) for verdict in COUNTED))
        for (device, subject), found in counts.items()
    )
    return Table("", columns, tuple(rows))


def _failed(record: ProofRecord) -> Iterator[str]:
    for proof in record.of("failed"):
        yield f"- Failed: {proof.name}, `{proof.device}`: {proof.words}"


def pages() -> list[tuple[Path, str, tuple[str, str]]]:
    """What is to stand in which file, and between which marks."""
    return [(PAGE, text(sheets()), MARKS)]


if __name__ == "__main__":
    for path, words, marks in pages():
        path.write_text(written(path.read_text(encoding="utf-8"), words, marks), encoding="utf-8")
