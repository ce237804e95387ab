"""Work for one device inside a traced step: matrix products in a chain, as many as a kind of work decides."""

import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from harness.trial.devices.base import Unsupported

SIZE = 32
"""Rows and columns of the matrices: one product takes some microseconds, most of them a loop's own."""
SAMPLES = 60

More = Callable[[Any, Any], Any]
"""(products so far, the last product) -> whether another one is to follow, as tensors."""


class Work(ABC):
    """What both kinds share. The chain ends in a variable, so that no optimisation of the graph can remove
    it, and how long it is hangs on a variable, so that none can compute it beforehand. Nothing else reads
    its result.
    """

    def __init__(self, device: str, pace: Sequence[float]) -> None:
        """The work on `device`, a processor or a GPU; `pace` is how much a step, how many products so far, and what
        else a kind keeps. Raises Unsupported for any other device."""
        import tensorflow as tf

        if not any(kind in device for kind in ("CPU", "GPU")):
            raise Unsupported(f"plant: work can be planted on processors and GPUs, not on {device}")
        self._device = device
        # A loop's condition is decided on the host: from a variable elsewhere it would wait for the device.
        self._host = device if "CPU" in device else "/device:CPU:0"
        with tf.device(self._host):
            self._pace = tf.Variable(pace, dtype=tf.float64, trainable=False)
        with tf.device(device):
            self._sink = tf.Variable(0.0, trainable=False)

    def then(self, value: Any, after: Sequence[Any], since: Any = None) -> Any:
        """`value`, unchanged, in a step being traced; the work is done before it is, and after all of `after`.

        `since`, a tensor, is when its time began, where that was before now.
        """
        import tensorflow as tf

        with tf.control_dependencies(after):
            work = self._products(since)
        with tf.control_dependencies([work]):
            return tf.identity(value)

    @property
    def done(self) -> int:
        """Products computed so far."""
        return int(self._pace.numpy()[1])

    @abstractmethod
    def _products(self, since: Any) -> Any:
        """The op that does this step's products and writes down how many they were."""

    def _chain(self, more: More) -> tuple[Any, Any]:
        """(how many products there were, the op that ends them), each made from the one before."""
        import tensorflow as tf

        with tf.device(self._device):
            mean = tf.fill([SIZE, SIZE], 1.0 / SIZE)  # its powers are itself: no product can overflow
            count, product = tf.while_loop(
                more, lambda k, m: (k + 1, tf.matmul(m, mean)), (0, mean), parallel_iterations=1
            )
            return count, self._sink.assign(product[0, 0])

    def _by_itself_s(self, paces: Sequence[Callable[[], None]]) -> list[float]:
        """Median seconds that the work takes outside any step at each of `paces`, above what a call takes."""
        import tensorflow as tf

        @tf.function(autograph=False)  # type: ignore[untyped-decorator]
        def nothing(x: Any) -> Any:
            return x + 1

        @tf.function(autograph=False)  # type: ignore[untyped-decorator]
        def working(x: Any) -> Any:
            return self.then(x, after=[x]) + 1

        def seconds(set_pace: Callable[[], None], function: Callable[[Any], Any]) -> float:
            set_pace()
            start = time.perf_counter()
            function(x).numpy()
            return time.perf_counter() - start

        with tf.device(self._device):
            x = tf.zeros([])
            kinds = [(paces[0], nothing), *((pace, working) for pace in paces)]
            taken = [[seconds(*kind) for kind in kinds] for _ in range(SAMPLES)]
        call, *others = (statistics.median(column) for column in zip(*taken[SAMPLES // 4 :], strict=True))
        return [max(0.0, other - call) for other in others]


def replica_at_hand(replicas: int) -> int:
    """Which replica's step is being traced. Raises Unsupported where one program serves all."""
    import tensorflow as tf

    if replicas == 1:
        return 0
    number = tf.get_static_value(tf.distribute.get_replica_context().replica_id_in_sync_group)
    if number is None:
        raise Unsupported("plant: this strategy traces one step for all replicas, so none can be told apart")
    return int(number)
