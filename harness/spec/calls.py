"""Names with parameters, as a key of a spec takes them: `transformer(layers=2,width=64)`, `adamw(clipnorm=1)`."""

import re
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType

from harness.errors import UsageError, nearest

PATTERN = r"\w+\([^()]*\)"
"""What is a name with parameters, right or wrong."""
MOST = 2**24
"""No parameter of a registered name is larger: what is made of several must still be countable."""
MOST_OF_OWN = 2**53
"""Of the user's own functions' whole numbers: beyond it a decimal number could not tell one from the next."""
ParameterValue = int | float
"""What a parameter is. One whose default is an int takes whole numbers; a default of 0 says that it may be 0, too. One
whose default is a bool takes true or false."""
_PART = re.compile(r"\s*,\s*(?![^()]*\))")
"""A comma that stands in no parentheses."""
_DECIMAL = re.compile(r"([0-9]{1,20}\.?[0-9]{0,20}|\.[0-9]{1,20})(e[+-]?[0-9]{1,2})?", re.IGNORECASE)


def split_values(text: str) -> list[str]:
    """The values of an axis, as a flag lists them: a comma within parentheses ends none."""
    return _PART.split(text.strip())


def name_of(text: str) -> str:
    """The name before the parentheses, if there are any."""
    return text.partition("(")[0].strip() if text.endswith(")") else text


def parameters_of(
    key: str,
    text: str,
    defaults: Mapping[str, ParameterValue],
    elsewhere: Mapping[str, str] = MappingProxyType({}),
    from_zero: Collection[str] = (),
) -> Mapping[str, ParameterValue]:
    """The parameters that `text`, a value of `key`, gives, in the order of `defaults` and without those that are at it.

    `defaults` has each parameter that the name takes, with its default, and `elsewhere` those that it lacks, with the
    name that has them; decimal ones `from_zero` may be 0 although their default is not. Raises UsageError, one line
    that names the parameter and what it takes.
    """
    name = name_of(text)
    if name == text:
        return MappingProxyType({})
    if not defaults:
        raise UsageError(f"{key}: given {text!r}, but '{name}' takes no parameters")
    given: dict[str, ParameterValue] = {}
    for parameter, value in _pieces(text):
        if parameter not in defaults:
            takes, other = _listed(defaults, ", "), elsewhere.get(parameter)
            meant = f"; '{other}' has it" if other else nearest(parameter, defaults)
            raise UsageError(
                f"{key}: given {text!r}: '{name}' has no parameter {parameter!r}, expected some of {takes}{meant}"
            )
        if parameter in given:
            raise UsageError(f"{key}: given {text!r}: '{parameter}' is there twice")
        try:
            given[parameter] = _number_of(value, defaults[parameter], parameter in from_zero)
        except UsageError as error:
            raise UsageError(f"{key}: given {text!r}: {parameter}: given {value!r}, {error}") from None
    return MappingProxyType(
        {known: given[known] for known in defaults if given.get(known, defaults[known]) != defaults[known]}
    )


def own_of(key: str, text: str) -> tuple[str, Mapping[str, ParameterValue]]:
    """The path of a function of the user's own and what `text`, a value of `key`, gives its parameters, by name.

    Which parameters there are only the function knows. Raises UsageError, one line, where a value is no number.
    """
    path, given = name_of(text), dict[str, ParameterValue]()
    if path == text:
        return path, MappingProxyType(given)
    for parameter, value in sorted(_pieces(text)):
        if not parameter.isidentifier():
            raise UsageError(f"{key}: given {text!r}, expected parameters with a number each, such as {path}(layers=2)")
        if parameter in given:
            raise UsageError(f"{key}: given {text!r}: '{parameter}' is there twice")
        try:
            given[parameter] = _own_number_of(value)
        except UsageError as error:
            raise UsageError(f"{key}: given {text!r}: {parameter}: given {value!r}, {error}") from None
    return path, MappingProxyType(given)


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """(parameter, value) of all that stand in the parentheses at the end of `text`."""
    for part in text.strip()[:-1].partition("(")[2].split(","):
        parameter, _, value = (piece.strip() for piece in part.partition("="))
        yield parameter, value


def _number_of(text: str, default: ParameterValue, from_zero: bool) -> ParameterValue:
    """The number that a parameter with this default is given; UsageError with what is expected of it."""
    if isinstance(default, bool):
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        raise UsageError("expected true or false")
    if isinstance(default, int):
        least = min(1, default)
        if re.fullmatch(r"[0-9]{1,8}", text) and least <= int(text) <= MOST:
            return int(text)
        raise UsageError(f"expected a whole number from {least} to {MOST}")
    if _DECIMAL.fullmatch(text):
        number = float(text)
        if number <= MOST and (number > 0 or from_zero or default == 0):
            return number
    raise UsageError(f"expected a number {'from 0' if from_zero or default == 0 else 'above 0'} to {MOST}")


def _own_number_of(text: str) -> ParameterValue:
    """The number that a parameter of the user's own function is given, whose limits the function knows."""
    if re.fullmatch(r"-?[0-9]{1,16}", text) and abs(int(text)) <= MOST_OF_OWN:
        return int(text)
    if not re.fullmatch(r"-?[0-9]+", text) and _DECIMAL.fullmatch(text.removeprefix("-")):
        return float(text) + 0.0  # -0 is 0
    raise UsageError(f"expected a whole number from {-MOST_OF_OWN} to {MOST_OF_OWN}, or a decimal number")


def text_of(name: str, parameters: Mapping[str, ParameterValue]) -> str:
    """The one spelling of a name with these parameters: those that are not at their defaults, in the name's order."""
    return f"{name}({_listed(parameters, ',')})" if parameters else name


def _listed(parameters: Mapping[str, ParameterValue], between: str) -> str:
    """Each with its value; true and false as every other key of a spec has them."""
    return between.join(f"{key}={str(value).lower()}" for key, value in parameters.items())


def own_text(key: str, text: str) -> str:
    """The one spelling of a function of the user's own with parameters: in the order of their names."""
    return text_of(*own_of(key, text))
