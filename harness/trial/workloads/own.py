"""A user's own model: `package.module:function`, a function without arguments that returns a Keras model."""

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import UsageError
from harness.trial.registry import load_attribute
from harness.trial.workloads.base import Workload

if TYPE_CHECKING:
    import keras

_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def own_workload(path: str) -> Workload:
    """The workload at `path`; its module is imported now, its function runs when the model is built.

    Raises UsageError that names the key `model` when the path is malformed, the module cannot be
    imported, the name is missing or not callable, or the callable wants arguments; and, from
    `build`, when it did not return a Keras model.
    """
    if not _PATH.fullmatch(path):
        raise UsageError(f"model: given '{path}', expected package.module:function")
    here = str(Path.cwd())
    if here not in sys.path:  # `python -m harness` has it, the `harness` script has not
        sys.path.insert(0, here)
    try:
        function = load_attribute("model", path)
    except SyntaxError as error:
        raise UsageError(f"model: '{path}': {error.filename}, line {error.lineno}: {error.msg}") from error
    _check_takes_no_arguments(path, function)

    def build(_input_shape: tuple[int, ...], _classes: int) -> "keras.Model":
        return _checked(path, function())

    summary = (inspect.getdoc(function) or "a user's own model").partition("\n")[0]
    return Workload(name=path, summary=summary, input_shape=None, build=build)


def _check_takes_no_arguments(path: str, function: Callable[[], object]) -> None:
    try:
        signature = inspect.signature(function)
    except ValueError:  # some callables written in C have none; calling them will tell
        return
    try:
        signature.bind()
    except TypeError as error:
        raise UsageError(f"model: '{path}': expected a function without arguments, but it has a {error}") from None


def _checked(path: str, model: Any) -> "keras.Model":
    import keras

    if isinstance(model, keras.Model):
        return model
    given = f"{type(model).__module__}.{type(model).__qualname__}"
    hint = "; a tf_keras model is Keras 2, build it with `keras`" if given.startswith("tf_keras.") else ""
    raise UsageError(f"model: '{path}' returned {given}, expected a Keras model (keras.Model){hint}")
