"""Cells that compute the wrong thing: what not to use, before anything is said of speed."""

from collections import defaultdict
from collections.abc import Iterator

from harness.analysis import CellSummary, WorkloadSummary
from harness.report.words.text import CHECK_WORDS, listed
from harness.visible import printable

_MISSING = ": the value of "
"""What evidence of a sum begins with where it tells whose value was dropped."""


def wrong_words(work: WorkloadSummary) -> Iterator[str]:
    """`Do not use mirrored ×3 hierarchical_copy: it gives a wrong result (...)`, a sentence for each way to be so."""
    right = {_name(cell) for cell in work.cells if cell.measured is not None}
    found: defaultdict[str, list[str]] = defaultdict(list)
    for cell in work.cells:
        for problem in cell.trials.problems:
            if problem.status == "wrong_result":
                name = _name(cell)
                found[_why(problem.failed_checks, problem.details, problem.reason)].append(
                    cell.label if name in right else name
                )
    for why, names in found.items():
        several = list(dict.fromkeys(names))
        gives = "it gives a wrong result" if len(several) == 1 else "they give wrong results"
        yield printable(f"Do not use {listed(several)}: {gives} ({why}).")


def _name(cell: CellSummary) -> str:
    """The cell whatever its batch."""
    return cell.trials.cell.label_of_any_batch or cell.label


def _why(failed: tuple[str, ...], details: tuple[tuple[str, str], ...], reason: str) -> str:
    if not failed:
        return reason
    _, dropped, whose = dict(details).get(failed[0], "").partition(_MISSING)
    return CHECK_WORDS.get(failed[0], failed[0]) + (f"{dropped}{whose}" if dropped else "")
