"""Which cells of a finished sweep are worth taking apart: the fastest, TensorFlow's default op, the base case."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from harness.analysis.summary import CellSummary, RunSummary, WorkloadSummary
from harness.errors import UsageError
from harness.spec.axes import ENGINE, TABLE
from harness.spec.bases import base_among
from harness.spec.cell import TrainingCell, trained
from harness.spec.grouping import SIDE_BY_SIDE
from harness.spec.work import Cell

FASTEST, DISTRIBUTED = "the fastest", "the fastest on several replicas"
DEFAULT_OP, OF_ENGINE, BASE = "TensorFlow's default op", "its engine's default op", "the base case"
FaultOf = Callable[[Cell], str | None]
"""Why a cell cannot be taken apart; None where it can."""


@dataclass(frozen=True)
class Choice:
    """Cells of one ranking, the fastest first, and what could not be taken."""

    run_id: str
    cells: Mapping[TrainingCell, tuple[str, ...]]
    """Each with what it is to the ranking."""
    passed_over: Mapping[Cell, str]
    """Cells that would have been chosen, and those that are unproved, each with the reason why it is not."""
    other_rankings: int
    """Rankings of the sweep from which nothing is chosen."""


def choice_of(summary: RunSummary, fits: Callable[[Cell], bool], fault_of: FaultOf) -> Choice:
    """Of the first ranking that has cells which `fits` takes; where none has, of its unproved ones: to be taken apart a
    cell need not be proved. UsageError where `fault_of` says something of each.

    Where the fastest has one replica, the fastest on several is chosen too: of it one asks why it is not faster.
    """
    found = [rivals for work in summary.workloads if any(rivals := _rivals(work, fits))]
    if not found:
        raise UsageError(
            f"RUN: '{summary.run_id}' has no such cell that was measured; harness show {summary.run_id} has all"
        )
    ranked, unproved = next((rivals for rivals in found if rivals[0]), found[0])
    candidates = ranked or [*unproved]
    passed_over: dict[Cell, str] = {}
    fastest = _first(candidates, fault_of, passed_over)
    distributed = _first([cell for cell in candidates if cell.devices_in_sync > 1], fault_of, passed_over)
    if fastest is None:
        [(cell, reason), *_] = passed_over.items()
        raise UsageError(f"RUN: no cell of '{summary.run_id}' can be taken apart; {cell.label}: {reason}")
    roles = [(fastest, FASTEST)]
    if distributed is not None and fastest.devices_in_sync == 1:
        roles.append((distributed, DISTRIBUTED))
    about = distributed or fastest
    plain = about.model_copy(update={key: TABLE[key].base for key in SIDE_BY_SIDE})
    default = DEFAULT_OP if plain.engine == ENGINE else OF_ENGINE
    base = trained(base_among(cell.trials.cell for cell in summary.cells)(about))
    for cell, role in ((plain, default), (base, BASE)):
        there = summary.by_id.get(cell.cell_id)
        if there is not None and _is_taken(there, fault_of, passed_over):
            roles.append((cell, role))
    cells: dict[TrainingCell, tuple[str, ...]] = {}
    for cell, role in roles:
        cells[cell] = (*cells.get(cell, ()), role)
    if ranked:
        passed_over |= {cell: reason for cell, reason in unproved.items() if cell not in {*cells, *passed_over}}
    return Choice(summary.run_id, cells, passed_over, len(found) - 1)


def _rivals(work: WorkloadSummary, fits: Callable[[Cell], bool]) -> tuple[list[Cell], dict[Cell, str]]:
    """The ranked cells which `fits` takes, and those that are unproved with the reason, the fastest first."""
    ranked, unranked = ([cell for cell in cells if fits(cell.trials.cell)] for cells in (work.ranking, work.unranked))
    unranked.sort(key=_rate, reverse=True)
    unproved = {cell.trials.cell: f"unproved: {cell.trials.unproved}" for cell in unranked}
    return [cell.trials.cell for cell in ranked], unproved


def _rate(cell: CellSummary) -> float:
    return 0.0 if cell.measured is None else cell.measured.throughput.value


def _first(cells: Iterable[Cell], fault_of: FaultOf, passed_over: dict[Cell, str]) -> TrainingCell | None:
    """The first that can be taken apart; of those before it `passed_over` is told."""
    for cell in cells:
        reason = fault_of(cell)
        if reason is None:
            return trained(cell)
        passed_over[cell] = reason
    return None


def _is_taken(found: CellSummary, fault_of: FaultOf, passed_over: dict[Cell, str]) -> bool:
    """Whether it was measured, and can be taken apart; else `passed_over` is told."""
    reason = None if found.measured is not None else found.trials.status.replace("_", " ")
    if reason := reason or fault_of(found.trials.cell):
        passed_over[found.trials.cell] = reason
    return not reason
