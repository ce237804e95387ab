"""A file is an entry: a folder is the registry.

Every module of a registry folder (but `base` and those that begin with an underscore) defines one
object under an agreed name, or a tuple of several under its plural. Adding a strategy, an op, a device
kind, a model, a data source or a loop is adding a file; nothing else changes. The modules must not
import TensorFlow at their top, so that the parent can list names without paying for it.
"""

import functools
import importlib
import pkgutil
import re
import shlex
from types import MappingProxyType
from typing import Any

from harness.errors import UsageError


@functools.cache
def registered(package: str, attribute: str) -> MappingProxyType[str, Any]:
    """What all modules in `package` define as `attribute` or `attribute`S, by its `name`, in file order."""
    found: dict[str, Any] = {}
    for module_info in pkgutil.iter_modules(importlib.import_module(package).__path__):
        if module_info.name == "base" or module_info.name.startswith("_"):
            continue
        module = importlib.import_module(f"{package}.{module_info.name}")
        items = [getattr(module, attribute)] if hasattr(module, attribute) else getattr(module, f"{attribute}S", ())
        found |= {item.name: item for item in items}
    return MappingProxyType(found)


OWN_PATTERN = r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*"
"""A pattern of what `load_attribute` takes."""


_SCRIPT = re.compile(r"(?P<path>.*?\.py)(\s+(?P<arguments>.*))?", re.DOTALL)


def is_script(text: str) -> bool:
    """Whether it is the path of a script, which arguments may follow, and no `package.module:function`."""
    return _SCRIPT.fullmatch(text) is not None


def script_of(text: str) -> tuple[str, list[str]]:
    """The path of a script, and its arguments as a shell takes them apart; ValueError where a quote is left open."""
    found = _SCRIPT.fullmatch(text)
    return (found["path"], shlex.split(found["arguments"] or "")) if found else (text, [])


def load_attribute(key: str, path: str) -> Any:
    """The callable at `package.module:function`, a user's own; UsageError names `key` and what is wrong."""
    module_name, _, attribute = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise UsageError(f"{key}: '{path}': cannot import '{module_name}': {error}") from error
    found = getattr(module, attribute, None)
    if found is None:
        raise UsageError(f"{key}: '{path}': module '{module_name}' has no '{attribute}'")
    if not callable(found):
        raise UsageError(f"{key}: '{path}' is not a function")
    return found
