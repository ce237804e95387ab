"""Histories with known truth: a machine's runs in memory, night after night."""

from collections.abc import Iterator, Sequence

from harness.record import Run, TrialRecord
from harness.spec.work import Cell
from tests.comparisons import MIRRORED, as_run, scaled
from tests.synthetic import make_cell, make_run


def nights(
    count: int,
    cells: Sequence[Cell] | None = None,
    *,
    machine: str = "here",
    processor: str = "a processor",
    slower_from: int | None = None,
    drift: float = 0.01,
) -> Iterator[Run]:
    """`count` runs of a machine; from run `slower_from` on the mirrored cells take a tenth longer."""
    for number in range(count):

        def later(record: TrialRecord, number: int = number) -> TrialRecord:
            slow = slower_from is not None and number >= slower_from and record.cell.strategy == "mirrored"
            return scaled(record, 1.1, 1.1) if slow else record

        made = make_run(
            [make_cell(), MIRRORED] if cells is None else cells,
            blocks=3,
            seed=number,
            drift=drift,
            windows=5,
            faults=False,
            change=later,
        )
        facts = {"machine.id": machine, "cpu.model": processor, "package.tensorflow": "2.20.0"}
        if slower_from is not None and number >= slower_from:
            facts["package.tensorflow"] = "2.21.0"
        when = f"2026-11-{number + 1:02d}T01:00:00+00:00"
        yield as_run(*made, f"202611{number + 1:02d}T010000Z-nightly-{machine}", facts, created_utc=when)
