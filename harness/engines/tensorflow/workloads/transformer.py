"""A small Transformer encoder over the patches of an image.

The plan of a Vision Transformer (Dosovitskiy et al. 2020, https://arxiv.org/abs/2010.11929) with
pre-normalised blocks (Xiong et al. 2020, https://arxiv.org/abs/2002.04745) and mean pooling. No
dropout: a step from given weights on a given batch has one right answer, which the gate can check.
"""

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.workloads.base import Workload

if TYPE_CHECKING:
    import keras

PATCH = 4
WIDTH = 64
HEADS = 4
HIDDEN = 128
BLOCKS = 2


def build(input_shape: tuple[int, ...], classes: int) -> "keras.Model":
    """[batch, h, w, c] cut into (h/4)·(w/4) tokens of width 64, two blocks, [batch, classes] logits."""
    import keras

    inputs = keras.Input(input_shape)
    x = keras.layers.Conv2D(WIDTH, PATCH, strides=PATCH, name="patches")(inputs)
    x = keras.layers.Reshape((-1, WIDTH))(x)
    x = _position_embedding()(name="positions")(x)
    for _ in range(BLOCKS):
        x = _block(x)
    x = keras.layers.GlobalAveragePooling1D()(keras.layers.LayerNormalization()(x))
    return keras.Model(inputs, keras.layers.Dense(classes, dtype="float32")(x), name="transformer")


def _block(x: Any) -> Any:
    """Self-attention, then a two-layer perceptron, each on normalised input with a residual."""
    import keras

    y = keras.layers.LayerNormalization()(x)
    x = keras.layers.Add()([x, keras.layers.MultiHeadAttention(HEADS, WIDTH // HEADS)(y, y)])
    y = keras.layers.LayerNormalization()(x)
    y = keras.layers.Dense(HIDDEN, activation="gelu")(y)
    return keras.layers.Add()([x, keras.layers.Dense(WIDTH)(y)])


@functools.cache
def _position_embedding() -> "type[keras.layers.Layer]":
    """The layer's class, defined on demand because this module must import without Keras."""
    import keras

    class PositionEmbedding(keras.layers.Layer):  # type: ignore[misc]
        """Adds a learned vector to each position of [batch, tokens, width].

        A plain weight and not `keras.layers.Embedding`, whose gradient is sparse (IndexedSlices) and
        would take another path through the cross-device op.
        """

        def build(self, shape: tuple[int | None, ...]) -> None:
            self.positions = self.add_weight(
                shape=shape[1:], initializer=keras.initializers.RandomNormal(stddev=0.02), name="positions"
            )

        def call(self, x: Any) -> Any:
            return x + self.positions

    return PositionEmbedding


def cut(model: "keras.Model") -> Mapping[str, int]:
    """Attention by its heads, each perceptron by its hidden units: two sums a block (Megatron-LM, 2019)."""
    import keras

    found: dict[str, int] = {}
    for layer in model.layers:
        if isinstance(layer, keras.layers.MultiHeadAttention):
            for projection in (layer.query_dense, layer.key_dense, layer.value_dense):
                found |= {projection.kernel.path: 1, projection.bias.path: 0}
            found[layer.output_dense.kernel.path] = 0
        elif isinstance(layer, keras.layers.Dense) and layer.units == HIDDEN:
            found |= {layer.kernel.path: 1, layer.bias.path: 0}
        elif isinstance(layer, keras.layers.Dense) and layer.kernel.shape[0] == HIDDEN:
            found[layer.kernel.path] = 0
    return found


WORKLOAD = Workload(
    name="transformer",
    summary="two-block Transformer encoder over 4×4 patches, 28×28×1, 0.07 M weights",
    input_shape=(28, 28, 1),
    build=build,
    cut=cut,
)
