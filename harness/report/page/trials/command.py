"""The command that measures a trial's cell again, with the same settings."""

import shlex
from collections.abc import Sequence
from typing import Any

from harness.errors import UsageError
from harness.record.manifest import RunManifest
from harness.spec.axes import OF_PROCESS, SETTINGS, TABLE
from harness.spec.cell import Cell, TrainingCell
from harness.spec.collective import OF_COLLECTIVE
from harness.spec.sweep import OF_STEP, Sweep
from harness.spec.text import text_of, value_from

_DEFAULTS = {key: field.default for key, field in Sweep.model_fields.items()}


def repeat_command(cell: Cell, manifest: RunManifest) -> str | None:
    """`python -m harness sweep …` for this cell, one trial of it and of its base case; None where no flags can say it.

    A name with a comma is no single value of a flag.
    """
    return repeat_commands([cell], manifest)[0]


def repeat_commands(cells: Sequence[Cell], manifest: RunManifest) -> list[str | None]:
    """The same of each of `cells`, which share the run's settings."""
    settings = _words(_settings(manifest.sweep))
    found: list[str | None] = []
    for cell in cells:
        own = _words(_keys(cell, manifest.sweep))
        whole = None if own is None or settings is None else [*own, *settings, "--trials 1"]
        found.append(None if whole is None else " ".join(["python -m harness sweep", *whole]))
    return found


def _words(flags: Sequence[tuple[str, str, Any]]) -> list[str] | None:
    """The flags as one types them; None where one of them would not be read back as what it says."""
    try:
        faithful = all(value_from(key, text) == value for key, text, value in flags)
    except UsageError:
        return None
    if not faithful or not all(text.isprintable() for _, text, _ in flags):
        return None
    return [_flag(key, text, value) for key, text, value in flags]


def _flag(key: str, text: str, value: Any) -> str:
    name = key.replace("_", "-")
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no-{name}"
    return f"--{name} {shlex.quote(text)}"


def _keys(cell: Cell, sweep: Sweep) -> list[tuple[str, str, Any]]:
    """(key, text, value) of what makes the cell: its axes, the buffer of a collective, or the user's own step."""
    fields = type(cell).model_fields
    collective = [(key, text_of(key, [cell.get(key)]), [cell.get(key)]) for key in OF_COLLECTIVE if key in fields]
    given = [(key, cell.get(key)) for key in OF_STEP if key in fields and cell.get(key) != fields[key].default]
    step = [(key, text_of(key, value), value) for key, value in given]
    return [*collective, *step, *_axes(cell), *_once_settings(cell, sweep)]


def _axes(cell: Cell) -> list[tuple[str, str, Any]]:
    """(key, text, value) of every axis that it has, whose value is not what a spec that does not say comes to."""
    found = []
    fields = type(cell).model_fields
    for key, axis in ((key, axis) for key, axis in TABLE.items() if key in fields):
        value = getattr(cell, key)
        if axis.kinds:
            kind, _, count = value.partition("=")
            found += [(kind, count, [int(count)])] if count else []
        elif axis.always or value not in (*axis.asked[:1], fields[key].default):
            found.append((key, text_of(key, value), [value]))
    return found


def _once_settings(cell: Cell, sweep: Sweep) -> list[tuple[str, str, Any]]:
    """(key, text, value) of axes that were a setting of the run: its spec has the value, no cell has."""
    found = []
    for key in sorted(OF_PROCESS):
        default, asked = TrainingCell.model_fields[key].default, sweep.asked(key)
        if cell.get(key) in (None, default) and len(asked) == 1 and asked != [default]:
            found.append((key, text_of(key, asked[0]), asked))
    return found


def _settings(sweep: Sweep) -> list[tuple[str, str, Any]]:
    found = []
    for key, setting in SETTINGS.items():
        value = getattr(sweep, key)
        if setting.repeated and key not in OF_STEP and (key == "seed" or value != _DEFAULTS[key]):
            found.append((key, text_of(key, value), value))
    return found
