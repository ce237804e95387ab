"""What an input pipeline is made of, read from the pipeline itself: the traced program does not hold it."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import tensorflow as tf

SIZES = ("_buffer_size", "_batch_size", "_num_shards", "_num_parallel_calls")
"""Of a stage, what its size is called."""

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
    if getattr(stage, "_deterministic", None) == "false":
        said.append("any order")
    if tf.get_static_value(getattr(stage, "_filename", "")):
        said.append("file")
    return f"{name}({', '.join(said)})" if said else name
