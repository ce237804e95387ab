"""Combinations that a sweep leaves out, such as `exclude = "strategy=mirrored replicas=3; model=gpt xla=true"`."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.errors import UsageError, nearest
from harness.spec.axes import TABLE
from harness.spec.cell import Cell
from harness.spec.inputs import LeftOut
from harness.spec.sweep import ASKED
from harness.spec.text import text_of
from harness.visible import quoted

EXPECTED = "KEY=VALUE …, and ';' between combinations, such as 'strategy=mirrored replicas=3; model=mlp xla=true'"
WHY = "excluded"
_CELL_KEYS = {name: key for key, axis in TABLE.items() for name in axis.kinds}
"""Of keys in whose place cells have another, that one."""


@dataclass(frozen=True)
class Exclusion:
    """The values, as flags spell them, that a cell has which is not asked for after all."""

    values: Mapping[str, str]

    def fits(self, cell: Cell) -> bool:
        """Whether the cell has all of the values."""
        return all(_value(cell, key) == value for key, value in self.values.items())

    @property
    def left_out(self) -> LeftOut:
        """How a matrix tells that it was heeded."""
        return LeftOut(" ".join(f"{key}={value}" for key, value in self.values.items()), WHY)


def exclusions(text: str) -> Sequence[Exclusion]:
    """The combinations of `exclude`; UsageError for a key that no cell has and for what is no KEY=VALUE."""
    return [Exclusion(dict(_pairs(part))) for part in text.split(";") if part.strip()]


def _pairs(combination: str) -> Iterator[tuple[str, str]]:
    try:
        words = shlex.split(combination)
    except ValueError as error:  # No closing quotation
        raise UsageError(f"exclude: given {quoted(combination.strip())}: {error}") from None
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not value:
            raise UsageError(f"exclude: given {quoted(word)}, expected {EXPECTED}")
        if key not in ASKED:
            raise UsageError(f"exclude: {quoted(key)} is no axis of a sweep{nearest(key, ASKED)}")
        yield key, value


def _value(cell: Cell, key: str) -> str:
    """What the cell has of a key of a spec; empty where it has no such key."""
    kept = _CELL_KEYS.get(key, key)
    value = cell.get(kept)
    if kept != key:  # as `KEY=VALUE`
        return str(value).removeprefix(f"{key}=") if str(value).startswith(f"{key}=") else ""
    return "" if value is None else text_of(key, [value])


def must_have_fitted(text: str, left_out: Sequence[LeftOut]) -> None:
    """UsageError for a combination of `exclude` that was no cell: it is misspelt, or nobody asked for it."""
    for exclusion in exclusions(text):
        if exclusion.left_out not in left_out:
            raise UsageError(
                f"exclude: no cell has {quoted(exclusion.left_out.combination)}; correct it or leave it out"
            )
