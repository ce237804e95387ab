"""Products for so many seconds: for processors, which do one thing after the other and can read the clock."""

from collections.abc import Sequence
from typing import Any

from harness.engines.tensorflow.plants._products import Chain

FIRST_PRODUCTS, FIRST_S = 10, 1e-3
"""Done beforehand: the first call is traced and the first product finds no kernel, which takes what hundreds of steps'
share does."""


class TimedWork:
    """Called with seconds, all of `devices` multiply matrices until the same moment; it returns when they are done.

    The work is not part of the step's program: there the ops around it made a step of 27 ms at two replicas half a
    millisecond longer than the work itself (`results/validation/README.md`).
    """

    def __init__(self, devices: Sequence[str]) -> None:
        import tensorflow as tf

        self.devices = tuple(devices)
        self.done = 0
        """Products so far, all devices together."""
        self._chains = [Chain(device) for device in devices]
        self._work = tf.function(self._until_then, autograph=False)
        while self.done < FIRST_PRODUCTS:
            self(FIRST_S)

    def __call__(self, seconds: float) -> None:
        """Work for `seconds`, and a little more: what a call takes, and the product that is under way at the end."""
        import tensorflow as tf

        self.done += int(self._work(tf.constant(seconds, tf.float64)))

    def _until_then(self, seconds: Any) -> Any:
        import tensorflow as tf

        end = tf.timestamp() + seconds

        def before_the_end(_: Any, product: Any) -> Any:
            with tf.control_dependencies([product]):  # else the clock could be read before the product is there
                return tf.timestamp() < end

        counts, ends = zip(*(chain.traced(before_the_end) for chain in self._chains), strict=True)
        with tf.control_dependencies(ends):
            return tf.add_n([tf.identity(count) for count in counts])
