"""Whether a record is one of a run: a line that was pasted in would count as a measurement of its own."""

from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Protocol

from harness.errors import StorageError
from harness.spec.work import Cell
from harness.visible import quoted

REMEDY = "mend or remove it"
"""Of a line that cannot be read as one of the run."""


class OfARun(Protocol):
    """A line of a run's file: a trial, or a job that a fault was done to."""

    @property
    def run_id(self) -> str:
        """The run that wrote it."""

    @property
    def cell_id(self) -> str:
        """Of the cell that ran."""

    @property
    def identity(self) -> Hashable:
        """What no other line of the run has."""


class Belonging:
    """What lines that are valid by themselves must agree with, asked of one after the other."""

    def __init__(self, run_id: str | None, cells: Iterable[Cell]) -> None:
        """`cells` are the manifest's; where it lists none, which cells a line is of is not asked.

        Nor is of which run a line is, without a `run_id`.
        """
        self._run_id = run_id
        self._cell_ids = frozenset(cell.cell_id for cell in cells)
        self._lines: dict[Hashable, int] = {}

    def check(self, record: OfARun, file: Path, line: int) -> None:
        """StorageError, with the line and the key, where the record is none of the run's, or is there already."""
        if (problem := self._problem(record, line)) is not None:
            raise StorageError(f"{file}:{line}: {problem}")

    def _problem(self, record: OfARun, line: int) -> str | None:
        if self._run_id is not None and record.run_id != self._run_id:
            return f"run_id: {quoted(record.run_id)} is not this run's ({quoted(self._run_id)}): {REMEDY}"
        if self._cell_ids and record.cell_id not in self._cell_ids:
            return f"cell_id: {quoted(record.cell_id)} is none of the cells of this run: {REMEDY}"
        earlier = self._lines.setdefault(record.identity, line)
        return None if earlier == line else f"record: repeats line {earlier}: remove one of the two"
