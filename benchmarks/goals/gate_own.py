"""Right models of the gate's matrix with data of their own: several inputs and targets, texts, weights, batches.

Each is trained on `gate_own:EXAMPLES`, by `DATA`; all of it is as `docs/how-to.md` tells people to bring theirs.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import keras
    import tensorflow as tf

ROWS, USERS, ITEMS, FEATURES, WORDS, TABLE = 240, 20, 500, 8, 6, 9

DATA = {
    "own_nested": "nested",
    "own_weighted": "weighted",
    "own_texts_of_any_length": "texts",
    "own_next_token": "next_tokens",
    "own_regression": "numbers",
    "own_multi_label": "labels",
    "own_recommender": "ratings",
    "own_lstm_batches": "batches",
    "own_float64": "numbers",
}
"""By model, the function here that gives its data."""


def _arrays() -> tuple[dict[str, Any], dict[str, Any]]:
    import numpy as np

    generator = np.random.default_rng(1)
    user, item = (generator.integers(of, size=ROWS, dtype=np.int32) for of in (USERS, ITEMS))
    features = generator.standard_normal((ROWS, FEATURES), dtype=np.float32)
    rating = (features[:, 0] + user / USERS + item / ITEMS).astype(np.float32)
    inputs = {"user": user, "of": {"item": item, "features": features}}
    return inputs, {"rating": rating, "liked": (rating > 1).astype(np.int32)}


def _slices(*parts: Any) -> "tf.data.Dataset":
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices(parts)


def nested() -> "tf.data.Dataset":
    """Dicts in dicts, and two targets."""
    return _slices(*_arrays())


def weighted() -> "tf.data.Dataset":
    """The same with how much each example counts, the first not at all."""
    import numpy as np

    return _slices(*_arrays(), np.linspace(0, 3, ROWS, dtype=np.float32))


def numbers() -> "tf.data.Dataset":
    """Features, and one number that they give."""
    inputs, targets = _arrays()
    return _slices(inputs["of"]["features"], targets["rating"])


def labels() -> "tf.data.Dataset":
    """Features, and which of three labels each example has."""
    features = _arrays()[0]["of"]["features"]
    return _slices(features, (features[:, :3] > 0).astype("float32"))


def ratings() -> "tf.data.Dataset":
    """A user and an item, of which most are in no batch of the gate, and a rating."""
    inputs, targets = _arrays()
    return _slices({"user": inputs["user"], "item": inputs["of"]["item"]}, targets["rating"])


def _tokens() -> Any:
    import numpy as np

    return np.random.default_rng(3).integers(1, TABLE, size=(ROWS, WORDS + 1), dtype=np.int32)


def texts() -> "tf.data.Dataset":
    """Texts of one word to `WORDS`, and a class."""
    import tensorflow as tf

    words = _tokens()
    ragged = tf.RaggedTensor.from_tensor(words[:, :-1], lengths=words[:, -1] % WORDS + 1)
    return _slices(ragged, words[:, 0] % 5)


def next_tokens() -> "tf.data.Dataset":
    """Tokens, those that follow, and how much each of these counts, some not at all."""
    words = _tokens()
    return _slices(words[:, :-1], words[:, 1:], (words[:, 1:] > 2).astype("float32"))


def batches(batch_size: int, shard: tuple[int, int]) -> "tf.data.Dataset":
    """Batches of a shard: tokens and a class."""
    index, count = shard
    words = _tokens()
    own = _slices(words[:, :-1], words[:, -1] % 5).shard(count, index).shuffle(ROWS, seed=1)
    return own.batch(batch_size, drop_remainder=True)


def built(name: str) -> tuple["keras.Model", Any]:
    """The model called `name`, uncompiled, and the loss that it is compiled with."""
    import keras

    k = keras.layers
    of_classes = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    tokens = keras.Input((WORDS,), dtype="int32")
    features = [keras.Input((FEATURES,)), k.Dense(16, activation="relu")]
    made: dict[str, tuple[list[Any], Any]] = {
        "own_texts_of_any_length": ([tokens, k.Embedding(TABLE, 8), k.Flatten(), k.Dense(5)], of_classes),
        "own_next_token": (
            [tokens, k.Embedding(TABLE, 8), k.LSTM(8, return_sequences=True), k.Dense(TABLE)],
            of_classes,
        ),
        "own_lstm_batches": ([tokens, k.Embedding(TABLE, 8), k.LSTM(8), k.Dense(5)], of_classes),
        "own_regression": ([*features, k.Dense(1)], "mse"),
        "own_float64": (
            [features[0], k.Dense(16, activation="relu", dtype="float64"), k.Dense(1, dtype="float64")],
            "mse",
        ),
        "own_multi_label": ([*features, k.Dense(3, activation="sigmoid")], "binary_crossentropy"),
    }
    if name in made:
        layers, loss = made[name]
        return keras.Sequential(layers), loss
    return _of_users(alone=name == "own_recommender")


def _of_users(alone: bool) -> tuple["keras.Model", Any]:
    """Users and items in tables of vectors: by themselves, or with features and two outputs."""
    import keras

    k = keras.layers
    user, item = keras.Input((), dtype="int32", name="user"), keras.Input((), dtype="int32", name="item")
    found = [k.Embedding(USERS, 8)(user), k.Embedding(ITEMS, 8)(item)]
    if alone:
        return keras.Model({"user": user, "item": item}, k.Dense(1)(k.Concatenate()(found))), "mse"
    features = keras.Input((FEATURES,), name="features")
    hidden = k.Dense(16, activation="relu")(k.Concatenate()([*found, features]))
    outputs = {"rating": k.Dense(1)(hidden), "liked": k.Dense(1, activation="sigmoid")(hidden)}
    model = keras.Model({"user": user, "of": {"item": item, "features": features}}, outputs)
    return model, {"rating": "mse", "liked": "binary_crossentropy"}
