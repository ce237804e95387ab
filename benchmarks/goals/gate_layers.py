"""Layers and whole models of our own for the gate's matrix (`gate_models`)."""

from typing import Any

import keras
import tensorflow as tf
from keras import layers, ops

SHAPE, CLASSES = (8, 8, 1), 10


class Levels(layers.Layer):
    """Pixels of 0 to 1 as whole numbers below `n`."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n

    def call(self, x: Any) -> Any:
        return ops.cast(ops.round(ops.cast(x, "float32") * (self.n - 1)), "int32")


class Log(layers.Layer):
    """Logits of probabilities."""

    def __init__(self) -> None:
        super().__init__(dtype="float32")

    def call(self, x: Any) -> Any:
        return ops.log(x + 1e-6)


class UnusedWeight(layers.Layer):
    """Has a weight that nothing depends on, so that it has no gradient."""

    def build(self, shape: Any) -> None:
        self.unused = self.add_weight(shape=(3,), name="unused")

    def call(self, x: Any) -> Any:
        return x


class AddedLoss(layers.Layer):
    """Adds a loss of what goes through it."""

    def call(self, x: Any) -> Any:
        self.add_loss(1e-3 * ops.mean(ops.square(ops.cast(x, "float32"))))
        return x


class StatelessNoise(layers.Layer):
    """TensorFlow's stateless noise of one seed: the same in every step and on every replica."""

    def call(self, x: Any) -> Any:
        noise = tf.random.stateless_normal(tf.shape(x), seed=(1, 2), dtype=tf.float32)
        return x + 0.1 * tf.cast(noise, x.dtype)


class StatefulNoise(layers.Layer):
    """TensorFlow's stateful noise, which goes on from step to step as no reference can."""

    def __init__(self, seed: int | None = None) -> None:
        super().__init__()
        self.seed = seed

    def call(self, x: Any) -> Any:
        return x + 0.1 * tf.random.normal(tf.shape(x), dtype=x.dtype, seed=self.seed)


class KerasNoise(layers.Layer):
    """Noise from a seed generator of Keras in a layer of one's own."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = keras.random.SeedGenerator(13)

    def call(self, x: Any) -> Any:
        return x + 0.1 * keras.random.normal(ops.shape(x), dtype=x.dtype, seed=self.generator)


class Counter(layers.Layer):
    """Counts calls in an untrained variable of a given aggregation, and scales by nothing of it.

    `wrong_from` is the number of calls from which it counts twice: a fault (`gate_faults`).
    """

    wrong_from: int | None = None

    def __init__(self, aggregation: str) -> None:
        super().__init__()
        self.aggregation = aggregation

    def build(self, shape: Any) -> None:
        self.calls = self.add_weight(
            shape=(), initializer="zeros", dtype="float32", trainable=False, aggregation=self.aggregation, name="calls"
        )
        self.fault = self.wrong_from

    def call(self, x: Any, training: bool = False) -> Any:
        if training:
            more = 1.0 if self.fault is None else ops.where(self.calls >= self.fault, 2.0, 1.0)
            self.calls.assign(self.calls + more)
        return x


class MovingMean(layers.Layer):
    """A moving mean of what goes through, subtracted from it, of a given aggregation."""

    def __init__(self, aggregation: str) -> None:
        super().__init__()
        self.aggregation = aggregation

    def build(self, shape: Any) -> None:
        self.mean = self.add_weight(
            shape=(shape[-1],), initializer="zeros", dtype="float32", trainable=False, aggregation=self.aggregation,
            name="mean", autocast=False,
        )  # fmt: skip

    def call(self, x: Any, training: bool = False) -> Any:
        if training:
            self.mean.assign(0.9 * self.mean + 0.1 * ops.mean(ops.cast(x, "float32"), axis=0))
        return x - ops.cast(self.mean, x.dtype)


class RawScale(layers.Layer):
    """Divides by a `tf.Variable`, which Keras does not know; where it `moves`, by how large its inputs were so far."""

    def __init__(self, moves: bool) -> None:
        super().__init__()
        self.moves = moves
        self.size = tf.Variable(1.0, trainable=False, aggregation=tf.VariableAggregation.MEAN, name="size")

    def call(self, x: Any, training: bool = False) -> Any:
        if training and self.moves:
            self.size.assign(0.9 * self.size + tf.reduce_mean(tf.abs(tf.cast(x, tf.float32))))
        return x / tf.cast(self.size, x.dtype)


class TrainedScalar(layers.Layer):
    """Scales by one trained number."""

    def build(self, shape: Any) -> None:
        self.scale = self.add_weight(shape=(), initializer="ones", name="scale")

    def call(self, x: Any) -> Any:
        return x * self.scale


class StoppedGradient(layers.Layer):
    """A projection of which no gradient goes back to the half of its input."""

    def build(self, shape: Any) -> None:
        self.kernel = self.add_weight(shape=(shape[-1], 16), name="kernel")

    def call(self, x: Any) -> Any:
        return tf.matmul(x, self.kernel) + tf.stop_gradient(tf.matmul(0.5 * x, self.kernel))


class CustomGradient(layers.Layer):
    """A scale whose gradient is clipped by a function of its own."""

    def build(self, shape: Any) -> None:
        self.scale = self.add_weight(shape=(shape[-1],), initializer="ones", name="scale")

    def call(self, x: Any) -> Any:
        @tf.custom_gradient
        def halved(value: Any) -> Any:
            return value, lambda upstream: 0.5 * upstream

        return halved(x * tf.cast(self.scale, x.dtype))


class TiedDecoder(layers.Layer):
    """Multiplies by the transposed kernel of another layer."""

    def __init__(self, other: layers.Dense) -> None:
        super().__init__()
        self.other = other

    def call(self, x: Any) -> Any:
        return ops.matmul(x, ops.transpose(ops.cast(self.other.kernel, x.dtype)))


def _logits(x: Any) -> Any:
    x = layers.Flatten(dtype="float32")(x)
    return layers.Dense(CLASSES, dtype="float32")(x)


def residual() -> keras.Model:
    inputs = keras.Input(SHAPE)
    x = layers.Conv2D(8, 3, padding="same", activation="relu")(inputs)
    y = layers.Conv2D(8, 3, padding="same", activation="relu")(x)
    return keras.Model(inputs, _logits(layers.Add()([x, y])))


def two_branches() -> keras.Model:
    inputs = keras.Input(SHAPE)
    left, right = layers.Conv2D(4, 3, padding="same")(inputs), layers.Conv2D(4, 5, padding="same")(inputs)
    return keras.Model(inputs, _logits(layers.Concatenate()([left, layers.Activation("swish")(right)])))


def shared_layer() -> keras.Model:
    inputs = keras.Input(SHAPE)
    shared = layers.Dense(16, activation="relu")
    x = layers.Flatten()(inputs)
    halves = [shared(x[:, :32]), shared(x[:, 32:])]
    return keras.Model(inputs, _logits(layers.Concatenate()(halves)))


def tied_weights() -> keras.Model:
    inputs = keras.Input(SHAPE)
    encode = layers.Dense(16, activation="relu")
    code = encode(layers.Flatten()(inputs))
    return keras.Model(inputs, _logits(TiedDecoder(encode)(code)))


def attention() -> keras.Model:
    inputs = keras.Input(SHAPE)
    x = layers.Dense(16)(layers.Reshape((8, 8))(inputs))
    return keras.Model(inputs, _logits(layers.MultiHeadAttention(2, 8)(x, x)))


def transformer_block() -> keras.Model:
    inputs = keras.Input(SHAPE)
    x = layers.Dense(16)(layers.Reshape((8, 8))(inputs))
    y = layers.LayerNormalization()(x)
    x = layers.Add()([x, layers.MultiHeadAttention(2, 8, dropout=0.1)(y, y)])
    y = layers.Dense(16)(layers.Dense(32, activation="gelu")(layers.LayerNormalization()(x)))
    return keras.Model(inputs, _logits(layers.GlobalAveragePooling1D()(layers.Add()([x, y]))))


def sequence_with_mask() -> keras.Model:
    inputs = keras.Input(SHAPE)
    x = layers.Masking()(layers.Reshape((8, 8))(inputs))
    return keras.Model(inputs, _logits(layers.LSTM(8)(x)))


def squeeze_excitation() -> keras.Model:
    inputs = keras.Input(SHAPE)
    x = layers.Conv2D(8, 3, activation="relu")(inputs)
    gate = layers.Dense(8, activation="sigmoid")(layers.Dense(4, activation="relu")(layers.GlobalAveragePooling2D()(x)))
    return keras.Model(inputs, _logits(layers.Multiply()([x, layers.Reshape((1, 1, 8))(gate)])))


def nested() -> keras.Model:
    inner = keras.Sequential([keras.Input((64,)), layers.Dense(16, activation="relu"), layers.BatchNormalization()])
    inputs = keras.Input(SHAPE)
    return keras.Model(inputs, _logits(inner(layers.Flatten()(inputs))))


class Subclassed(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.flat, self.hidden = layers.Flatten(), layers.Dense(24, activation="relu")
        self.normal, self.out = layers.BatchNormalization(), layers.Dense(CLASSES, dtype="float32")

    def call(self, x: Any, training: bool = False) -> Any:
        return self.out(self.normal(self.hidden(self.flat(x)), training=training))


def subclassed() -> keras.Model:
    """Built."""
    model = Subclassed()
    model(tf.zeros((1, *SHAPE)))
    return model


class TrainedByItself(keras.Model):
    """Cross-entropy with labels of which a tenth is spread over all classes; a replica takes its share of the mean."""

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        with tf.GradientTape() as tape:
            logits = self(x, training=True)
            smooth = 0.9 * tf.one_hot(tf.cast(y, tf.int32), CLASSES) + 0.1 / CLASSES
            loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(smooth, logits))
            share = self.optimizer.scale_loss(loss / tf.distribute.get_strategy().num_replicas_in_sync)
        gradients = tape.gradient(share, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


class WithLossOfItsOwn(keras.Model):
    """Keras' train_step, on the loss of the model's own."""

    def compute_loss(self, x: Any = None, y: Any = None, y_pred: Any = None, *_: Any, **__: Any) -> Any:
        loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(y, y_pred, from_logits=True))
        return loss / tf.distribute.get_strategy().num_replicas_in_sync


def own_train_step() -> keras.Model:
    inputs = keras.Input(SHAPE)
    x = layers.BatchNormalization()(layers.Conv2D(8, 3)(inputs))
    return TrainedByItself(inputs, _logits(layers.Dropout(0.3)(layers.ReLU()(x))))


def own_compute_loss() -> keras.Model:
    inputs = keras.Input(SHAPE)
    return WithLossOfItsOwn(inputs, _logits(layers.Dense(32, activation="relu")(layers.Flatten()(inputs))))
