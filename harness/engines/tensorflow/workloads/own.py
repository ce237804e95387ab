"""A user's own model: `package.module:function`, a function without arguments that returns a Keras model."""

import contextlib
import inspect
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.workloads.base import Workload
from harness.engines.tensorflow.workloads.shapes import shapes_of
from harness.errors import Unsupported, UsageError
from harness.trial.own_function import own_function

if TYPE_CHECKING:
    import keras


def own_workload(path: str) -> Workload:
    """The workload at `path`; its module is imported now, its function runs when the model is built.

    Raises UsageError that names the key `model` when the path is malformed, the module cannot be
    imported, the name is missing or not callable, or the callable wants arguments; and, from
    `build`, when it did not return a Keras model that knows its shapes.
    """
    function = own_function("model", path)

    def build(_input_shape: tuple[int, ...], _classes: int) -> "keras.Model":
        return _checked(path, function())

    summary = (inspect.getdoc(function) or "a user's own model").partition("\n")[0]
    return Workload(name=path, summary=summary, input_shape=None, build=build)


def _checked(path: str, model: Any) -> "keras.Model":
    import keras

    if isinstance(model, keras.Model):
        with contextlib.suppress(Unsupported):  # its trials say so, and other models' are run
            shapes_of(model)  # or why it has none
        return model
    given = f"{type(model).__module__}.{type(model).__qualname__}"
    hint = "; a tf_keras model is Keras 2, build it with `keras`" if given.startswith("tf_keras.") else ""
    raise UsageError(f"model: '{path}' returned {given}, expected a Keras model (keras.Model){hint}")
