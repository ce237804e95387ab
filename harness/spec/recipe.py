"""A cell and the settings of its run as the keys of a spec that would ask for them again."""

from collections.abc import Container
from typing import Any

from harness.spec.axes import OF_OWN_STEP, TABLE
from harness.spec.cell import TrainingCell
from harness.spec.collective import GRADIENTS
from harness.spec.engines import interpreters_for
from harness.spec.mesh import Mesh
from harness.spec.pipeline import PipelineCell
from harness.spec.settings import SETTINGS
from harness.spec.sweep import OF_STEP, OWN_OF_WORK, Sweep
from harness.spec.text import text_of
from harness.spec.work import Cell

KeyValue = tuple[str, str, Any]
"""A key of a spec, its value as a flag has it, and its value."""
_DEFAULTS = {key: field.default for key, field in Sweep.model_fields.items()}


def keys_of(cell: Cell, sweep: Sweep) -> list[KeyValue]:
    """What makes the cell: its axes, the buffer of a collective, where a pipeline is cut, or the user's own step."""
    fields = type(cell).model_fields
    named = [key for key in OWN_OF_WORK if cell.get(key)]
    own = [(key, text_of(key, [cell.get(key)]), [cell.get(key)]) for key in named]
    if model := cell.get("gradients"):  # which say how large the buffer is
        own = [*(one for one in own if one[0] != "size"), (GRADIENTS, model, [model])]
    given = [(key, cell.get(key)) for key in OF_STEP if key in fields and cell.get(key) != fields[key].default]
    step = [(key, text_of(key, value), value) for key, value in given]
    whole = cell.whole if isinstance(cell, PipelineCell) else cell
    return [*own, *step, *_axes(whole), *_once_settings(cell, sweep)]


def _axes(cell: Cell) -> list[KeyValue]:
    """Every axis that it has, whose value is not what a spec that does not say comes to."""
    found = []
    fields = type(cell).model_fields
    for key, axis in ((key, axis) for key, axis in TABLE.items() if key in fields):
        value = getattr(cell, key)
        if axis.kinds:
            kind, _, count = value.partition("=")
            found += [(kind, count, [int(count)])] if count else []
        elif axis.always or value not in (*axis.asked[:1], fields[key].default, *_follows(key, cell)):
            found.append((key, text_of(key, value), [value]))
    return found


def _follows(key: str, cell: Cell) -> list[str]:
    """What an axis comes to by another one: without a mesh it is one of the replicas alone, however many."""
    return [Mesh(batch=cell.shape.replicas).text] if key == "mesh" else []


def _once_settings(cell: Cell, sweep: Sweep) -> list[KeyValue]:
    """Axes that were a setting of the run: its spec has the value, no cell has."""
    found = []
    for key in sorted(OF_OWN_STEP):
        default, asked = TrainingCell.model_fields[key].default, sweep.asked(key)
        if cell.get(key) in (None, default) and len(asked) == 1 and asked != [default]:
            found.append((key, text_of(key, asked[0]), asked))
    return found


def settings_of(cell: Cell, sweep: Sweep, engine: str, refused: Container[str]) -> list[KeyValue]:
    """The seed, and every setting that changes what a cell of this engine is measured to be and is not at its
    default; but for those `refused` by it today, which an earlier run may have been given."""
    found = []
    for key, setting in SETTINGS.items():
        value = interpreters_for(engine, sweep) if key == "engine_python" else getattr(sweep, key)
        read = not setting.devices or cell.shape.device in setting.devices
        told = setting.repeated and read and key not in OF_STEP and key not in refused
        if told and (key == "seed" or value != _DEFAULTS[key]):
            found.append((key, text_of(key, value), value))
    return found


def flag_of(pair: KeyValue) -> list[str]:
    """The words of a command line that say it."""
    key, text, value = pair
    name = key.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    return [f"--{name}", text]
