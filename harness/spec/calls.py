"""Names with parameters, as a key of a spec takes them: `transformer(layers=2,width=64)`."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from harness.errors import UsageError, nearest

PATTERN = r"\w+\([^()]*\)"
"""What is a name with parameters, right or wrong."""
MOST = 2**24
"""No parameter is larger: what is made of several must still be countable."""
_PART = re.compile(r"\s*,\s*(?![^()]*\))")
"""A comma that stands in no parentheses."""


def split_values(text: str) -> list[str]:
    """The values of an axis, as a flag lists them: a comma within parentheses ends none."""
    return _PART.split(text.strip())


def name_of(text: str) -> str:
    """The name before the parentheses, if there are any."""
    return text.partition("(")[0].strip() if text.endswith(")") else text


def parameters_of(key: str, text: str, sizes: Mapping[str, int]) -> Mapping[str, int]:
    """The parameters that `text`, a value of `key`, gives, in the order of `sizes` and without its defaults.

    `sizes` has each parameter that the name takes, with its default. Raises UsageError, one line that names the
    parameter and what it takes.
    """
    name = name_of(text)
    if name == text:
        return MappingProxyType({})
    if not sizes:
        raise UsageError(f"{key}: given {text!r}, but '{name}' takes no parameters")
    given: dict[str, int] = {}
    for part in text.strip()[:-1].partition("(")[2].split(","):
        parameter, _, value = (piece.strip() for piece in part.partition("="))
        if parameter not in sizes:
            takes = ", ".join(f"{size}={default}" for size, default in sizes.items())
            raise UsageError(
                f"{key}: given {text!r}: '{name}' has no parameter {parameter!r}, expected some of {takes}"
                + nearest(parameter, sizes)
            )
        if parameter in given:
            raise UsageError(f"{key}: given {text!r}: '{parameter}' is there twice")
        if not re.fullmatch(r"[0-9]{1,8}", value) or not 1 <= int(value) <= MOST:
            raise UsageError(
                f"{key}: given {text!r}: {parameter}: given {value!r}, expected a whole number from 1 to {MOST}"
            )
        given[parameter] = int(value)
    return MappingProxyType({size: given[size] for size in sizes if given.get(size, sizes[size]) != sizes[size]})


def text_of(name: str, parameters: Mapping[str, int]) -> str:
    """The one spelling of a name with these parameters: those that are not at their defaults, in the name's order."""
    return f"{name}({','.join(f'{key}={value}' for key, value in parameters.items())})" if parameters else name
