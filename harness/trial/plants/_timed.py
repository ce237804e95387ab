"""Products for so many seconds a step: for processors, where a step can read the clock."""

from typing import Any

from harness.trial.plants._work import Work


class TimedWork(Work):
    """Products one after the other until `seconds` have passed since they could begin, or since a moment in the step.

    What a product costs next to the model's own ops is not what it costs in a long row of them, so a fixed
    number of them slows a step by less or more than was meant (`docs/verdicts.md`). Their time is what is meant.
    """

    def __init__(self, device: str, seconds: float = 0.0) -> None:
        """The work on `device`, a processor. Raises Unsupported for a device that is neither that nor a GPU."""
        super().__init__(device, [seconds, 0.0, 0.0])

    @property
    def spent_s(self) -> float:
        """Seconds spent on them so far."""
        return float(self._pace.numpy()[2])

    def set_seconds(self, seconds: float) -> None:
        """From the next step on, `seconds` of products a step."""
        self._pace.assign([seconds, float(self.done), self.spent_s])

    def cost_s(self) -> float:
        """Seconds that no product at all takes, by itself, outside any step."""
        return self._by_itself_s([lambda: self.set_seconds(0.0)])[0]

    def _products(self, since: Any) -> Any:
        import tensorflow as tf

        def before_the_end(_: Any, product: Any) -> Any:
            with tf.control_dependencies([product]):  # else the clock could be read before the product is there
                return tf.timestamp() < end

        with tf.device(self._host):
            seconds, done, spent = tf.unstack(self._pace.read_value())
            begin = tf.timestamp()
            end = (begin if since is None else since) + seconds
        count, ended = self._chain(before_the_end)
        with tf.device(self._host), tf.control_dependencies([ended]):
            now = tf.stack([seconds, done + tf.cast(count, tf.float64), spent + tf.timestamp() - begin])
            return self._pace.assign(now)
