"""What an input pipeline is made of, read from the pipeline itself: the traced program does not hold it."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.visible import plural

if TYPE_CHECKING:
    import tensorflow as tf

SIZES = ("_buffer_size", "_batch_size", "_num_shards", "_num_parallel_calls")
"""Of a stage, what its size is called."""

BATCHING = ("Batch", "ParallelBatch", "PaddedBatch")
"""Stages that make batches of elements."""
KEEPING = ("Options", "Prefetch", "Cache", "Shuffle", "Take", "Skip", "Repeat", "AssertCardinality")
"""Stages that hand on elements as they are."""

POLICIES = {"TensorSliceDataset": "file", "RebatchDataset": "data"}
"""What is cut among workers, names of files or parts of batches, and the policy that does it."""

SERVED = "served"
"""Of what a tf.data service gives, what its workers make: to TensorFlow it is a source."""


def stages_of(dataset: "tf.data.Dataset") -> list[str]:
    """The stages from the source to the consumer, each with its size where it has one: `Shuffle(1797)`, `Cache`.

    A stage without a name that TensorFlow shows is not there, and a size that is not known is left out.
    """
    names: list[str] = []
    at: Any = dataset
    while at is not None:
        names.append(_name(at))
        inputs = at._inputs() if hasattr(at, "_inputs") else ()
        at = inputs[0] if inputs else getattr(at, SERVED, None)
    return [name for name in reversed(names) if name != "Options"]


def held_by(stages: Sequence[str]) -> int:
    """Elements behind the last cache that `stages` may hold at most before they are asked for: what each keeps ready,
    or has in parallel calls, which are as many as there are processors where that is not told. What a stage holds in
    batches that are taken apart again counts by their size."""
    held, batches = 0, list[tuple[int, int]]()
    for stage in stages:
        kind, _, told = stage.partition("(")
        size = told.rstrip(")").partition(",")[0]
        if kind == "Cache":
            held, batches = 0, []
        if kind == "Unbatch" and batches:
            of, before = batches.pop()
            held = before + (held - before) * of
        earlier = held
        if kind.startswith(("Prefetch", "Parallel")):
            held += int(size) if size.isdigit() and kind != "ParallelBatch" else len(os.sched_getaffinity(0))
        if kind in BATCHING and size.isdigit():
            batches.append((int(size), earlier))
    return held


def hand_over_of(distributed: Any) -> list[str]:
    """The stage that brings a distributed pipeline's batches to the replicas, with how many it keeps on each device, or
    on the host in its place: `MultiDeviceIterator(1)`, `MultiDeviceIterator(1, host)`."""
    options, workers = distributed._options, distributed._input_workers
    size = 1 if options is None else options.experimental_per_replica_buffer_size
    on_host = {*workers.compute_devices_for_worker(0)} <= {*workers.worker_devices}
    return [f"MultiDeviceIterator({size}, host)" if on_host else f"MultiDeviceIterator({size})"]


def all_stages_of(dataset: Any) -> list[str]:
    """Every stage without its size, in no order; where several datasets meet, those of each."""
    inputs = dataset._inputs() if hasattr(dataset, "_inputs") else ()
    return [_kind(dataset), *(name for one in inputs for name in all_stages_of(one))]


def _kind(stage: Any) -> str:
    return type(stage).__name__.strip("_").removesuffix("V2").removesuffix("Dataset")


def _name(stage: Any) -> str:
    import tensorflow as tf

    name = _kind(stage)
    sizes = (getattr(stage, size, None) for size in SIZES)
    known = [tf.get_static_value(size) for size in sizes if size is not None]
    said = [str(int(size)) for size in known[:1] if size is not None and size != tf.data.AUTOTUNE]
    said += _files_of(stage) + _sharing_of(stage)
    if getattr(stage, "_deterministic", None) == "false":
        said.append("any order")
    if tf.get_static_value(getattr(stage, "_filename", "")):
        said.append("file")
    return f"{name}({', '.join(said)})" if said else name


def _files_of(stage: Any) -> list[str]:
    """Of a stage that reads TFRecord files, how many there are and what they are compressed by: `3 files`, `gzip`."""
    import tensorflow as tf

    names: Any = getattr(stage, "_filenames", None)
    alone = isinstance(names, tf.data.Dataset)
    compression = _constant(stage._compression_type) if alone else _compression_within(stage)
    if compression is None:
        return []
    names = names if alone else stage._inputs()[0]
    told = [compression.lower()] if compression else []
    if (count := _count_of(names)) is not None:
        told.insert(0, plural(count, "file"))
    return told


def _sharing_of(stage: Any) -> list[str]:
    """Of a stage by which `tf.distribute` shares an input, by what policy and among how many it does: `file`,
    `2 workers`. Read from the graph that TensorFlow has made of what is before it: nothing where that has no cut."""
    import tensorflow as tf

    if _kind(stage) != "AutoShard":
        return []
    try:
        graph = tf.compat.v1.GraphDef.FromString(stage._as_serialized_graph().numpy())
    except tf.errors.OpError:  # arrays of more than a graph can hold
        return []
    nodes = {node.name: node for node in graph.node}
    for node in nodes.values():
        if node.op == "ShardDataset" and node.attr["require_non_empty"].b:  # which no `Dataset.shard` asks for
            cut, workers = nodes[node.input[0]].op, tf.make_ndarray(nodes[node.input[1]].attr["value"].tensor)
            return [POLICIES.get(cut, cut), plural(int(workers), "worker")]
    return []


def _count_of(names: Any) -> int | None:
    """How many elements a dataset of names has; None where that is not known. A function that is being traced knows
    the shape of what they are slices of, and no numbers."""
    import tensorflow as tf

    found = tf.get_static_value(names.cardinality())
    if found is None:
        found = next((tensor.shape[0] for tensor in getattr(names, "_tensors", ())), None)
    return None if found is None or found < 0 else int(found)


def _compression_within(stage: Any) -> str | None:
    """What the files are compressed by that the function of `stage` reads, one for each name that it is given; None
    where it is given no names, or reads no TFRecord files."""
    import tensorflow as tf

    inputs = stage._inputs() if hasattr(stage, "_inputs") else ()
    function = getattr(getattr(stage, "_map_func", None), "function", None)
    if function is None or [one.element_spec for one in inputs] != [tf.TensorSpec([], tf.string)]:
        return None
    for body in function.graph.as_graph_def().library.function:
        nodes = {node.name: node for node in body.node_def}
        for node in nodes.values():
            if node.op.startswith("TFRecordDataset"):
                return _constant(tf.make_ndarray(nodes[node.input[1].split(":")[0]].attr["value"].tensor))
    return None


def _constant(text: Any) -> str:
    """A text that TensorFlow keeps as it was given, or as a tensor of it."""
    value = getattr(text, "numpy", lambda: text)()
    value = value.item() if hasattr(value, "item") else value
    return value.decode() if isinstance(value, bytes) else str(value or "")
