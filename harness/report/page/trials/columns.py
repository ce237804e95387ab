"""A run's trials as columns of numbers and coded names, as the script of the page reads them."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from harness.record.checks import Checks
from harness.record.manifest import RunManifest
from harness.record.trial import Executed, Phases, Resources, TrialRecord
from harness.report.page.trials.command import repeat_commands
from harness.report.page.trials.encoding import Coded, rounded
from harness.report.tables.sweep import executed_text
from harness.report.words.text import STATUS_WORDS, shortened
from harness.spec.cell import cell_names
from harness.spec.quantity import EXAMPLES
from harness.spec.work import Cell, quantity_of
from harness.visible import printable

DIGITS_SHOWN = 6
"""Significant digits of figures on the page; the records have all."""
PHASE_DIGITS = 4
MOST_LETTERS = 300
"""Of a reason, which the search looks through; the record has all."""
_NUMBERS: dict[str, Callable[[TrialRecord], float | None]] = {
    EXAMPLES.throughput_key: lambda trial: trial.throughput,
    "step_time_s": lambda trial: trial.step_time_s,
    EXAMPLES.cpu_key: lambda trial: trial.cpu_seconds_each,
    "final_loss": lambda trial: trial.final_loss,
    "update_error": lambda trial: trial.checks.update_error,
}
_Part = TypeVar("_Part", Executed, Resources)
_CHECKS = ("gate", *(name for name, field in Checks.model_fields.items() if field.annotation == bool | None))


def columns_of(trials: Sequence[TrialRecord], cells: Sequence[Cell]) -> dict[str, Any]:
    """`coded` columns with the list that each number points into, and `columns` of plain numbers; None where unknown.

    `cells` are all that the trials have, each once.
    """
    coded = _coded(trials)
    where = {cell.cell_id: index for index, cell in enumerate(cells)}
    numbers: dict[str, list[Any]] = {
        "cell": [where[trial.cell_id] for trial in trials],
        "block": [trial.block for trial in trials],
        "order": [trial.order for trial in trials],
        "attempt": [trial.attempt for trial in trials],
        "peak_memory_bytes": [trial.peak_memory_bytes for trial in trials],
        "peak_device_memory_bytes": [trial.peak_device_memory_bytes for trial in trials],
        "windows": [
            len(trial.windows.seconds) - trial.windows.measured_from if trial.windows else None for trial in trials
        ],
        "updates_applied": [trial.checks.updates_applied for trial in trials],
        "updates_scheduled": [trial.checks.updates_scheduled for trial in trials],
        "started": _started([trial.started_utc for trial in trials]),
    }
    worded = quantity_of(cells).worded
    numbers |= {worded(name): rounded(map(read, trials), DIGITS_SHOWN) for name, read in _NUMBERS.items()}
    for name in Phases.model_fields:
        numbers[name] = rounded((getattr(trial.phases, name) for trial in trials), PHASE_DIGITS)
    numbers["fixed_s"] = rounded((trial.phases.fixed_s if _fixed(trial) else None for trial in trials), PHASE_DIGITS)
    return {"coded": coded, "columns": {name: column for name, column in numbers.items() if _any_known(column)}}


def labels_of(cells: Sequence[Cell]) -> list[str]:
    """The cells' labels, with whatever else tells apart cells that share one."""
    labels = [cell.label for cell in cells]
    if len(set(labels)) < len(labels):
        names = cell_names(cells)
        labels = [names[cell.cell_id] for cell in cells]
    return [printable(shortened(label, MOST_LETTERS)) for label in labels]


def varying_keys(cells: Sequence[Cell]) -> list[str]:
    """Keys in which the cells differ."""
    if not cells:
        return []
    keys = dict.fromkeys(key for cell in cells for key in type(cell).model_fields)
    return [key for key in keys if len({cell.get(key) for cell in cells}) > 1]


def described_cells(manifest: RunManifest, cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Of each cell its label, its keys, and the command that measures it again."""
    return [
        {
            "id": cell.cell_id,
            "label": label,
            "keys": {
                key: printable(value) if isinstance(value, str) else value
                for key, value in cell.model_dump(mode="json").items()
            },
            "command": command,
        }
        for label, cell, command in zip(labels_of(cells), cells, repeat_commands(cells, manifest), strict=True)
    ]


def _coded(trials: Sequence[TrialRecord]) -> dict[str, Any]:
    """Of each name (the values, the number of each trial's)."""
    status, group, phase, reason, side, ways = (Coded[str]() for _ in range(6))
    checks, ran, on = Coded[tuple[Any, ...]](), Coded[tuple[Any, ...]](), Coded[tuple[Any, ...]]()
    columns: dict[str, tuple[Coded[Any], list[int]]] = {
        "status": (status, [status.number(STATUS_WORDS[trial.status]) for trial in trials]),
        "group": (group, [group.number(_short(trial.group)) for trial in trials]),
        "phase": (phase, [phase.number(trial.phase or "") for trial in trials]),
        "reason": (reason, [reason.number(_short(trial.reason or "")) for trial in trials]),
        "side": (side, [side.number(_short(trial.side or "")) for trial in trials]),
        "checks": (checks, [checks.number(tuple(getattr(trial.checks, name) for name in _CHECKS)) for trial in trials]),
        "executed": (ran, _numbers_of(ran, [trial.executed for trial in trials], _ran)),
        "resources": (on, _numbers_of(on, [trial.resources for trial in trials], _on)),
        "interleaving": (ways, [ways.number(trial.interleaving) for trial in trials]),
    }
    found: dict[str, Any] = {name: {"values": code.keys, "column": column} for name, (code, column) in columns.items()}
    found["checks"]["names"] = _CHECKS
    return found


def _numbers_of(
    code: Coded[tuple[Any, ...]], parts: Sequence[_Part], key_of: Callable[[_Part], tuple[Any, ...]]
) -> list[int]:
    """The number of each part; the same object, which a run that was read has in many trials, is looked at once."""
    known: dict[int, int] = {}
    for part in parts:
        if id(part) not in known:
            known[id(part)] = code.number(key_of(part))
    return [known[id(part)] for part in parts]


def _ran(executed: Executed) -> tuple[Any, ...]:
    return printable(executed_text(executed)), printable(executed.fingerprint)


def _on(of: Resources) -> tuple[Any, ...]:
    devices = _short(", ".join(of.logical_devices))
    return devices, of.physical_devices, of.shared, of.intra_op_threads, of.inter_op_threads


def _short(text: str) -> str:
    return printable(shortened(text, MOST_LETTERS))


def _fixed(trial: TrialRecord) -> bool:
    """Whether the trial got through all that a fixed cost is made of."""
    return trial.measured or trial.status == "wrong_result"


def _any_known(column: Sequence[Any]) -> bool:
    return any(value is not None for value in column)


def _started(texts: Sequence[str]) -> list[int | None]:
    """Seconds since 1970; None where the text is no time."""
    found: list[int | None] = []
    for text in texts:
        try:
            found.append(int(datetime.fromisoformat(text).timestamp()))
        except (ValueError, OverflowError, OSError):
            found.append(None)
    return found
