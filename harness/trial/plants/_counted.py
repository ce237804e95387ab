"""So many products a step: for accelerators, where no clock is at hand inside a step."""

from typing import Any

from harness.trial.plants._work import Work

SAMPLE_PRODUCTS = 200


class CountedWork(Work):
    """`rate` products a step on average; what is left of a fraction is carried over to the next step."""

    def __init__(self, device: str, rate: float = 1.5) -> None:
        """The work on `device`, a processor or a GPU. Raises Unsupported for any other."""
        super().__init__(device, [rate, 0.0, 0.0])

    def set_rate(self, rate: float) -> None:
        """From the next step on, `rate` products a step on average."""
        self._pace.assign([rate, float(self.done), 0.0])

    def cost_s(self) -> tuple[float, float]:
        """(seconds that no product at all takes, seconds a product), by themselves, outside any step."""
        none, some = self._by_itself_s([lambda: self.set_rate(0), lambda: self.set_rate(SAMPLE_PRODUCTS)])
        return none, max(1e-9, some - none) / SAMPLE_PRODUCTS

    def _products(self, since: Any) -> Any:
        import tensorflow as tf

        with tf.device(self._host):
            rate, done, left = tf.unstack(self._pace.read_value())
            whole = tf.floor(left + rate)
            written = self._pace.assign(tf.stack([rate, done + whole, left + rate - whole]))
            count = tf.cast(whole, tf.int32)
        _, ended = self._chain(lambda k, _: k < count)
        return tf.group(written, ended)
