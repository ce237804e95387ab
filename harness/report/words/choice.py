"""Which cells of a sweep are taken apart, and why these."""

from harness.analysis.choice import Choice
from harness.report.words.text import listed
from harness.spec.cell import cell_names
from harness.visible import plural, printable


def choice_words(choice: Choice) -> str:
    """One line: each cell with what it is to the sweep, what could not be taken, and how to choose otherwise."""
    names = cell_names([*choice.cells, *choice.passed_over])
    taken = listed((f"{names[cell.cell_id]} ({', '.join(roles)})" for cell, roles in choice.cells.items()), most=9)
    parts = [f"of {choice.run_id}: {taken}"]
    if choice.passed_over:
        others = (f"{names[cell.cell_id]} ({reason.partition(';')[0]})" for cell, reason in choice.passed_over.items())
        parts.append(f"not taken apart: {listed(others)}")
    if choice.other_rankings:
        parts.append(f"left out: {plural(choice.other_rankings, 'other ranking')}; a flag such as --model chooses one")
    return printable("; ".join(parts))
