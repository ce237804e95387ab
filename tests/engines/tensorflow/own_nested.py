"""A user's own model with inputs in a dict and two outputs, data for it, and the same with a fault each."""

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from harness.engines.tensorflow.loops import custom
from harness.engines.tensorflow.reference.update import times_gradient

ROWS, USERS, ITEMS, FEATURES, WORDS = 120, 20, 30, 8, 5


def arrays() -> tuple[dict[str, Any], dict[str, Any]]:
    generator = np.random.default_rng(1)
    user, item = (generator.integers(of, size=ROWS, dtype=np.int32) for of in (USERS, ITEMS))
    features = generator.standard_normal((ROWS, FEATURES), dtype=np.float32)
    rating = (features[:, 0] + user / USERS + item / ITEMS).astype(np.float32)
    inputs = {"user": user, "item": item, "features": features}
    return inputs, {"rating": rating, "liked": (rating > 1).astype(np.int32)}


def examples() -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(arrays())


def weighted() -> tf.data.Dataset:
    """The same with how much each counts."""
    weights = np.linspace(0, 3, ROWS, dtype=np.float64)
    return tf.data.Dataset.from_tensor_slices((*arrays(), weights))


def weighted_apart() -> tf.data.Dataset:
    """The same with how much each target of each counts."""
    rating = np.linspace(0, 3, ROWS, dtype=np.float32)
    return tf.data.Dataset.from_tensor_slices((*arrays(), {"rating": rating, "liked": rating[::-1, None]}))


def weighted_batches(batch_size: int, shard: tuple[int, int]) -> tf.data.Dataset:
    index, count = shard
    return weighted().shard(count, index).batch(batch_size, drop_remainder=True)


def tagged() -> tf.data.Dataset:
    """Tokens, those that follow, and how much each of these counts, some not at all."""
    words = np.random.default_rng(3).integers(9, size=(ROWS, WORDS + 1), dtype=np.int32)
    weights = np.linspace(0, 3, ROWS * WORDS).reshape(ROWS, WORDS) * (words[:, 1:] > 2)
    return tf.data.Dataset.from_tensor_slices((words[:, :-1], words[:, 1:], weights))


def tagger() -> keras.Model:
    return keras.Sequential([keras.Input((WORDS,), dtype="int32"), keras.layers.Embedding(9, 4), keras.layers.Dense(9)])


def labelled() -> tf.data.Dataset:
    """Features, and which of three labels each example has: none, one or several."""
    features = arrays()[0]["features"]
    return tf.data.Dataset.from_tensor_slices((features, (features[:, :3] > 0).astype(np.float32)))


def labeller() -> keras.Model:
    """An output for each label, which says nothing of the others."""
    model = keras.Sequential(
        [keras.Input((FEATURES,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(3, "sigmoid")]
    )
    model.compile(keras.optimizers.SGD(0.05), loss="binary_crossentropy")
    return model


def inputs_alone() -> tf.data.Dataset:
    """Features without any target."""
    return tf.data.Dataset.from_tensor_slices(arrays()[0]["features"])


def inputs_alone_in_dicts() -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices({"features": arrays()[0]["features"]})


def inputs_alone_in_tuples() -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices((arrays()[0]["features"],))


def inputs_alone_in_batches(batch_size: int, shard: tuple[int, int]) -> tf.data.Dataset:
    index, count = shard
    return inputs_alone().shard(count, index).batch(batch_size, drop_remainder=True)


class Rebuilding(keras.Model):
    """It learns to give its inputs back."""

    def train_step(self, data: Any) -> dict[str, Any]:
        x = data["features"] if isinstance(data, dict) else data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self(data, training=True) - x))
            share = self.optimizer.scale_loss(loss / tf.distribute.get_strategy().num_replicas_in_sync)
        gradients = tape.gradient(share, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


class RebuildingTuples(Rebuilding):
    """It takes what Keras' `fit` gives it of data in tuples of one."""

    def train_step(self, data: Any) -> dict[str, Any]:
        assert isinstance(data, tuple), type(data)
        (x,) = data
        return super().train_step(x)


def rebuilder_of_tuples() -> keras.Model:
    return _rebuilder(RebuildingTuples)


def rebuilder() -> keras.Model:
    return _rebuilder(Rebuilding)


def rebuilder_of_dicts() -> keras.Model:
    return _rebuilder(Rebuilding, in_dicts=True)


def without_a_step() -> keras.Model:
    return _rebuilder(keras.Model)


def _rebuilder(kind: type[keras.Model], in_dicts: bool = False) -> keras.Model:
    given = keras.Input((FEATURES,), name="features")
    hidden = keras.layers.Dense(3, "tanh")(given)
    model = kind({"features": given} if in_dicts else given, keras.layers.Dense(FEATURES)(hidden))
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), loss="mse")
    return model


def in_tuples() -> tf.data.Dataset:
    x, y = arrays()
    return tf.data.Dataset.from_tensor_slices(((x["user"], x["item"], x["features"]), (y["rating"], y["liked"])))


def in_tuples_weighted() -> tf.data.Dataset:
    return tf.data.Dataset.zip((in_tuples(), weighted_apart())).map(
        lambda of_tuples, of_dicts: (*of_tuples, (of_dicts[2]["rating"], of_dicts[2]["liked"]))
    )


def without_item() -> tf.data.Dataset:
    return examples().map(lambda x, y: ({name: x[name] for name in ("user", "features")}, y))


def without_liked() -> tf.data.Dataset:
    return examples().map(lambda x, y: (x, {"rating": y["rating"]}))


def model() -> keras.Model:
    return _model(in_dicts=True)


def plain_model() -> keras.Model:
    """It takes the same, and looks nothing up: no gradient is sparse, whose sum over replicas takes long to trace."""
    return _model(in_dicts=True, looks_up=False)


def plain_model_of_tuples() -> keras.Model:
    return _model(in_dicts=False, looks_up=False)


def model_of_own_loss() -> keras.Model:
    """One that computes its loss itself, by weights alone that reach it."""

    class Weighing(keras.Model):
        def compute_loss(
            self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
        ) -> Any:
            assert sample_weight is not None
            return super().compute_loss(x, y, y_pred, sample_weight, training)

    return _model(in_dicts=True, kind=Weighing, looks_up=False)


def model_of_tuples() -> keras.Model:
    return _model(in_dicts=False)


def left_out_model() -> keras.Model:
    """The last replica's gradients, sparse ones too, do not reach the sum; its loss is right."""
    _leave_out_the_last()
    return model()


def left_out_plain_model() -> keras.Model:
    """The same without a sparse one."""
    _leave_out_the_last()
    return plain_model()


def _leave_out_the_last() -> None:
    make_gradients = custom.make_gradients

    def wrong(training: Any) -> Any:
        gradients_of = make_gradients(training)

        def of_replica(x: Any, y: Any) -> Any:
            loss, gradients = gradients_of(x, y)
            context = tf.distribute.get_replica_context()
            last = context.replica_id_in_sync_group == context.num_replicas_in_sync - 1
            return loss, [times_gradient(gradient, tf.where(last, 0.0, 1.0)) for gradient in gradients]

        return of_replica

    custom.make_gradients = wrong


def misplaced_model() -> keras.Model:
    """Each replica gets the items of the one after it, with users, features and targets of its own."""
    batches_of = custom.batches_of

    def wrong(training: Any) -> Iterator[Any]:
        for x, y in batches_of(training):
            shares = training.strategy.experimental_local_results(x["item"])
            turned = training.strategy.experimental_distribute_values_from_function(
                lambda context, shares=shares: shares[(context.replica_id_in_sync_group + 1) % len(shares)]
            )
            yield {**x, "item": turned}, y

    custom.batches_of = wrong
    return plain_model()


def _model(in_dicts: bool, kind: type[keras.Model] = keras.Model, looks_up: bool = True) -> keras.Model:
    user, item = keras.Input((), dtype="int32", name="user"), keras.Input((), dtype="int32", name="item")
    features = keras.Input((FEATURES,), name="features")
    found = [_seen(user, USERS, looks_up), _seen(item, ITEMS, looks_up), features]
    hidden = keras.layers.Dense(16, "relu")(keras.layers.Concatenate()(found))
    rating = keras.layers.Dense(1, name="rating")(hidden)
    liked = keras.layers.Dense(1, "sigmoid", name="liked")(hidden)
    inputs: Any = {"user": user, "item": item, "features": features} if in_dicts else [user, item, features]
    made = kind(inputs, {"rating": rating, "liked": liked} if in_dicts else [rating, liked])
    made.compile(
        keras.optimizers.SGD(0.05),
        loss={"rating": "mse", "liked": "binary_crossentropy"},
        loss_weights={"rating": 1.0, "liked": 0.5},
    )
    return made


def _seen(number: Any, of: int, looks_up: bool) -> Any:
    """What a model makes of a number below `of`."""
    if looks_up:
        return keras.layers.Embedding(of, 4)(number)
    return keras.layers.Rescaling(1 / of)(keras.layers.Reshape((1,))(number))


def texts() -> tf.data.Dataset:
    """Ragged tokens, of at most WORDS, and a number, with a class."""
    generator = np.random.default_rng(2)
    words = tf.ragged.constant([generator.integers(1, 9, size=row % WORDS + 1).tolist() for row in range(ROWS)])
    length = (np.arange(ROWS, dtype=np.float32) % WORDS)[:, None]
    return tf.data.Dataset.from_tensor_slices(({"words": words, "length": length}, np.arange(ROWS, dtype=np.int32) % 3))


def model_of_texts() -> keras.Model:
    words, length = keras.Input((WORDS,), dtype="int32", name="words"), keras.Input((1,), name="length")
    seen = keras.layers.Flatten()(keras.layers.Embedding(9, 4)(words))
    hidden = keras.layers.Concatenate()([seen, length])
    return keras.Model({"words": words, "length": length}, keras.layers.Dense(3)(hidden))


def model_of_short_texts() -> keras.Model:
    words = keras.Input((WORDS - 1,), dtype="int32", name="words")
    seen = keras.layers.Flatten()(keras.layers.Embedding(9, 4)(words))
    return keras.Model({"words": words, "length": keras.Input((1,), name="length")}, keras.layers.Dense(3)(seen))
