"""The values of keys as text, the way flags and `--a KEY=VALUE` spell them."""

from typing import Any, get_args

from harness.errors import UsageError
from harness.spec.reading import Spec, is_list
from harness.spec.sweep import SPELLINGS, Sweep
from harness.visible import quoted

ENVIRONMENT = "env."
"""Before the name of an environment variable where a key of a spec may stand, too."""


def value_from(key: str, text: str, spec: type[Spec] = Sweep) -> Any:
    """`text` as the type of `key`; a list where the key takes one, split at commas. UsageError names the key.

    Values that have commas of their own are split as the key's entry says.
    """
    kind = spec.model_fields[key].annotation
    if not is_list(spec, key):
        return _scalar(key, text, kind)
    if key in SPELLINGS:
        return SPELLINGS[key].split(text)
    return [_scalar(key, part.strip(), get_args(kind)[0]) for part in text.split(",")]


def text_of(key: str, value: Any) -> str:
    """A key's value the way a person types it; the other way round of `value_from`."""
    if isinstance(value, list):
        return SPELLINGS[key].join(value) if key in SPELLINGS else ",".join(text_of(key, item) for item in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _scalar(key: str, text: str, kind: Any) -> Any:
    """`text` as the type that the key wants; what cannot be converted is left for validation to name."""
    while get_args(kind) and not isinstance(get_args(kind)[0], str):
        kind = get_args(kind)[0]
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            expected = "a whole number" if kind is int else "a number"
            raise UsageError(f"{key}: given {quoted(text)}, expected {expected}") from None
    return text
