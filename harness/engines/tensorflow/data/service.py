"""A tf.data service with a dispatcher and workers, which lives in the trial's process and ends with it.

One pass is one job. Of several workers it is under dynamic sharding: the dispatcher gives each part of the source to
one of them, so that every example comes once. Passes are repeated outside the service: where each worker repeats by
itself, no pass has an end.
"""

import functools
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.data.stages import SERVED, all_stages_of
from harness.errors import Unsupported

if TYPE_CHECKING:
    import tensorflow as tf

WHOLE = {
    "AssertCardinality": "the number of examples is asserted (as TensorFlow Datasets do)",
    "Take": "take(n) takes n of each worker's",
    "Skip": "skip(n) leaves out n of each worker's",
    "Shard": "shard(n, i) cuts each worker's",
    "Zip": "zip and enumerate count each worker's",
    "TakeWhile": "take_while ends each worker's",
    "Scan": "scan goes on from one of each worker's to the next",
    "Unique": "unique compares each worker's",
}
"""Stages that mean the whole source and would be done with the share that each worker reads, and how that is said."""
HELD_BY_WORKER = 2
"""Examples of each worker that wait: the one that it made ahead, and the one that the reader has asked it for."""


def through_service(examples: "tf.data.Dataset", workers: int) -> "tf.data.Dataset":
    """`examples` made by so many workers of this process's service; of one in their order.

    Raises Unsupported for several workers and data that would be others with them (`WHOLE`).
    """
    from tensorflow.data.experimental import service

    stages = all_stages_of(examples) if workers > 1 else []
    if found := next((said for name, said in WHOLE.items() if name in stages), ""):
        raise Unsupported(f"data_service: {found}, where several read a source: take one worker, or other data")
    sharding = service.ShardingPolicy.OFF if workers == 1 else service.ShardingPolicy.DYNAMIC
    # As many requests at a time as `batches_ahead` counts.
    given = examples.apply(service.distribute(sharding, _service(workers).address, max_outstanding_requests=workers))
    setattr(given, SERVED, examples)
    return given


class _Service:
    """A dispatcher and its workers, each on a port of its own."""

    def __init__(self, workers: int) -> None:
        from tensorflow.data.experimental import service

        self._dispatcher = service.DispatchServer()
        self.address: str = self._dispatcher.target
        joining = service.WorkerConfig(dispatcher_address=self.address.split("://")[1])
        self._workers: list[Any] = [service.WorkerServer(joining) for _ in range(workers)]


@functools.cache
def _service(workers: int) -> _Service:
    """The one of this process, which is started when it is first asked for."""
    return _Service(workers)
