"""A model with a train_step of its own, complete: it trains on smoothed labels. Copy this file next to your code.

The custom loop calls train_step on every replica, and so does Model.fit (--loop fit), on any data that fit it:

    python -m harness sweep --model benchmarks.own_train_step:make_model --strategy none,mirrored --replicas 1,2

It is compiled with an optimizer of its own, which every cell takes; without `compile()` that is `--optimizer`.
Its first updates, and one after the last window, are held against the same train_step run uncompiled on one device,
each replica's part by itself. Replicas that get the same examples must do together what one does by itself: without the
division by the number of replicas below, it is a `wrong_result` wherever there are two.
"""

import keras
import tensorflow as tf

SMOOTHING = 0.1


class Smoothed(keras.Model):
    """Cross-entropy with labels of which a tenth is spread over all classes."""

    def train_step(self, data: tuple[tf.Tensor, tf.Tensor]) -> dict[str, tf.Tensor]:
        """One update of every replica; the mean loss of its share."""
        x, y = data
        with tf.GradientTape() as tape:
            logits = self(x, training=True)
            classes = logits.shape[-1]
            smooth = (1 - SMOOTHING) * tf.one_hot(tf.cast(y, tf.int32), classes) + SMOOTHING / classes
            loss = tf.reduce_mean(keras.losses.categorical_crossentropy(smooth, logits, from_logits=True))
            # the optimizer adds gradients up over replicas
            of_share = self.optimizer.scale_loss(loss / tf.distribute.get_strategy().num_replicas_in_sync)
        gradients = tape.gradient(of_share, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


def make_model() -> keras.Model:
    """What the harness calls, in the strategy's scope."""
    inputs = keras.Input((8, 8, 1))
    hidden = keras.layers.Dense(128, activation="relu")(keras.layers.Flatten()(inputs))
    model = Smoothed(inputs, keras.layers.Dense(10)(hidden))
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9))
    return model
