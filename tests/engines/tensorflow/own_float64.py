"""A user's own models of the digits with layers of float64."""

from typing import Any

import keras
import tensorflow as tf


def model() -> keras.Model:
    """All of it."""
    return _of("float64", "float64")


def model_of_two_types() -> keras.Model:
    """All but the last layer, so that gradients are of two types."""
    return _of("float64", "float32")


class Smoothed(keras.Model):
    """Its own train_step has smoothed targets."""

    def train_step(self, data: Any) -> dict[str, Any]:
        """Of a custom loop's and of `fit`'s, too."""
        x, y = data
        with tf.GradientTape() as tape:
            logits = self(x, training=True)
            smooth = 0.9 * tf.one_hot(tf.cast(y, tf.int32), 10, dtype=tf.float64) + 0.01
            loss = tf.reduce_mean(keras.losses.categorical_crossentropy(smooth, logits, from_logits=True))
            scaled = self.optimizer.scale_loss(loss / tf.distribute.get_strategy().num_replicas_in_sync)
        gradients = tape.gradient(scaled, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


def model_with_its_own_step() -> keras.Model:
    """All of it, its examples too."""
    image = keras.Input((8, 8, 1), dtype="float64")
    hidden = keras.layers.Dense(16, "relu", dtype="float64")(keras.layers.Flatten(dtype="float64")(image))
    model = Smoothed(image, keras.layers.Dense(10, dtype="float64")(hidden))
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9))
    return model


def _of(hidden: str, last: str) -> keras.Model:
    layers = [keras.layers.Flatten(dtype=hidden), keras.layers.Dense(16, "relu", dtype=hidden)]
    return keras.Sequential([keras.Input((8, 8, 1)), *layers, keras.layers.Dense(10, dtype=last)])
