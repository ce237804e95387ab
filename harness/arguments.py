"""What a person gives: arguments of the Python API, checked by the annotations of its functions, and paths."""

import functools
import inspect
import math
import numbers
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from harness.errors import UsageError
from harness.visible import quoted

_P = ParamSpec("_P")
_R = TypeVar("_R")


def is_text(value: Any) -> bool:
    """Whether it is a text that the system takes as an argument or as a name."""
    return isinstance(value, str) and is_name(value)


def is_name(value: Any) -> bool:
    """Whether it is a text or a path that the system takes as a name."""
    try:
        return isinstance(os.fspath(value), str) and b"\0" not in os.fsencode(value)
    except (TypeError, ValueError):  # no path; a letter that no encoding has
        return False


def path_of(key: str, given: str, expected: str = "a path") -> Path:
    """The path that is meant, with a home folder for `~`; UsageError that names `key` where nobody knows whose."""
    try:
        return Path(given).expanduser()
    except RuntimeError as error:
        raise UsageError(f"{key}: given {quoted(given)}, expected {expected}: {error}") from None


def _is_count(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and abs(int(value)) < 2**63


def is_number(value: Any) -> bool:
    """Whether it is a finite number."""
    try:
        return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


_EXPECTED: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "PathName": (is_name, "a name or a path"),
    "Folder": (is_name, "a path"),
    "str": (is_text, "a text"),
    "bool": (lambda value: isinstance(value, bool), "True or False"),
    "int": (_is_count, "a whole number of 64 bits at most"),
    "float": (is_number, "a finite number"),
    "ShareOrText": (lambda value: is_number(value) or is_text(value), "a share such as 0.01 or '1%'"),
    "Sequence[int]": (
        lambda value: isinstance(value, Sequence) and all(map(_is_count, value)),
        "whole numbers such as (5, 8, 12)",
    ),
    "Mapping[str, Any]": (
        lambda value: isinstance(value, Mapping) and all(map(is_text, value)),
        "keys of a spec with their values, such as {'replicas': 2}",
    ),
}
"""What an argument is to be, by its annotation: whether a value is that, and what it is called."""


def checked(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """`function`, which refuses an argument that is not what its annotation says: UsageError names it.

    `Any` is checked by who reads it. An annotation of which nothing is known is a KeyError when this is imported.
    """
    signature = inspect.signature(function)
    kinds = {key: str(parameter.annotation) for key, parameter in signature.parameters.items()}
    known = {key: _EXPECTED[kind.removesuffix(" | None")] for key, kind in kinds.items() if kind != "Any"}

    @functools.wraps(function)
    def checking(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        given = signature.bind(*args, **kwargs).arguments
        for key, (is_one, expected) in known.items():
            several = signature.parameters[key].kind is inspect.Parameter.VAR_POSITIONAL
            for value in given.get(key, ()) if several else (given[key],) if key in given else ():
                if not (is_one(value) or (value is None and kinds[key].endswith(" | None"))):
                    raise UsageError(f"{key}: given {quoted(value)}, expected {expected}")
        return function(*args, **kwargs)

    return checking


def as_toml(keys: Mapping[str, Any]) -> dict[str, Any]:
    """As TOML has them: lists of what can be gone through, plain whole numbers, and folders as text."""
    return {key: _plain(key, value) for key, value in keys.items()}


def _plain(key: str, value: Any) -> Any:
    """`value` of `key` as TOML has it; as it is where TOML has no such thing. UsageError for a function."""
    if isinstance(value, str | bytes | bool | Mapping):
        return value
    if is_name(value):
        return os.fspath(value)
    if callable(value):
        raise UsageError(f"{key}: given {quoted(value)}, expected a text: 'module:function', written to a file")
    try:
        return operator.index(value)
    except TypeError:
        return [_plain(key, one) for one in value] if isinstance(value, Iterable) else value


def call_words(name: str, /, **given: Any) -> list[str]:
    """What was asked, for the record."""
    return [f"harness.{name}", *(f"{key}={value!r}" for key, value in given.items() if value is not None)]
