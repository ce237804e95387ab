"""Runs whose reports are kept word by word."""

from collections.abc import Callable

from harness.record.manifest import RunManifest
from harness.record.trial import TrialRecord
from tests.report.pages import NASTY
from tests.synthetic import default_cells, failed, make_cell, make_run

LONG = "".join(chr(0x4E00 + number) for number in range(300))
Made = tuple[RunManifest, list[TrialRecord]]


def died(record: TrialRecord) -> TrialRecord:
    return failed(record, "crashed", NASTY, phase="start", evidence=NASTY)


def one_trial() -> Made:
    return make_run([make_cell()], blocks=1, faults=False)


RUNS: dict[str, Callable[[], Made]] = {
    "every kind of cell": make_run,
    "all cells fail": lambda: make_run(default_cells((1, 2), (32,)), change=died),
    "one cell": lambda: make_run([make_cell()], faults=False),
    "one trial": one_trial,
    "one trial, failed": lambda: make_run([make_cell()], blocks=1, change=died),
    "no trial yet": lambda: make_run([make_cell()], blocks=0, status="running"),
    "two trials a cell": lambda: make_run(default_cells((1, 2), (32,)), blocks=2),
    "hostile names": lambda: make_run(
        [make_cell(model=NASTY), make_cell("mirrored", 2, model=NASTY, op=NASTY), make_cell(model=LONG, data='"><b>')],
        change=lambda record: record if record.block else died(record),
    ),
    "no windows": lambda: make_run(
        [make_cell(), make_cell("mirrored", 2)],
        faults=False,
        change=lambda record: record.model_copy(
            update={
                "windows": record.windows
                and record.windows.model_copy(
                    update={"seconds": [], "cpu_seconds": [], "rounds": [], "measured_from": 0}
                )
            }
        ),
    ),
}
