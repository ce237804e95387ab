"""One column of a table: its name, its unit, what it means and where its value is."""

import math
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from harness.report.values import value_at
from harness.report.words.text import IN_THESE_MINUTES

ColumnKind = Literal["text", "category", "count", "number", "flag", "time"]
Read = Callable[[Any], Any]


@dataclass(frozen=True)
class Column:
    """One column. `unit` is empty where there is none; `kind` decides the type in every run alike."""

    name: str
    kind: ColumnKind
    unit: str
    meaning: str
    read: Read | str = ""
    """How to get it from the row's object: a function, or dots to follow, by default those of the name."""

    def of(self, item: Any) -> Any:
        """Its value: a plain one, or None where the object has none or one that is not finite."""
        value = self.read(item) if callable(self.read) else value_at(item, self.read or self.name)
        return None if isinstance(value, float) and not math.isfinite(value) else value


def kind_of(annotation: Any) -> ColumnKind:
    """The kind of column that holds a key of a cell of that type."""
    parts = typing.get_args(annotation) or (annotation,)
    return "flag" if bool in parts else "count" if int in parts else "category"


def interval_columns(
    name: str, unit: str, meaning: str, at: str = "", which: str = "95 % interval"
) -> tuple[Column, ...]:
    """A figure and the ends of its interval, which is `at` in the row's object; by default at its name."""
    at = at or name
    return (
        Column(name, "number", unit, meaning, f"{at}.value"),
        Column(f"{name}_low", "number", unit, f"lower end of its {which}", f"{at}.low"),
        Column(f"{name}_high", "number", unit, f"upper end of its {which}", f"{at}.high"),
    )


INTERVAL_NOW = f"95 % interval {IN_THESE_MINUTES}"
"""Of a throughput by itself; a ratio of trials that took turns does not feel what the machine does later."""
