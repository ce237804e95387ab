"""A tf.data service with a dispatcher and workers, which lives in the trial's process and ends with it.

One pass is one job under dynamic sharding: the dispatcher gives each part of the source to one worker, so that every
example comes once. Passes are repeated outside the service: one that repeats inside has no place where a pass ends.
"""

import functools
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.data.stages import SERVED

if TYPE_CHECKING:
    import tensorflow as tf

HELD_BY_WORKER = 2
"""Examples of each worker that wait: the one that it made ahead, and the one that the reader has asked it for."""


def served(examples: "tf.data.Dataset", workers: int) -> "tf.data.Dataset":
    """`examples`, finite or endless, made by so many workers of this process's service; of one in their order."""
    from tensorflow.data.experimental import service

    # The default stays undecided about how many requests there are at a time until the tuner, which is off, decides.
    given = examples.apply(
        service.distribute(service.ShardingPolicy.DYNAMIC, _service(workers).address, max_outstanding_requests=workers)
    )
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
