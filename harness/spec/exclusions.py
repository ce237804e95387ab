"""Combinations that a sweep leaves out, such as `exclude = "strategy=mirrored replicas=2,3; model=gpt xla=true"`."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.errors import UsageError, nearest
from harness.spec.axes import CELL_KEYS
from harness.spec.catalogue import Catalogue
from harness.spec.inputs import LeftOut
from harness.spec.reading import read_keys
from harness.spec.spelling import same
from harness.spec.sweep import ASKED, Sweep
from harness.spec.text import value_from
from harness.spec.work import Cell
from harness.visible import quoted

EXPECTED = "KEY=VALUE …, and ';' between combinations, such as 'strategy=mirrored replicas=2,3; model=mlp xla=true'"
WHY = "excluded"


@dataclass(frozen=True)
class Exclusion:
    """What a cell has that is not asked for after all: of each key one of its values."""

    text: str
    values: Mapping[str, Sequence[Any]]

    def fits(self, cell: Cell, catalogue: Catalogue) -> bool:
        """Whether the cell, of an engine with these names, has one of the values of each key."""
        has = {key: cell.get(CELL_KEYS.get(key, key)) for key in self.values}
        return all(any(same(key, has[key], one, catalogue) for one in ones) for key, ones in self.values.items())

    @property
    def left_out(self) -> LeftOut:
        """How a matrix tells that it was heeded."""
        return LeftOut(self.text, WHY)


def exclusions(text: str) -> Sequence[Exclusion]:
    """The combinations of `exclude`; UsageError for a key that no cell has and for what is no KEY=VALUE."""
    parts = [" ".join(part.split()) for part in text.split(";")]
    return [Exclusion(part, dict(_pairs(part))) for part in parts if part]


def excluded_by(text: str) -> Callable[[Cell, Catalogue], bool]:
    """Whether `exclude` leaves out a cell of an engine of such a catalogue; UsageError as `exclusions`."""
    combinations = exclusions(text)
    return lambda cell, catalogue: any(one.fits(cell, catalogue) for one in combinations)


def _pairs(combination: str) -> Iterator[tuple[str, Sequence[Any]]]:
    try:
        words = shlex.split(combination)
    except ValueError as error:  # No closing quotation
        raise UsageError(f"exclude: given {quoted(combination)}: {error}") from None
    for word in words:
        key, _, value = word.partition("=")
        if not value:
            raise UsageError(f"exclude: given {quoted(word)}, expected {EXPECTED}")
        if key not in ASKED:
            raise UsageError(f"exclude: {quoted(key)} is no axis of a sweep{nearest(key, ASKED)}")
        try:
            given = value_from(key, value)
        except UsageError as error:
            raise UsageError(f"exclude: {error}") from None
        values = getattr(read_keys(Sweep, {key: given}, "exclude"), key)
        yield key, [f"{key}={value}" for value in values] if key in CELL_KEYS else values


def must_have_fitted(text: str, left_out: Sequence[LeftOut]) -> None:
    """UsageError for a combination of `exclude` that was no cell: it is misspelt, or nobody asked for it."""
    for exclusion in exclusions(text):
        if exclusion.left_out not in left_out:
            raise UsageError(f"exclude: no cell has {quoted(exclusion.text)}; correct it or leave it out")
