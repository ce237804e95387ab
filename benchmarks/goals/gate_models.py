"""Right models for the gate's matrix: each a small one of 8×8×1 digits and ten classes that has one thing of its own.

None of them does anything wrong: where the gate calls one wrong it is the gate that is, and where nothing can be proved
of one the gate should say so. Nothing here imports Keras until a model is built: who lists them need not wait.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import keras

SHAPE, CLASSES = (8, 8, 1), 10
Layers = Sequence[Any]


def _dense(k: Any, **keys: Any) -> Any:
    return k.Dense(32, activation="relu", **keys)


def sequential(k: Any, o: Any) -> dict[str, Callable[[], Layers]]:
    """The layers between the image and the logits, by model: of `keras.layers` and of layers of our own."""
    return {
        "linear": lambda: [],
        "dense": lambda: [k.Flatten(), _dense(k)],
        "deep": lambda: [k.Flatten(), *(k.Dense(24, activation="tanh") for _ in range(6))],
        "no_bias": lambda: [k.Flatten(), _dense(k, use_bias=False), k.Dense(10, use_bias=False, dtype="float32")],
        "wide": lambda: [k.Flatten(), k.Dense(1024, activation="relu")],
        "conv": lambda: [k.Conv2D(8, 3, activation="relu"), k.MaxPooling2D()],
        "separable_conv": lambda: [k.SeparableConv2D(8, 3, activation="relu"), k.AveragePooling2D(2)],
        "depthwise_conv": lambda: [k.DepthwiseConv2D(3, depth_multiplier=4, activation="relu")],
        "transposed_conv": lambda: [k.Conv2DTranspose(4, 3, strides=2, activation="relu"), k.MaxPooling2D(4)],
        "batch_norm": lambda: [k.Conv2D(8, 3, use_bias=False), k.BatchNormalization(), k.ReLU()],
        "batch_norm_after_bias": lambda: [k.Conv2D(8, 3), k.BatchNormalization(), k.ReLU()],
        "sync_batch_norm": lambda: [k.Conv2D(8, 3), k.BatchNormalization(synchronized=True), k.ReLU()],
        "sync_batch_norm_dropout": lambda: [
            k.Conv2D(8, 3), k.BatchNormalization(synchronized=True), k.ReLU(), k.Dropout(0.3)
        ],
        "sync_and_plain_batch_norm": lambda: [
            k.Conv2D(8, 3), k.BatchNormalization(synchronized=True), k.ReLU(), k.Conv2D(8, 3), k.BatchNormalization()
        ],
        "batch_renorm": lambda: [k.Conv2D(8, 3), k.BatchNormalization(renorm=True, momentum=0.8), k.ReLU()],
        "dropout": lambda: [k.Flatten(), _dense(k), k.Dropout(0.5)],
        "seeded_dropout": lambda: [k.Flatten(), _dense(k), k.Dropout(0.5, seed=7)],
        "spatial_dropout": lambda: [k.Conv2D(8, 3), k.SpatialDropout2D(0.3), k.ReLU()],
        "gaussian_noise": lambda: [k.Flatten(), k.GaussianNoise(0.2, seed=3), _dense(k)],
        "random_flip": lambda: [k.RandomFlip(seed=5), k.Conv2D(8, 3, activation="relu")],
        "layer_norm": lambda: [k.Flatten(), _dense(k), k.LayerNormalization(), _dense(k)],
        "group_norm": lambda: [k.Conv2D(8, 3), k.GroupNormalization(4), k.ReLU()],
        "unit_norm": lambda: [k.Flatten(), _dense(k), k.UnitNormalization()],
        "spectral_norm": lambda: [k.Flatten(), k.SpectralNormalization(k.Dense(16)), k.ReLU()],
        "embedding": lambda: [k.Flatten(), o.Levels(17), k.Embedding(17, 8)],
        "large_embedding": lambda: [k.Flatten(), o.Levels(17), k.Embedding(5000, 4), k.GlobalAveragePooling1D()],
        "lstm": lambda: [k.Reshape((8, 8)), k.LSTM(12)],
        "gru": lambda: [k.Reshape((8, 8)), k.GRU(12)],
        "bidirectional": lambda: [k.Reshape((8, 8)), k.Bidirectional(k.SimpleRNN(8))],
        "conv1d": lambda: [k.Reshape((8, 8)), k.Conv1D(12, 3, activation="gelu")],
        "frozen": lambda: [k.Flatten(), _dense(k, trainable=False), _dense(k)],
        "regularised": lambda: [k.Flatten(), _dense(k, kernel_regularizer="l2", bias_regularizer="l1")],
        "orthogonal_regulariser": lambda: [k.Flatten(), _dense(k, kernel_regularizer="orthogonal_regularizer")],
        "activity_regularised": lambda: [k.Flatten(), _dense(k, activity_regularizer="l2")],
        "constrained": lambda: [k.Flatten(), _dense(k, kernel_constraint="max_norm")],
        "prelu": lambda: [k.Flatten(), k.Dense(32), k.PReLU()],
        "float64_layer": lambda: [k.Flatten(), k.Dense(32, dtype="float64"), k.ReLU(dtype="float32")],
        "bfloat16_layer": lambda: [k.Flatten(), k.Dense(32, dtype="bfloat16"), k.ReLU(dtype="float32")],
        "softmax_output": lambda: [k.Flatten(), k.Dense(10, activation="softmax", dtype="float32"), o.Log()],
        "unused_weight": lambda: [k.Flatten(), o.UnusedWeight(), _dense(k)],
        "added_loss": lambda: [k.Flatten(), _dense(k), o.AddedLoss()],
        "stateless_noise": lambda: [k.Flatten(), o.StatelessNoise(), _dense(k)],
        "stateful_noise": lambda: [k.Flatten(), o.StatefulNoise(), _dense(k)],
        "seeded_stateful_noise": lambda: [k.Flatten(), o.StatefulNoise(seed=11), _dense(k)],
        "keras_noise": lambda: [k.Flatten(), o.KerasNoise(), _dense(k)],
        "counter_none": lambda: [k.Flatten(), o.Counter("none"), _dense(k)],
        "counter_mean": lambda: [k.Flatten(), o.Counter("mean"), _dense(k)],
        "counter_sum": lambda: [k.Flatten(), o.Counter("sum"), _dense(k)],
        "counter_first": lambda: [k.Flatten(), o.Counter("only_first_replica"), _dense(k)],
        "moving_mean": lambda: [k.Flatten(), o.MovingMean("mean"), _dense(k)],
        "raw_constant": lambda: [k.Flatten(), o.RawScale(moves=False), _dense(k)],
        "raw_moving": lambda: [k.Flatten(), o.RawScale(moves=True), _dense(k)],
        "trained_scalar": lambda: [k.Flatten(), o.TrainedScalar(), _dense(k)],
        "stopped_gradient": lambda: [k.Flatten(), o.StoppedGradient(), _dense(k)],
        "custom_gradient": lambda: [k.Flatten(), o.CustomGradient(), _dense(k)],
    }  # fmt: skip


BUILT = (
    "residual", "two_branches", "shared_layer", "tied_weights", "attention", "nested", "subclassed",
    "squeeze_excitation", "transformer_block", "sequence_with_mask", "own_train_step", "own_compute_loss",
)  # fmt: skip
"""Those that `gate_layers` builds whole."""

NAMES = (*sequential(None, None), *BUILT)


def built(name: str) -> "keras.Model":
    """The model called `name`, uncompiled; KeyError for an unknown one."""
    import keras

    own = importlib.import_module("gate_layers")
    if name in BUILT:
        model: keras.Model = getattr(own, name)()
        return model
    between = sequential(keras.layers, own)[name]()
    logits = [keras.layers.Flatten(dtype="float32"), keras.layers.Dense(CLASSES, dtype="float32")]
    if name in ("no_bias", "softmax_output"):
        logits = []
    return keras.Sequential([keras.Input(SHAPE), *between, *logits])
