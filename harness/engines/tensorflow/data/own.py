"""A user's own examples, `package.module:function`: a function without arguments that returns a `tf.data.Dataset`.

It gives one pass over (input, target) pairs, one example each, in an order that does not change. Shards, order, batches
and repetition are the harness's, so that they are the same under every strategy and the gate knows each batch.
"""

import contextlib
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.data.base import DataInfo, Source
from harness.engines.tensorflow.data.records import told_as_fault
from harness.engines.tensorflow.ending import classify
from harness.errors import UsageError
from harness.trial.own_function import own_function

if TYPE_CHECKING:
    import tensorflow as tf

EXPECTED = "expected a tf.data.Dataset of (input, target), one example each"
ENDED = (
    "expected examples that can be read from the first to the last as often as is asked: a generator is to be made "
    "anew for each pass"
)


class OwnSource(Source):
    """Each part of an example is one dense tensor of numbers, of a fixed shape, and reaches the model as it is."""

    gives = "own"

    def __init__(self, path: str) -> None:
        """The module is imported now; UsageError that names the key `data` where there is no such function."""
        self._function = own_function("data", path)
        self.name = path
        self.summary = (inspect.getdoc(self._function) or "a user's own examples").partition("\n")[0]
        self._made: tf.data.Dataset | None = None
        self._info: DataInfo | None = None

    def prepare(self, data_dir: Path) -> None:
        """Nothing to prepare: what the function reads is its own affair."""

    def info(self, data_dir: Path) -> DataInfo:
        """What the data set says of itself; its classes are not known."""
        if self._info is None:
            made = self.examples(data_dir)
            count = int(made.cardinality())  # negative where it is not known, or has no end
            self._info = DataInfo(tuple(made.element_spec[0].shape), 0, count if count >= 0 else None)
        return self._info

    def examples(self, data_dir: Path) -> "tf.data.Dataset":
        """(input, target) of any shapes. Made once a process, but anew for a function that is being traced: a data set
        of outside would be an input of that function."""
        import tensorflow as tf

        if not tf.executing_eagerly():
            return self._called()
        if self._made is None:
            with tf.device("CPU:0"):
                self._made = self._called()
        return self._made

    def _called(self) -> "tf.data.Dataset":
        """What the function returns; UsageError where it raises, or returns what no example can be taken from."""
        import tensorflow as tf

        try:
            made: Any = self._function()
        except Exception as error:
            status, reason = classify(error)
            if status != "crashed":
                raise
            raise UsageError(f"data: '{self.name}' raised {reason}; {EXPECTED}") from error
        if not isinstance(made, tf.data.Dataset):
            given = f"{type(made).__module__}.{type(made).__qualname__}"
            raise UsageError(f"data: '{self.name}' returned {given}, {EXPECTED}")
        if fault := _fault_of(made.element_spec):
            raise UsageError(f"data: '{self.name}' gives {fault}")
        return made

    def reading(self) -> contextlib.AbstractContextManager[None]:
        """What reading an example raises, or an end before its time, becomes a UsageError; all else stays as it is."""
        return told_as_fault(self.name, EXPECTED, ENDED)


def _fault_of(spec: Any) -> str | None:
    """What is wrong with an example of the structure `spec`, and what it is to be; None where nothing is."""
    import tensorflow as tf

    if not isinstance(spec, tuple) or len(spec) != 2:
        return f"examples that are no pairs, {EXPECTED}"
    for name, part in zip(("input", "target"), spec, strict=True):
        if not isinstance(part, tf.TensorSpec):
            kind = type(part).__name__
            return f"{name}s in a {kind}, expected one dense tensor each: several or ragged ones are not measured yet"
        if not part.shape.is_fully_defined():
            return (
                f"{name}s of the shape {part.shape}, expected a known one (tf.ensure_shape tells it), unbatched: "
                "batch() is the harness's"
            )
        if not (part.dtype.is_integer or part.dtype.is_bool or part.dtype in (tf.float16, tf.float32, tf.float64)):
            return f"{name}s of {part.dtype.name}, expected numbers (words as integer tokens)"
    return None
