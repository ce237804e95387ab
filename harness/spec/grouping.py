"""Which cells go together: by every key but a named few, so that an axis nobody thought of keeps cells apart."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from pydantic import BaseModel

from harness.spec.axes import PROGRAM, TABLE, Axes
from harness.spec.entry import Axis
from harness.spec.work import Cell

SIZE = "global_batch_size"
"""Follows from other keys."""
FOLLOWING = frozenset(Axes.model_fields) - TABLE.keys()
"""Keys of a training's cell that follow from others, and are therefore no axes: SIZE, and the tokens of a model."""
THREADS = ("intra_op_threads",)
"""What base cases differ in: one device, or one process on the whole machine."""


def keys_of(takes: Callable[[Axis], object]) -> frozenset[str]:
    """The axes whose entry `takes` says yes to."""
    return frozenset(key for key, axis in TABLE.items() if takes(axis))


def apart(cell: BaseModel, few: Collection[str]) -> tuple[object, ...]:
    """What cells share that differ in nothing but the keys in `few`: every other key, whatever keys there are."""
    return (type(cell).__name__, *((key, getattr(cell, key)) for key in type(cell).model_fields if key not in few))


COMPETING = keys_of(lambda axis: axis.competes) | {SIZE}
"""Keys whose values are alternatives within one ranking."""
TAKING_TURNS = keys_of(lambda axis: axis.competes if axis.takes_turns is None else axis.takes_turns) | {SIZE}
"""Keys in which cells may differ that are alive together and take turns."""
IN_PROGRAM = keys_of(lambda axis: axis.in_program)
"""Keys that the traced program shows, or the global batch size beside it."""
SIDE_BY_SIDE = keys_of(lambda axis: axis.side_by_side)
ONE_UPDATE = keys_of(lambda axis: bool(axis.one_update)) | {SIZE}
"""Keys in which cells may differ that make the same update of the same batches."""
BESIDE_PROGRAM: Mapping[str, tuple[str, ...]] = {
    key: places
    for key, axis in TABLE.items()
    if not axis.in_program
    and not axis.along_curve
    and (places := tuple(place for place in axis.shown_by if place not in PROGRAM))
}
"""Places of a record that show whether an axis took hold which the program does not show. What is counted along a
curve is not among them: two counts are two experiments."""
ALONG_CURVE = keys_of(lambda axis: axis.along_curve) | {SIZE}
IDLE_SOMEWHERE = keys_of(lambda axis: axis.idle)
"""Keys of which some cells have no use: those lie on the curves of all values."""


def turn_takers(cell: Cell) -> tuple[object, ...]:
    """What cells share that may be alive together and take turns."""
    name, *shared = apart(cell, TAKING_TURNS | cell.TAKING_TURNS)
    return (cell.COMPANY or name, *shared)


def family(cell: BaseModel) -> tuple[object, ...]:
    """What the cells of all curves share that may have a point in common."""
    keys = type(cell).model_fields
    told = {key: axis.on_curve for key, axis in TABLE.items() if axis.on_curve is not None and key in keys}
    shared = (of_value(getattr(cell, key)) for key, of_value in told.items())
    return (*apart(cell, ALONG_CURVE | IDLE_SOMEWHERE), *shared)


def own_curve(cell: BaseModel) -> tuple[Any, ...]:
    """What sets the curves of one family apart."""
    keys = type(cell).model_fields
    return tuple(getattr(cell, key) for key in TABLE if key in IDLE_SOMEWHERE and key in keys)


def idle_in(key: str, cell: BaseModel) -> bool:
    """Whether a cell has no use for what it is asked for of an axis."""
    idle = TABLE[key].idle
    return idle is not None and idle(cell)


def lies_in_family_on_curve(point: BaseModel, cell: BaseModel) -> bool:
    """Whether `point` is on the curve of `cell`: equal but for what varies along it and what is idle there. The two are
    known to be of one `family`: to find that out takes ten times as long."""
    return all(
        getattr(point, key) == getattr(cell, key) or idle_in(key, point)
        for key in TABLE
        if key in IDLE_SOMEWHERE and key in type(cell).model_fields
    )


def experiment(cell: BaseModel, evidence: Mapping[str, object] | None = None) -> tuple[object, ...]:
    """What cells share that ran the same experiment, where they trace to one program.

    `evidence` is, by key, what the record shows of axes that the program does not: it stands in the value's place.
    """
    shown = evidence or {}
    return (*apart(cell, IN_PROGRAM | shown.keys()), *shown.items())
