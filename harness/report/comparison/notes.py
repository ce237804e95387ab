"""What must be said beside the verdicts: reasons, disagreements, what would decide, cells without a partner."""

from collections import defaultdict

from harness.analysis.comparison import Comparison, Row
from harness.analysis.estimates.verdict import judge
from harness.report.comparison.phrases import PHRASES
from harness.report.comparison.words import row_notes
from harness.report.words.text import listed
from harness.visible import printable

_NAMED = 6


def notes_of(comparison: Comparison) -> tuple[str, ...]:
    """All notes on the rows, each text once with the rows that it holds for, then the comparison's remarks."""
    if len(comparison.rows) == 1:
        own = row_notes(comparison, comparison.rows[0])
        return (*own, *(printable(text) for text in (*_on_partners(comparison), *comparison.remarks)))
    rows_of: defaultdict[str, list[str]] = defaultdict(list)
    for row in comparison.rows:
        for text in (row.verdicts.wall.reason, row.disagreement):
            if text is not None:
                rows_of[text.rstrip(".")].append(row.name)
    notes = [f"{_names(names)}: {text}." for text, names in rows_of.items()]
    texts = (*notes, *_on_deciding(comparison), *_on_partners(comparison), *comparison.remarks)
    return tuple(printable(text) for text in texts)


def more_words(comparison: Comparison, row: Row) -> str:
    """Of an undecided row, what would decide it: `about 12`; else nothing."""
    wall = row.verdicts.wall
    if wall.verdict != "undecided" or wall.estimate is None:
        return ""
    if wall.estimate.standard_error is None:
        least = PHRASES[comparison.kind].least
        return least and f"at least {least}"
    alone = judge(wall.estimate, wall.margins).verdict
    if alone != "undecided":
        return f"{alone} if judged alone"
    if wall.blocks_needed is None:
        return "over 1,000" if comparison.measured else ""
    return f"about {wall.blocks_needed}"


def _on_deciding(comparison: Comparison) -> list[str]:
    words = [more_words(comparison, row) for row in comparison.rows]
    notes = []
    if any(word.startswith(("about", "over")) for word in words):
        notes.append(f"To decide: {PHRASES[comparison.kind].unit_to_decide}.")
    if any(word.endswith("alone") for word in words):
        notes.append(
            "Judged alone: a verdict that does not hold among so many comparisons, where chance alone makes some "
            f"stand out{PHRASES[comparison.kind].alone}."
        )
    return notes


def _on_partners(comparison: Comparison) -> list[str]:
    notes = []
    for side, names in (("A", comparison.only_a), ("B", comparison.only_b)):
        if names and comparison.of_one_run:
            notes.append(f"Without a partner at {comparison.title_a}, and so not compared: {_names(names)}.")
        elif names:
            notes.append(f"In {side} only, and so not compared: {_names(names)}.")
    return notes


def _names(names: list[str] | tuple[str, ...]) -> str:
    return listed(names, most=_NAMED)
