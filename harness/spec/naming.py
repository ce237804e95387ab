"""What names of cells say of their keys: the parts that labels, sentences, curves and tables are put together from."""

import functools
import re
from collections.abc import Collection, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from pydantic import BaseModel

from harness.spec.axes import NO_MODEL, TABLE, Axes
from harness.spec.entry import Word, unlabelled

TOLD = tuple(key for key, axis in TABLE.items() if axis.told)
"""Keys that names of rankings say at their defaults too."""
UNLABELLED = tuple(key for key, axis in TABLE.items() if axis.label is unlabelled)
"""Keys that a cell's label leaves out."""
IN_HEAD = ("model", "data", "device")
"""Keys that names of rankings and series begin with."""
BESIDE_HEAD = tuple(key for key in TABLE if key in (*UNLABELLED, *TOLD) and key not in IN_HEAD)
"""Keys that such a name says besides, for no label says them at every value."""
SPELLED = tuple(key for key, axis in TABLE.items() if key in BESIDE_HEAD or axis.series)
"""Keys that full names have as KEY=VALUE, where they are not at their default."""
_BESIDE_AXES = (
    *(r"\d+ workers", r"\d+ ps", r"\d+ a worker", r"b\d+ global"),
    r"-\S+ (?!b\d+(?!\S))(?:-?\d\S*|[^-\s]\S*)",
)
"""What else labels say in several words: on what a training is placed, its batch, and each flag of a script with what
follows it."""


def head(cell: Any) -> str:
    """`mlp on digits, virtual-cpu`: what names of rankings and series begin with."""
    on = "" if cell.model == NO_MODEL else f"{cell.model} on "
    return f"{on}{cell.data}, {cell.device}"


def sayings(cell: BaseModel, without: Collection[str] = (), in_words: bool = False) -> list[str]:
    """What a name says of `cell` after its head: every axis that is not at its default, but those in `without`.

    Axes that its kind of work lacks have nothing to say. `in_words` is for a sentence instead of a label.
    """
    found = (word(cell) for key, word in _words_of(type(cell), in_words) if key not in without)
    return [text for text in found if text]


@functools.cache
def _words_of(kind: type[BaseModel], in_words: bool) -> tuple[tuple[str, Word], ...]:
    """The keys of a kind of work that a name says something of, in their order, each with what says it."""
    told = [key for key in TABLE if key in kind.model_fields and TABLE[key].label is not unlabelled]
    return tuple((key, _word(key, in_words)) for key in sorted(told, key=lambda key: TABLE[key].late))


def parts_of(name: str) -> list[str]:
    """What a name says, one thing after the other: `8 steps a call`, `2 threads`, `prefetch 8`, `XLA`.

    A number that no axis is known by keeps the words on both sides, for it may be of either.
    """
    return _parts().findall(name)


@functools.cache
def _parts() -> re.Pattern[str]:
    known = rf"(?:{'|'.join(dict.fromkeys([*_BESIDE_AXES, *_forms()]))}),?(?!\S)"
    number = rf"(?:\S*[^\s,] )?(?!{known})\d[\d.]*(?:,|(?: (?!{known})\S+)?)(?!\S)"
    return re.compile(rf"{known}|{number}|\S+")


def _forms() -> Iterator[str]:
    """How labels say what takes them several words, of every axis at the two values that it is tried with."""
    for key, axis in TABLE.items():
        for value in axis.tried:
            said = _word(key, in_words=False)(SimpleNamespace(**{key: value})).split()
            if len(said) > 1:
                yield " ".join(r"\S+" if word == str(value).lower() else re.escape(word) for word in said)


def value_words(cell: Any, key: str) -> str:
    """The value of a key that labels leave out, where it must be told all the same: `digits`, `no XLA`."""
    words = TABLE[key].words
    return str(getattr(cell, key)) if words is None else words(cell)


def untold(cell: BaseModel, keys: Collection[str]) -> str:
    """`, float32, no XLA`: values of `keys` that what a name says of `cell` leaves out."""
    return "".join(f", {value_words(cell, key)}" for key in keys if not _word(key, in_words=True)(cell))


def key_words(key: str) -> str:
    """A key within a sentence."""
    return TABLE[key].called or key.replace("_", " ")


def told_among(cells: Sequence[Axes], key: str) -> str:
    """The values of a key that labels leave out, once each: `float32 and mixed_bfloat16`."""
    return " and ".join(dict.fromkeys(value_words(cell, key) for cell in cells))


def told_value(key: str, value: object) -> str:
    """A value of a key by itself: in the words of a label, or where these say nothing of it, with the key's name."""
    cell = SimpleNamespace(**{key: value})
    named = f"{key} {str(value).lower() if isinstance(value, bool) else value}"
    if key not in TABLE:
        return named
    if TABLE[key].told or key in UNLABELLED:
        return value_words(cell, key)
    return _word(key, in_words=False)(cell) or named


def _word(key: str, in_words: bool) -> Word:
    axis = TABLE[key]
    if in_words and axis.words is not None and not axis.told:
        return axis.words
    return axis.label or (lambda cell: _key_and_value(cell, key))


def _key_and_value(cell: Any, key: str) -> str:
    value = getattr(cell, key)
    return "" if value == Axes.model_fields[key].default else f"{key} {value}".lower()
