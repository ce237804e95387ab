"""A user's own batches, `package.module:function`: a function of a batch size and a shard that returns a
`tf.data.Dataset`.

It gives (input, target) or (input, target, weight), so many examples each, of the part `index` of `count` that `shard`
= (index, count) names. What is in a part, in which order it comes and what of it is kept is the function's; the harness
takes its batches as they are, from the first again after the last.
"""

import contextlib
import functools
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from harness.engines.tensorflow.data.base import DataInfo
from harness.engines.tensorflow.data.own import (
    OwnSource,
    fault_of_type,
    in_pairs,
    of_one_shape,
    on_host,
    without_last_prefetch,
)
from harness.engines.tensorflow.structures import Batch, arrays_in
from harness.errors import Unsupported, UsageError
from harness.spec.axes import TABLE
from harness.spec.work import Cell
from harness.trial.own_function import found_function, required_arguments
from harness.trial.passes import digest_of

if TYPE_CHECKING:
    import tensorflow as tf

WHOLE = (0, 1)
"""The shard that is everything."""
INSTEAD = {
    "data_service": "distribute them there",
    "cache": "cache them there",
    "shuffle_buffer": "shuffle them there",
    "autoshard": "share them there",
    "cut": "time its stages there",
}
"""What to do where one asks of the harness what the function decides, by key. The first needs another of the second."""
DECIDED = (*INSTEAD, *(key for key, axis in TABLE.items() if axis.stage not in (None, "batch") and key not in INSTEAD))
"""And whatever else comes before a batch."""


def own_source(path: str) -> OwnSource:
    """The user's own data at `path`: examples or batches, as its function's arguments tell. Its module is imported.

    UsageError that names the key `data` where there is no such function, or it has other arguments.
    """
    function = found_function("data", path)
    required = required_arguments(function)
    if not required:
        return OwnSource(path, function)
    if len(required) == 2 and all(one.kind != one.KEYWORD_ONLY for one in required):
        return OwnBatches(path, function)
    told = ", ".join(f"{one.name}=" if one.kind == one.KEYWORD_ONLY else one.name for one in required)
    raise UsageError(
        f"data: '{path}' wants ({told}), expected a function without arguments, which gives examples, or one of "
        "(batch_size, shard), which gives batches"
    )


class OwnBatches(OwnSource):
    """Each part of a batch is a dense tensor of numbers, of a fixed shape, or a dict or tuple of such."""

    expected: ClassVar[str] = (
        "expected a tf.data.Dataset of (input, target) in batches: batch(batch_size, drop_remainder=True)"
    )
    rank_of_weights: ClassVar[int] = 1  # a row of them
    size = 1
    """Of the batches that tell what an example is."""
    ended: ClassVar[str] = (
        "expected a batch of each shard at least, as often as is asked: a generator is to be made anew for each pass"
    )

    def info(self, data_dir: Path) -> DataInfo:
        """Of an example what the data set says; how many are in a pass is the function's to decide."""
        return replace(super().info(data_dir), examples=None)

    def _called(self) -> "tf.data.Dataset":
        """The examples of batches as a cell asks for them."""
        return self.batches(self.size).unbatch()

    def are_for(self, cell: Cell) -> None:
        """From now on the function is asked for no other batches than the cell's."""
        self.size = cell.get("global_batch_size") or cell.get("batch_size")

    def batches(self, size: int, shard: tuple[int, int] = WHOLE) -> "tf.data.Dataset":
        """A pass over batches of so many examples, as the function makes it; UsageError where it makes others."""
        import tensorflow as tf

        of_part = functools.partial(_fault_of_part, size)
        with tf.device("CPU:0") if tf.executing_eagerly() else contextlib.nullcontext():
            made: Any = self._returned(of_part, size, shard)
        batches: tf.data.Dataset = of_one_shape(in_pairs(without_last_prefetch(made)))
        return batches

    def endless(self, size: int, shard: tuple[int, int]) -> "tf.data.Dataset":
        """Passes over the batches of a shard, without end."""
        return self.batches(size, shard).repeat()

    def first(self, size: int, count: int) -> list[Batch]:
        """The first `count` batches of everything; UsageError where there are fewer, or one comes twice."""
        import tensorflow as tf

        with tf.device("CPU:0"):
            found = [on_host(batch) for batch in self.batches(size).take(count)]
        if (distinct := len({digest_of(arrays_in(batch)) for batch in found})) < count:
            raise UsageError(
                f"data: '{self.name}' begins with {distinct} distinct of the {count} batches of {size} that the gate "
                "takes, expected all: give more, or a smaller --batch-size"
            )
        return found

    def must_not_be_asked(self, cell: Cell) -> None:
        """Unsupported where a cell asks of the harness what the function decides."""
        fields = type(cell).model_fields
        for key in DECIDED:
            if key in fields and (asked := cell.get(key)) != fields[key].default:
                instead = INSTEAD.get(key, "do that there")
                raise Unsupported(
                    f"{key}: '{self.name}' makes its batches itself: {instead}, and leave {key} {asked} out"
                )


def _fault_of_part(size: int, spec: Any, _: bool) -> str | None:
    """What is wrong with a part of a batch of so many examples."""
    import tensorflow as tf

    if not isinstance(spec, tf.TensorSpec):
        return f"in a {type(spec).__name__}, expected dense tensors, or dicts and tuples of these: padded_batch() pads"
    if not spec.shape.rank or spec.shape[0] != size:
        return (
            f"of the shape {spec.shape}, expected {size} in front, the batch size that it was called with: "
            "batch(batch_size, drop_remainder=True)"
        )
    if not spec.shape.is_fully_defined():
        return f"of the shape {spec.shape}, expected a known one: padded_batch() pads, tf.ensure_shape tells it"
    return fault_of_type(spec)
