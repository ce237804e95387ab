"""A small Transformer encoder over the patches of an image.

The plan of a Vision Transformer (Dosovitskiy et al. 2020, https://arxiv.org/abs/2010.11929) with
pre-normalised blocks and mean pooling.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness.engines._keras.blocks import block, position_embedding

if TYPE_CHECKING:
    import keras

PATCH = 4


def build(
    input_shape: tuple[int, ...], classes: int, layers: int = 2, width: int = 64, heads: int = 4
) -> "keras.Model":
    """[batch, h, w, c] cut into (h/4)·(w/4) tokens, then the blocks, their perceptrons twice as wide, [batch, classes]
    logits."""
    import keras

    inputs = keras.Input(input_shape)
    x = keras.layers.Conv2D(width, PATCH, strides=PATCH, name="patches")(inputs)
    x = keras.layers.Reshape((-1, width))(x)
    x = position_embedding()(name="positions")(x)
    for _ in range(layers):
        x = block(x, heads, 2 * width)
    x = keras.layers.GlobalAveragePooling1D()(keras.layers.LayerNormalization()(x))
    return keras.Model(inputs, keras.layers.Dense(classes, dtype="float32")(x), name="transformer")


def cut(model: "keras.Model", hidden: int) -> Mapping[str, int]:
    """Attention by its heads, each perceptron by its `hidden` units: two sums a block (Megatron-LM, 2019)."""
    import keras

    found: dict[str, int] = {}
    for layer in model.layers:
        if isinstance(layer, keras.layers.MultiHeadAttention):
            for projection in (layer.query_dense, layer.key_dense, layer.value_dense):
                found |= {projection.kernel.path: 1, projection.bias.path: 0}
            found[layer.output_dense.kernel.path] = 0
        elif isinstance(layer, keras.layers.Dense) and layer.units == hidden:
            found |= {layer.kernel.path: 1, layer.bias.path: 0}
        elif isinstance(layer, keras.layers.Dense) and layer.kernel.shape[0] == hidden:
            found[layer.kernel.path] = 0
    return found
