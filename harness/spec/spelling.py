"""The one spelling of names with parameters: equal sizes are one cell, however they are written."""

from typing import Any

from harness.errors import UsageError
from harness.spec import calls
from harness.spec.axes import NO_MODEL, is_own_code
from harness.spec.catalogue import Catalogue

SPELT = ("model", "optimizer", "data")
"""Keys whose names take parameters."""


def spelt(key: str, text: str, catalogue: Catalogue) -> str:
    """The one spelling of a value of SPELT; UsageError where the name takes no such parameters."""
    if (key, text) == ("model", NO_MODEL):
        return text
    if key == "data":
        return calls.own_text(key, text) if is_own_code(text) else text
    return catalogue.model_text(text) if key == "model" else catalogue.optimizer_text(text)


def same(key: str, one: Any, other: Any, catalogue: Catalogue) -> bool:
    """Whether a cell's value of any key, `one`, is the `other` that was asked for, in whatever spelling."""
    if one == other:
        return True
    if key not in SPELT or calls.name_of(str(one)) != calls.name_of(str(other)):
        return False
    try:
        return str(one) == spelt(key, str(other), catalogue)
    except UsageError:  # it has no such parameter, so no cell has this value
        return False
