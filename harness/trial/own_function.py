"""A function of the user's own by `package.module:function`."""

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.registry import OWN, load_attribute


def own_function(key: str, path: str, given: str = "", count: int = 0) -> Callable[..., Any]:
    """The function at `path`, of `count` arguments, which are `given`; importing its module is all that is run.

    Raises UsageError that names `key` when the path is malformed, the module cannot be imported, the
    name is missing or not callable, or the callable cannot be called with so many arguments.
    """
    if not re.fullmatch(OWN, path):
        raise UsageError(f"{key}: given '{path}', expected package.module:function")
    here = str(Path.cwd())
    if here not in sys.path:  # `python -m harness` has it, the `harness` script has not
        sys.path.insert(0, here)
    try:
        function: Callable[..., Any] = load_attribute(key, path)
    except SyntaxError as error:
        raise UsageError(f"{key}: '{path}': {error.filename}, line {error.lineno}: {error.msg}") from error
    if fault := wants_arguments(function, count):
        if count:
            raise UsageError(f"{key}: '{path}': expected a function of {given}: {fault}")
        raise UsageError(f"{key}: '{path}': expected a function without arguments, but it has {fault}")
    return function


def wants_arguments(function: Callable[..., Any], count: int = 0) -> str | None:
    """Why `function` cannot be called with `count` arguments, such as one that it cannot be without; None if it can."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # some callables written in C have none; calling them will tell
        return None
    try:
        signature.bind(*[None] * count)
    except TypeError as error:
        return str(error).removeprefix("missing ")
    return None
