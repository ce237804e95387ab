"""Plain values of what was worked out: for tables, exports, and JSON documents whose keys a table lists.

A place is where a value is found in an object: attributes and keys with dots between them.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from harness.spec.work import Cell

Keys = Mapping[str, str | Callable[[Any], Any]]
"""Each key of a JSON object, and the place of its value, or a function of the object; empty: its place is its name."""


def value_at(item: Any, place: str) -> Any:
    """What is at a place of `item`; None where something on the way is missing."""
    for part in place.split("."):
        item = item.get(part) if isinstance(item, Mapping) else getattr(item, part, None)
    return item


def document(item: Any, keys: Keys) -> dict[str, Any]:
    """`item` as a JSON object with `keys`, in their order."""
    return {key: plain(place(item) if callable(place) else value_at(item, place or key)) for key, place in keys.items()}


def each(place: str, keys: Keys) -> Callable[[Any], list[dict[str, Any]]]:
    """Reads what is at a place as a list of objects with `keys`."""
    return lambda item: [document(one, keys) for one in value_at(item, place)]


def ends(place: str) -> Callable[[Any], tuple[float, float] | None]:
    """Reads the ends of the interval at a place; None where there is none."""

    def read(item: Any) -> tuple[float, float] | None:
        interval = value_at(item, place)
        return None if interval is None or interval.low is None else (interval.low, interval.high)

    return read


def plain(value: Any) -> Any:
    """`value` as JSON has it: a number that JSON lacks is None, a cell its id, label and any strategy."""
    if value is None or type(value) in (str, int, bool):  # most of a document, and none of what is looked for below
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Cell):
        strategy = value.get("strategy")
        return {"cell_id": value.cell_id, "label": value.label, **({"strategy": strategy} if strategy else {})}
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
