"""A spec of whatever verb is read from the values of its keys, and what is wrong with one is told by its key."""

from collections.abc import Mapping
from typing import Any, TypeVar, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from harness.errors import UsageError, nearest
from harness.visible import quoted

PATTERNS = {
    "name": "letters, digits, '_', '.' and '-', a letter or digit first, at most 64",
    "quantity": "what work is counted in, such as 'images', or 'tokens=40' of examples that have 40",
}
"""What the values of keys look like that are of a pattern, in words."""
_TYPES = {"int": "a whole number", "float": "a number", "string": "a text", "bool": "true or false"}
"""What a value of another type should have been, by how pydantic calls the error: `int_from_float`."""
_OF_TYPES = ("_type", "_parsing", "_from_float")
"""What the names of such errors end with."""


class Spec(BaseModel):
    """Keys of a spec. A value by itself stands for a list of one; no list has a value twice, and no text a NUL."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @field_validator("*", mode="before")
    @classmethod
    def _one_value_is_a_list_of_one(cls, value: Any, info: Any) -> Any:
        return [value] if is_list(cls, info.field_name) and not isinstance(value, list) else value

    @field_validator("*")
    @classmethod
    def _no_text_has_a_nul(cls, value: Any) -> Any:
        """No path and no process's argument can have one."""
        if any(isinstance(text, str) and "\0" in text for text in (value if isinstance(value, list) else [value])):
            raise ValueError("expected a text without NUL characters")
        return value

    @field_validator("*")
    @classmethod
    def _no_list_repeats_a_value(cls, value: Any) -> Any:
        if isinstance(value, list) and len(set(value)) != len(value):
            raise ValueError("a value is listed twice")
        return value


_Spec = TypeVar("_Spec", bound=Spec)


def is_list(spec: type[BaseModel], key: str) -> bool:
    """Whether a key takes a list."""
    return get_origin(spec.model_fields[key].annotation) is list


def read_keys(spec: type[_Spec], values: Mapping[str, Any], source: str) -> _Spec:
    """`values`, each of its key's type, whether or not they go together; UsageError, of one line, names the key."""
    for key in values:
        if key not in spec.model_fields:
            raise UsageError(f"{source}: unknown key {quoted(key)}{nearest(key, spec.model_fields)}")
    try:
        found = spec.model_validate(values)
    except ValidationError as error:
        raise UsageError(f"{source}: {_in_one_line(error)}") from None
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from None
    for key, field in sorted(spec.model_fields.items()):
        if is_list(spec, key) and field.default and not getattr(found, key):
            raise UsageError(f"{source}: {key}: expected at least one value, given an empty list")
    return found


def _in_one_line(error: ValidationError) -> str:
    """The first fault of a spec: its key, what was given and what is expected."""
    first = error.errors()[0]
    key = str(first["loc"][0]) if first["loc"] else "spec"
    expected = first["msg"].removeprefix("Value error, ")
    expected = expected.removeprefix("Input should be ")
    given = first["input"]
    if first["type"].endswith(_OF_TYPES):
        expected = _TYPES.get(first["type"].partition("_")[0], expected)
    if first["type"] == "string_pattern_mismatch":
        expected = PATTERNS[key]
    if first["type"] == "value_error":
        return f"{key}: given {quoted(given)}: {expected}"
    hint = nearest(given, expected.replace("'", "").replace(" or ", ", ").split(", ")) if isinstance(given, str) else ""
    return f"{key}: given {quoted(given)}, expected {expected}{hint}"
