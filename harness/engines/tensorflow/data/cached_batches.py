"""Batches that are read from a data set once a run, and kept for the trials that want the same."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.data.base import Source
from harness.engines.tensorflow.data.pipeline import gate_batches
from harness.engines.tensorflow.structures import Batch, Shapes, arrays_in
from harness.protocol.messages import Request
from harness.trial.array_cache import cached_arrays

if TYPE_CHECKING:
    import numpy as np

    from harness.engines.tensorflow.workloads.base import Vocabulary


def cached_batches(
    request: Request,
    kind: str,
    source: Source,
    input_shape: Shapes,
    classes: int,
    count: int,
    vocabulary: "Vocabulary | None",
) -> list[Batch]:
    """As `gate_batches`, of the cell's global batch; kept under `kind`. Random examples are of what the model takes."""
    cell, data_dir = request.training, Path(request.data_dir)

    def compute() -> "dict[str, np.ndarray[Any, Any]]":
        found = gate_batches(source, data_dir, input_shape, classes, cell.global_batch_size, count, vocabulary)
        return {f"{i}-{n}": array for i, batch in enumerate(found) for n, array in enumerate(_flat(batch))}

    of_model = cell.model if source.on_device else ""
    key = (
        cell.data,
        of_model,
        request.data_dir,
        input_shape,
        classes,
        cell.global_batch_size,
        vocabulary,
        source.pixels,
    )
    arrays = cached_arrays(request.scratch, kind, repr(key).encode(), compute)
    batches = [[arrays[f"{i}-{n}"] for n in range(len(arrays) // count)] for i in range(count)]
    if source.gives != "own":  # only data of one's own have another structure than (input, target)
        return [(x, y) for x, y in batches]
    import tensorflow as tf

    structure = source.examples(data_dir).element_spec
    types = [spec.dtype.as_numpy_dtype for spec in tf.nest.flatten(structure)]
    typed = [[_of_type(array, kind) for array, kind in zip(batch, types, strict=True)] for batch in batches]
    return [tf.nest.pack_sequence_as(structure, batch) for batch in typed]


def _of_type(array: "np.ndarray[Any, Any]", kind: Any) -> "np.ndarray[Any, Any]":
    """The same; bare bytes, as which NumPy's files keep bfloat16, are numbers again."""
    return array.view(kind) if array.dtype.kind == "V" else array


def _flat(batch: Batch) -> "list[np.ndarray[Any, Any]]":
    return [array for part in batch for array in arrays_in(part)]
