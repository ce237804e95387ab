"""A user's own examples, `package.module:function`: a function without arguments that returns a `tf.data.Dataset`.

It gives one pass over (input, target) or (input, target, weight), one example each, in an order that does not change;
for a model with its own train_step over inputs alone, too.
Shards, order, batches and repetition are the harness's, so that they are the same under every strategy and the gate
knows each batch.
"""

import contextlib
import inspect
import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from harness.engines.tensorflow.data.base import DataInfo, Source
from harness.engines.tensorflow.data.records import told_as_fault
from harness.engines.tensorflow.data.stages import BATCHING, KEEPING, all_stages_of
from harness.engines.tensorflow.ending import classify
from harness.engines.tensorflow.structures import (
    ALONE,
    PARTS,
    Batch,
    InputsInATuple,
    Shapes,
    Weighted,
    by_place,
    called,
    one_or_several,
)
from harness.errors import UsageError

if TYPE_CHECKING:
    import tensorflow as tf


class OwnSource(Source):
    """Each part of an example is a tensor of numbers, of a fixed shape, or a dict or tuple of such, and reaches the
    model as it is. An input may be ragged or of varying size, too: it is made as large as the model takes it. One that
    is sparse is made dense."""

    gives = "own"
    expected: ClassVar[str] = "expected a tf.data.Dataset of (input, target), one example each"
    rank_of_weights: ClassVar[int] = 0
    """Of one number an example."""
    ended: ClassVar[str] = (
        "expected examples that can be read from the first to the last as often as is asked: a generator is to be made "
        "anew for each pass"
    )

    def __init__(self, path: str, function: Callable[..., Any]) -> None:
        """Of the function that was found at `path`."""
        self._function = function
        self.name = path
        self.summary = (inspect.getdoc(function) or "a user's own examples").partition("\n")[0]
        self.in_batches = False
        """Whether the function ends in batches of its own, of which each is then an example."""
        self._made: tf.data.Dataset | None = None
        self._info: DataInfo | None = None

    def prepare(self, data_dir: Path) -> None:
        """Nothing to prepare: what the function reads is its own affair."""

    def info(self, data_dir: Path) -> DataInfo:
        """What the data set says of itself; its classes are not known."""
        if self._info is None:
            made = self.examples(data_dir)
            count = int(made.cardinality())  # negative where it is not known, or has no end
            shapes = {place: tuple(spec.shape) for place, spec in by_place(made.element_spec[0]).items()}
            self._info = DataInfo(one_or_several(shapes), 0, count if count >= 0 else None)
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
        """Examples, anew."""
        made = without_last_prefetch(self._returned(fault_of_part))
        self.in_batches = next((kind for kind in all_stages_of(made) if kind not in KEEPING), "") in BATCHING
        return _with_dense_inputs(in_pairs(made))

    def _returned(self, fault_of_part: Callable[[Any, bool], str | None], *given: Any) -> "tf.data.Dataset":
        """What the function returns; UsageError where it raises, or returns what no step could be taken on.

        `fault_of_part` says what is wrong with a part of it, by what it is and whether that is of the inputs.
        """
        import tensorflow as tf

        try:
            made: Any = self._function(*given)
        except Exception as error:
            status, reason = classify(error)
            if status != "crashed":
                raise
            raise UsageError(f"data: '{self.name}' raised {reason}; {self.expected}") from error
        if not isinstance(made, tf.data.Dataset):
            type_of = f"{type(made).__module__}.{type(made).__qualname__}"
            raise UsageError(f"data: '{self.name}' returned {type_of}, {self.expected}")
        if fault := self._fault_of(made.element_spec, fault_of_part):
            raise UsageError(f"data: '{self.name}' gives {fault}")
        return made

    def _fault_of(self, spec: Any, fault_of_part: Callable[[Any, bool], str | None]) -> str | None:
        """What is wrong with an element of the structure `spec`, and what it is to be; None where nothing is."""
        spec = _in_parts(spec)
        if not 0 < len(spec) <= len(PARTS):
            return f"examples that are no pairs, {self.expected}"
        for of, has in zip(PARTS, spec, strict=False):
            parts = by_place(has)
            if not parts:
                return f"no {of}, {self.expected}"
            for place, part in parts.items():
                if fault := fault_of_part(part, of == "inputs"):
                    return f"{called(of, place)} {fault}"
        shapes = [part.shape for part in by_place(spec[2:]).values()]
        targets = [part.shape for part in by_place(spec[1:2]).values()]
        if all(self._weigh(shape, targets) for shape in shapes) and len(shapes) in (0, 1, len(targets)):
            return None
        told = ", ".join(map(str, shapes))
        return f"weights of the shape {told}, expected one number an example, or one for each place of its target"

    def _weigh(self, shape: Any, targets: list[Any]) -> bool:
        """Whether weights of a shape fit one of the targets; a last axis of 1 may be left out, as by Keras."""
        few = [s for s in (shape, shape[:-1] if shape[-1:] == [1] else shape) if len(s) >= self.rank_of_weights]
        return any(s == target[: len(s)] for s in few for target in targets)

    def reading(self) -> contextlib.AbstractContextManager[None]:
        """What reading an example raises, or an end before its time, becomes a UsageError; all else stays as it is."""
        return told_as_fault(self.name, self.expected, self.ended)


def _in_parts(spec: Any) -> tuple[Any, ...]:
    """Inputs, targets and weights of an element; one that is no tuple is inputs alone."""
    return spec if isinstance(spec, tuple) else (spec,)


def without_last_prefetch(made: "tf.data.Dataset") -> "tf.data.Dataset":
    """`made` up to there: how many wait is for `prefetch` to say. By TensorFlow's choice more would with each turn of
    another trial."""
    kinds = list(itertools.takewhile(("Options", "Prefetch").__contains__, all_stages_of(made)))
    if "Prefetch" not in kinds:
        return made
    options = made.options()
    for _ in kinds:
        [made] = made._inputs()
    return made.with_options(options) if "Options" in kinds else made


def in_pairs(made: "tf.data.Dataset") -> "tf.data.Dataset":
    """(input, target, weight) as (input, targets with weights), inputs alone with no targets; pairs as they are, in a
    plain tuple, which alone TensorFlow takes apart."""
    import tensorflow as tf

    if isinstance(made.element_spec, tuple) and type(made.element_spec) is not tuple:
        made = made.map(tf.autograph.experimental.do_not_convert(lambda named: tuple(named)))
    if len(_in_parts(made.element_spec)) == 1:
        none = InputsInATuple() if isinstance(made.element_spec, tuple) else ()
        return made.map(tf.autograph.experimental.do_not_convert(lambda x: (x, none)))

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def paired(x: Any, y: Any, weights: Any) -> Any:
        parts = tf.nest.flatten(weights)
        return x, Weighted(y, weights if len(parts) > 1 else parts[0])

    return made.map(paired) if len(made.element_spec) == len(PARTS) else made


def _with_dense_inputs(examples: "tf.data.Dataset") -> "tf.data.Dataset":
    """`examples` whose sparse inputs are dense; the same where none is sparse."""
    import keras
    import tensorflow as tf

    specs = by_place(examples.element_spec[0])
    if not any(isinstance(spec, tf.SparseTensorSpec) for spec in specs.values()):
        return examples

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def dense_inputs(x: Any, y: Any) -> Any:
        made = [
            tf.ensure_shape(tf.sparse.to_dense(part), specs[place].shape) if isinstance(part, tf.SparseTensor) else part
            for place, part in by_place(x).items()
        ]
        return keras.tree.pack_sequence_as(x, made), y

    return examples.map(dense_inputs)


def padded(examples: "tf.data.Dataset", wanted: Shapes, remedy: str) -> "tf.data.Dataset":
    """`examples` whose inputs of varying size have the `wanted` shapes, by zeros behind them; the same where none
    varies. Reading one that is larger is an error, with the `remedy`."""
    import keras
    import tensorflow as tf

    shapes = wanted if isinstance(wanted, Mapping) else {ALONE: wanted}
    if all(map(_is_of_fixed_size, by_place(examples.element_spec[0]).values())):
        return examples

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def pad_inputs(x: Any, y: Any) -> Any:
        specs, parts = by_place(examples.element_spec[0]), by_place(x)
        made = [
            part if _is_of_fixed_size(specs[place]) else _padded(part, shapes[place], place, remedy)
            for place, part in parts.items()
        ]
        return keras.tree.pack_sequence_as(x, made), y

    return examples.map(pad_inputs)


def _is_of_fixed_size(spec: Any) -> bool:
    """Whether all examples have one size here. That of a ragged tensor never says so."""
    import tensorflow as tf

    return isinstance(spec, tf.TensorSpec) and spec.shape.is_fully_defined()


def _padded(value: Any, shape: tuple[int, ...], place: str, remedy: str) -> Any:
    """An input of any size, as a dense one of this shape."""
    import tensorflow as tf

    dense = value.to_tensor() if isinstance(value, tf.RaggedTensor) else value
    has = tf.shape(dense)
    name = f"input {place}".rstrip()  # in no quotes, which TensorFlow would escape
    told = f"the {name}, of which the model takes at most {shape} ({remedy}), is:"
    with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(has <= shape), [told, has])]):
        missing = tf.stack([tf.zeros_like(has), shape - has], axis=1)
    return tf.ensure_shape(tf.pad(dense, missing), shape)


def of_one_shape(batches: "tf.data.Dataset") -> "tf.data.Dataset":
    """The same; reading a batch of another shape than it says, as Python code may make one, is an error."""
    import tensorflow as tf

    specs = batches.element_spec

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def ensured(*batch: Any) -> Any:
        return tf.nest.map_structure(lambda part, spec: tf.ensure_shape(part, spec.shape), batch, specs)

    return batches.map(ensured)


def first_as_given(examples: "tf.data.Dataset", count: int) -> Batch:
    """The first `count` examples as they are, or all where there are fewer."""
    import numpy as np
    import tensorflow as tf

    with tf.device("CPU:0"):
        for batch in of_one_shape(examples.take(count).batch(count)):
            return on_host(batch)
    return np.empty(0), np.empty(0)


def on_host(batch: Batch) -> Batch:
    """The batch in arrays."""
    import tensorflow as tf

    arrays: Batch = tf.nest.map_structure(lambda part: part.numpy(), batch)
    return arrays


def fault_of_part(spec: Any, may_vary: bool) -> str | None:
    """What is wrong with a part of an example, which of inputs may be of varying size; None where nothing is."""
    import tensorflow as tf

    if not isinstance(spec, tf.TensorSpec | tf.RaggedTensorSpec | tf.SparseTensorSpec):
        return f"in a {type(spec).__name__}, expected dense, ragged or sparse tensors, or dicts and tuples of these"
    if isinstance(spec, tf.SparseTensorSpec) and not may_vary:
        return "that are sparse, expected dense ones: tf.sparse.to_dense makes them so"
    if isinstance(spec, tf.RaggedTensorSpec) and not may_vary:
        return (
            "that are ragged, and padding would count in the loss: to_tensor(shape=...) makes them dense, and weights "
            "of 0 leave the padding out"
        )
    if spec.shape.rank is None or not (may_vary or spec.shape.is_fully_defined()):
        return (
            f"of the shape {spec.shape}, expected a known one (tf.ensure_shape tells it), unbatched: batch() is the "
            "harness's"
        )
    return fault_of_type(spec)


def fault_of_type(spec: Any) -> str | None:
    """Why no model takes tensors of this type; None where one may."""
    import tensorflow as tf

    floats = (tf.bfloat16, tf.float16, tf.float32, tf.float64)
    if not (spec.dtype.is_integer or spec.dtype.is_bool or spec.dtype in floats):
        return f"of {spec.dtype.name}, expected numbers (words as integer tokens)"
    return None
