"""What came of the levers that were tried: which held, and a table of their verdicts."""

from collections.abc import Sequence

from harness.analysis.tries import Try
from harness.report.comparison.words import row_words
from harness.report.tables.table import Head, Table
from harness.report.words.text import NOTHING, listed
from harness.spec.cell import cell_names
from harness.visible import plural, printable


def try_lines(tries: Sequence[Try]) -> list[str]:
    """How many held and which; nothing where nothing was tried."""
    if not tries:
        return []
    judged, faster = [one for one in tries if one.judged], [one for one in tries if one.faster]
    if not judged:
        return ["No lever could be measured."]
    said = f"Of {plural(len(judged), 'lever')} that could be measured"
    names = cell_names([one.cell for one in tries])
    what = listed(f"{one.record.setting} on {names[one.cell.cell_id]} ({_verdict(one)})" for one in faster)
    return [f"{said} {len(faster)} held: {what}." if faster else f"{said} none held."]


def try_tables(tries: Sequence[Try]) -> list[Table]:
    """A row for each lever, in the order in which they were tried; those that held are marked."""
    names = cell_names([one.cell for one in tries])
    rows = [
        (
            names[one.cell.cell_id],
            printable(one.record.setting),
            one.record.part,
            _verdict(one),
            printable(one.record.run_id or NOTHING),
        )
        for one in tries
    ]
    heads = tuple(Head(name, numeric=False) for name in ("cell", "tried", "against", "B against A", "records"))
    note = (
        "A is the cell as it is, B the cell with what was tried; each is a run of ab, which `show` and `report` have."
    )
    faster = frozenset(number for number, one in enumerate(tries) if one.faster)
    return [Table("What was tried", heads, tuple(rows), note, faster)] if rows else []


def _verdict(one: Try) -> str:
    """`faster by 12.1 % [10.2 – 14.0]`; the reason where there is no verdict."""
    if one.comparison is None or not one.judged:
        return printable(f"{one.verdict}: {one.reason}")
    return row_words(one.comparison.rows[0])
