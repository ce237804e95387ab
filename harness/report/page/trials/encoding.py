"""Values as the page carries them: JSON, deflated, in base64, in dictionaries and columns."""

import base64
import json
import zlib
from collections.abc import Hashable, Iterable
from typing import Any, Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_LEVEL = 5
"""Of zlib: level 6 takes more than twice as long for 6 % less."""


def packed(value: Any) -> str:
    """`value` for a page's script, which inflates it with DecompressionStream("deflate"). No NaN may be in it."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode("utf-8", "replace"), _LEVEL)).decode("ascii")


class Coded(Generic[_Key]):
    """Values that repeat, each kept once and named by its number."""

    def __init__(self) -> None:
        self._numbers: dict[_Key, int] = {}

    def number(self, key: _Key) -> int:
        """The number of `key`; a new one gets the next."""
        return self._numbers.setdefault(key, len(self._numbers))

    @property
    def keys(self) -> list[_Key]:
        """Every key by its number."""
        return list(self._numbers)


def rounded(values: Iterable[float | None], digits: int) -> list[float | None]:
    """Each value to `digits` significant digits; what is not known or not finite is None."""
    shape = f"%.{digits}g"
    return [None if value is None or value - value != 0 else float(shape % value) for value in values]
