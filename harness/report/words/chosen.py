"""Which cells of a sweep are taken apart, and why these."""

from harness.analysis.chosen import Chosen
from harness.analysis.comparison.axis import cell_names
from harness.report.words.text import listed, plural
from harness.visible import printable


def chosen_words(chosen: Chosen, run_id: str) -> str:
    """One line: each cell with what it is to the sweep, what could not be taken, and how to choose otherwise."""
    names = cell_names([*chosen.cells, *chosen.passed_over])
    taken = listed((f"{names[cell.cell_id]} ({', '.join(roles)})" for cell, roles in chosen.cells.items()), most=9)
    parts = [f"of {run_id}: {taken}"]
    if chosen.passed_over:
        others = (f"{names[cell.cell_id]} ({reason.partition(';')[0]})" for cell, reason in chosen.passed_over.items())
        parts.append(f"not taken apart: {listed(others)}")
    if chosen.other_rankings:
        parts.append(f"left out: {plural(chosen.other_rankings, 'other ranking')}; a flag such as --model chooses one")
    return printable("; ".join(parts))
