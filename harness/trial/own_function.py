"""A function of the user's own by `package.module:function`."""

import functools
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterable
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from harness.errors import UsageError, nearest
from harness.registry import OWN_PATTERN, is_script, load_attribute, script_of
from harness.spec.calls import own_of
from harness.visible import quoted


def own_function(key: str, path: str, given: str = "", count: int = 0) -> Callable[..., Any]:
    """The function at `path`, of `count` arguments, which are `given`; importing its module is all that is run.

    Raises UsageError as `found_function` does, and when the callable cannot be called with so many arguments.
    """
    function = found_function(key, path)
    if fault := wants_arguments(function, count):
        if count:
            raise UsageError(f"{key}: '{path}': expected a function of {given}: {fault}")
        raise UsageError(f"{key}: '{path}': expected a function without arguments, but it has {fault}")
    return function


def found_function(key: str, text: str) -> Callable[..., Any]:
    """The function at a path, whatever its arguments, or that of `path(layers=4)` with these; importing its module is
    all that is run.

    Raises UsageError that names `key` when the path is malformed, the module cannot be imported, the name is missing or
    not callable, or it has no such parameter.
    """
    path, given = own_of(key, text)
    if not re.fullmatch(OWN_PATTERN, path):
        raise UsageError(f"{key}: given '{path}', expected package.module:function")
    here = str(Path.cwd())
    if here not in sys.path:  # `python -m harness` has it, the `harness` script has not
        sys.path.insert(0, here)
    try:
        function: Callable[..., Any] = load_attribute(key, path)
    except SyntaxError as error:
        raise UsageError(f"{key}: '{path}': {error.filename}, line {error.lineno}: {error.msg}") from error
    if not given:
        return function
    if fault := _lacks(function, given):
        raise UsageError(f"{key}: given {text!r}: '{path}' {fault}")
    made = functools.partial(function, **given)
    made.__doc__ = function.__doc__
    return made


def _lacks(function: Callable[..., Any], given: Iterable[str]) -> str | None:
    """Which of the parameters that are `given` by name `function` has not, and which it has; None where it has all."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return None
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return None
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    has = {one.name: one.replace(annotation=one.empty) for one in parameters if one.kind in named}
    if not has:
        return "takes no parameters"
    missing = next((name for name in given if name not in has), None)
    expected = ", ".join(str(one) for one in has.values())
    return missing and f"has no parameter {missing!r}, expected some of {expected}{nearest(missing, has)}"


def refuse_missing(key: str, path: str) -> None:
    """UsageError, the one of `own_function`, where the first package or module of `path` is not there, or the script.

    Nothing is imported, which finding what is in a package would take.
    """
    if is_script(path):
        script, _ = script_of(path)
        try:
            there = Path(script).is_file()
        except OSError as error:  # a longer name than there may be, a folder of somebody else's
            raise UsageError(f"{key}: {quoted(script)}: {error.strerror}") from None
        if not there:
            raise UsageError(f"{key}: no script at {quoted(script)}")
        return
    module = path.partition(":")[0]
    first = module.partition(".")[0]
    try:
        found = importlib.util.find_spec(first) or PathFinder.find_spec(first, [str(Path.cwd())])
    except ValueError:  # it is imported and came from nowhere, such as __main__
        return
    if found is None:
        raise UsageError(f"{key}: '{path}': cannot import '{module}': No module named '{first}'")


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


def required_arguments(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Those that `function` cannot be called without; none where nobody can tell."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return []
    loose = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [one for one in parameters if one.default is inspect.Parameter.empty and one.kind not in loose]
