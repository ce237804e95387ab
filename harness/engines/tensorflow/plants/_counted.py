"""So many products a step, inside the traced step: for accelerators, which work behind the host's back."""

import statistics
import time
from collections.abc import Sequence
from typing import Any

from harness.engines.tensorflow.plants._products import Chain
from harness.errors import Unsupported

SAMPLES = 60
SAMPLE_PRODUCTS = 200


class CountedWork:
    """`rate` products a step on average; what is left of a fraction is carried over to the next step.

    How many there are hangs on a variable, so that no optimisation of the graph can compute them beforehand.
    """

    def __init__(self, device: str, rate: float = 1.5, chain: Chain | None = None) -> None:
        """The work on `device`, a processor or a GPU: `chain`, or else products. Raises Unsupported for any other."""
        import tensorflow as tf

        if not any(kind in device for kind in ("CPU", "GPU")):
            raise Unsupported(f"plant: work can be planted on processors and GPUs, not on {device}")
        self._device = device
        # A loop's condition is decided on the host: from a variable elsewhere it would wait for the device.
        self._host = device if "CPU" in device else "/device:CPU:0"
        with tf.device(self._host):
            self._pace = tf.Variable([rate, 0.0, 0.0], dtype=tf.float64, trainable=False)
        self._chain = chain or Chain(device)

    @property
    def done(self) -> int:
        """Products computed so far."""
        return int(self._pace.numpy()[1])

    def set_rate(self, rate: float) -> None:
        """From the next step on, `rate` products a step on average."""
        self._pace.assign([rate, float(self.done), 0.0])

    def then(self, value: Any, after: Sequence[Any]) -> Any:
        """`value`, a tensor or a structure of such, unchanged, in a step being traced; the work is done before it
        is, and after all of `after`."""
        import tensorflow as tf

        with tf.control_dependencies(after):
            work = self._products()
        with tf.control_dependencies([work]):
            return tf.nest.map_structure(tf.identity, value)

    def cost_s(self) -> float:
        """Median seconds of a product, by itself, outside any step."""
        import tensorflow as tf

        @tf.function(autograph=False)  # type: ignore[untyped-decorator]
        def working(x: Any) -> Any:
            return self.then(x, after=[x]) + 1

        def seconds(rate: float) -> float:
            self.set_rate(rate)
            start = time.perf_counter()
            working(x).numpy()
            return time.perf_counter() - start

        with tf.device(self._device):
            x = tf.zeros([])
            taken = [(seconds(0.0), seconds(float(SAMPLE_PRODUCTS))) for _ in range(SAMPLES)]
        none, some = (statistics.median(column) for column in zip(*taken[SAMPLES // 4 :], strict=True))
        return float(max(1e-9, some - none) / SAMPLE_PRODUCTS)

    def _products(self) -> Any:
        """The op that does this step's products and writes down how many they were."""
        import tensorflow as tf

        with tf.device(self._host):
            rate, done, left = tf.unstack(self._pace.read_value())
            whole = tf.floor(left + rate)
            written = self._pace.assign(tf.stack([rate, done + whole, left + rate - whole]))
            count = tf.cast(whole, tf.int32)
        _, ended = self._chain.traced(lambda k, _: k < count)
        return tf.group(written, ended)


def replica_at_hand(replicas: int) -> int:
    """Which replica's step is being traced. Raises Unsupported where one program serves all."""
    import tensorflow as tf

    if replicas == 1:
        return 0
    number = tf.get_static_value(tf.distribute.get_replica_context().replica_id_in_sync_group)
    if number is None:
        raise Unsupported("plant: this strategy traces one step for all replicas, so none can be told apart")
    return int(number)
