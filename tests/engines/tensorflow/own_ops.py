"""Cross-device ops of one's own that are wrong on purpose."""

from typing import Any


def narrow() -> Any:
    """A reduction that carries its values in half the bits."""
    import tensorflow as tf

    def add(values: Any) -> Any:
        return tf.cast(tf.add_n([tf.cast(value * 2.0**-10, tf.float16) for value in values]), tf.float32) * 2.0**10

    return tf.distribute.ReductionToOneDevice(accumulation_fn=add)
