"""Models that train by a train_step or compute_loss of their own, right and wrong, each as a user would write it."""

from typing import Any

import keras
import tensorflow as tf

SHAPE, CLASSES = (8, 8, 1), 10


def in_sync() -> int:
    """How many replicas a step is told of."""
    return int(tf.distribute.get_strategy().num_replicas_in_sync)


class TrainedByItself(keras.Sequential):
    """Cross-entropy, of which each replica takes its share."""

    def share_of(self, loss: Any, count: Any) -> Any:
        """What the gradient is taken of; `count` are the examples of the replica's part."""
        return loss / in_sync()

    def train_step(self, data: Any) -> dict[str, Any]:
        """One update."""
        x, y = data
        with tf.GradientTape() as tape:
            logits = self(x, training=True)
            loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(y, logits, from_logits=True))
            scaled = self.optimizer.scale_loss(self.share_of(loss, tf.shape(logits)[0]))
        self.update(tape.gradient(scaled, self.trainable_variables))
        return {"loss": loss}

    def update(self, gradients: Any) -> None:
        """What becomes of the gradients."""
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))


class Unscaled(TrainedByItself):
    """Wrong where there are replicas: gradients are added up, and each is of a whole mean."""

    def share_of(self, loss: Any, count: Any) -> Any:
        return loss


class UnscaledPenalty(TrainedByItself):
    """Wrong where there are replicas, in a small part."""

    def share_of(self, loss: Any, count: Any) -> Any:
        penalty = tf.add_n([tf.reduce_sum(tf.square(tf.convert_to_tensor(w))) for w in self.trainable_variables])
        return loss / in_sync() + 0.01 * penalty


class OnlyTheFirst(TrainedByItself):
    """What all replicas but one have is thrown away."""

    def share_of(self, loss: Any, count: Any) -> Any:
        is_first = tf.equal(tf.distribute.get_replica_context().replica_id_in_sync_group, 0)
        return tf.where(is_first, loss, 0.0)


class OfAKnownBatch(TrainedByItself):
    """Right at the global batch that it knows."""

    GLOBAL_BATCH = 6.0

    def share_of(self, loss: Any, count: Any) -> Any:
        return loss * tf.cast(count, tf.float32) / self.GLOBAL_BATCH


class ByContext(TrainedByItself):
    """Right: it asks the replica, and not the strategy."""

    def share_of(self, loss: Any, count: Any) -> Any:
        return loss / tf.distribute.get_replica_context().num_replicas_in_sync


class Idle(TrainedByItself):
    """It updates nothing."""

    def update(self, gradients: Any) -> None:
        pass


class Silent(TrainedByItself):
    """It does not tell its loss."""

    def train_step(self, data: Any) -> dict[str, Any]:
        super().train_step(data)
        return {}


class Twice(TrainedByItself):
    """Two updates a step."""

    def update(self, gradients: Any) -> None:
        for _ in range(2):
            self.optimizer.apply(gradients, self.trainable_variables)


class Clamped(TrainedByItself):
    """It changes weights after the optimizer has."""

    def update(self, gradients: Any) -> None:
        super().update(gradients)
        for weight in self.trainable_variables:
            weight.assign(tf.clip_by_value(weight.value, -0.05, 0.05))


class Partly(TrainedByItself):
    """It trains the last layer alone."""

    def update(self, gradients: Any) -> None:
        self.optimizer.apply(gradients[-2:], self.trainable_variables[-2:])


class PartlyAveraged(Partly):
    """And it keeps an average of what a weight is after each update, in an untrained one."""

    def build(self, input_shape: Any = None) -> None:
        super().build(input_shape)
        weight = self.trainable_variables[-1]
        self.average = self.add_weight(shape=weight.shape, initializer="zeros", trainable=False, name="average")

    def update(self, gradients: Any) -> None:
        super().update(gradients)
        self.average.assign(0.5 * self.average + 0.5 * tf.convert_to_tensor(self.trainable_variables[-1]))


class Clipping(TrainedByItself):
    """It clips by hand what each replica has."""

    def update(self, gradients: Any) -> None:
        super().update(tf.clip_by_global_norm(gradients, 0.01)[0])


class DividingGradients(Clipping):
    """It divides gradients where others divide the loss."""

    def share_of(self, loss: Any, count: Any) -> Any:
        return loss

    def update(self, gradients: Any) -> None:
        super().update([gradient / in_sync() for gradient in gradients])


class ClippingUnscaled(Clipping):
    """Wrong where there are replicas, whatever the clip leaves."""

    def share_of(self, loss: Any, count: Any) -> Any:
        return loss


class ClippingMultiplied(Clipping):
    """Wrong where there are replicas: what was divided is multiplied again."""

    def update(self, gradients: Any) -> None:
        gradients, _ = tf.clip_by_global_norm(gradients, 0.01)
        self.optimizer.apply([in_sync() * gradient for gradient in gradients], self.trainable_variables)


class Decaying(TrainedByItself):
    """Wrong where there are replicas: each adds the whole of what decays a weight."""

    def update(self, gradients: Any) -> None:
        super().update([g + 0.1 * w for g, w in zip(gradients, self.trainable_variables, strict=True)])


class OnlySigns(TrainedByItself):
    """It hands over nothing of how large a gradient is."""

    def update(self, gradients: Any) -> None:
        super().update([tf.sign(gradient) for gradient in gradients])


class Metered(keras.Sequential):
    """Keras' train_step around a loss of its own, which is a metric in what it returns, and forgets its share."""

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        return keras.ops.mean(keras.losses.sparse_categorical_crossentropy(y, y_pred, from_logits=True))


class MeteredInShares(Metered):
    """As Keras' own does."""

    def compute_loss(self, *given: Any, **named: Any) -> Any:
        return super().compute_loss(*given, **named) / in_sync()


class Extended(keras.Sequential):
    """Keras' train_step with something beside it."""

    def train_step(self, data: Any) -> Any:
        return super().train_step(data)


def plain() -> list[Any]:
    """No layer that depends on a replica's batch."""
    return [keras.layers.Dense(16, activation="relu")]


def with_statistics() -> list[Any]:
    """Batch normalisation, of each replica's own part, and what is random in each."""
    return [keras.layers.Dense(16), keras.layers.BatchNormalization(), keras.layers.ReLU(), *_random()]


def with_synchronised() -> list[Any]:
    """Batch normalisation over all replicas, and what is random in each."""
    synchronised = keras.layers.BatchNormalization(synchronized=True)
    return [keras.layers.Dense(16), synchronised, keras.layers.ReLU(), *_random()]


def _random() -> list[Any]:
    return [keras.layers.Dropout(0.5), keras.layers.GaussianNoise(0.1)]


class Masking(keras.layers.Layer):
    """Random in a way of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = keras.random.SeedGenerator(3)

    def call(self, x: Any) -> Any:
        return x * keras.random.uniform(tf.shape(x), seed=self.generator)


def with_masks() -> list[Any]:
    """Random in each replica, by no layer of Keras."""
    return [keras.layers.Dense(16, activation="relu"), Masking()]


def made(kind: type[Any]) -> Any:
    """A model of a kind, for a sweep."""
    return kind([keras.Input(SHAPE), keras.layers.Flatten(), *plain(), keras.layers.Dense(CLASSES)])


def unscaled() -> Any:
    return made(Unscaled)


def idle() -> Any:
    return made(Idle)


def silent() -> Any:
    return made(Silent)


def metered() -> Any:
    return made(MeteredInShares)


class ByItsOwnLoss(keras.Model):
    """Compiled with an optimizer alone, as Keras' guide has it: what its step makes of the targets is its own."""

    def loss_of(self, y: Any, given: Any) -> Any:
        """The mean of a replica's part."""
        return tf.reduce_mean(tf.square(y - given))

    def train_step(self, data: Any) -> dict[str, Any]:
        """One update."""
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.loss_of(y, self(x, training=True))
            scaled = self.optimizer.scale_loss(loss / in_sync())
        self.optimizer.apply(tape.gradient(scaled, self.trainable_variables), self.trainable_variables)
        return {"loss": loss}


class OfTwoTargets(ByItsOwnLoss):
    """Targets in a structure that its one output is not in."""

    def loss_of(self, y: Any, given: Any) -> Any:
        return super().loss_of(y["low"], given) + super().loss_of(y["high"], given)


class Variational(ByItsOwnLoss):
    """Two outputs, and a class for each image, which it does not look at."""

    def loss_of(self, y: Any, given: Any) -> Any:
        mean, image = given["mean"], given["image"]
        return super().loss_of(image, 0.5) + 0.1 * tf.reduce_mean(tf.square(mean)) + 0.0 * tf.cast(y[0], tf.float32)


def guide() -> Any:
    """One number, which is a target of floats."""
    return _by_its_own_loss(ByItsOwnLoss)


def of_two_targets() -> Any:
    return _by_its_own_loss(OfTwoTargets)


def _by_its_own_loss(kind: type[Any]) -> Any:
    x = keras.Input((4,))
    model = kind(x, keras.layers.Dense(1)(keras.layers.Dense(8, activation="tanh")(x)))
    model.compile(keras.optimizers.Adam(0.01))
    return model


def variational() -> Any:
    """Of images."""
    image = keras.Input(SHAPE)
    mean = keras.layers.Dense(4)(keras.layers.Flatten()(image))
    model = Variational(image, {"mean": mean, "image": keras.layers.Reshape(SHAPE)(keras.layers.Dense(64)(mean))})
    model.compile(keras.optimizers.SGD(0.05))
    return model


def rows() -> Any:
    """Four numbers, and one that they make."""
    x = tf.random.stateless_normal((96, 4), seed=(1, 2))
    return tf.data.Dataset.from_tensor_slices((x, tf.reduce_sum(x, axis=1, keepdims=True)))


def rows_of_two_targets() -> Any:
    return rows().map(lambda x, y: (x, {"low": y - 1.0, "high": y + 1.0}))
