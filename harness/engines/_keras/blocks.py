"""What Transformers are made of. No dropout: a step from given weights on a given batch has one right answer."""

import functools
from typing import TYPE_CHECKING, Any

from harness.errors import UsageError

if TYPE_CHECKING:
    import keras


def check_heads(width: int, heads: int) -> None:
    """UsageError unless every head has an equal share of the width."""
    if width % heads:
        raise UsageError(f"heads: given {heads}, expected a divisor of width ({width})")


def block(x: Any, heads: int, hidden: int, causal: bool = False, epsilon: float = 1e-3) -> Any:
    """Self-attention, then a two-layer perceptron of `hidden` units, each on normalised input with a residual.

    [batch, tokens, width] to the same; Xiong et al. 2020, https://arxiv.org/abs/2002.04745. `causal` lets a token
    attend to itself and those before it only.
    """
    import keras

    y = keras.layers.LayerNormalization(epsilon=epsilon)(x)
    attention = keras.layers.MultiHeadAttention(heads, x.shape[-1] // heads)
    x = keras.layers.Add()([x, attention(y, y, use_causal_mask=causal)])
    y = keras.layers.LayerNormalization(epsilon=epsilon)(x)
    return keras.layers.Add()([x, perceptron(y, hidden)])


def block_normalised_after(x: Any, heads: int, hidden: int, epsilon: float) -> Any:
    """The same with the sums normalised instead of the inputs, as in Vaswani et al. 2017,
    https://arxiv.org/abs/1706.03762."""
    import keras

    attended = keras.layers.MultiHeadAttention(heads, x.shape[-1] // heads)(x, x)
    x = keras.layers.LayerNormalization(epsilon=epsilon)(keras.layers.Add()([x, attended]))
    return keras.layers.LayerNormalization(epsilon=epsilon)(keras.layers.Add()([x, perceptron(x, hidden)]))


def perceptron(x: Any, hidden: int) -> Any:
    """Two dense layers, [..., width] to [..., hidden] and back."""
    import keras

    y = keras.layers.Dense(hidden, activation="gelu")(x)
    return keras.layers.Dense(x.shape[-1])(y)


@functools.cache
def position_embedding() -> "type[keras.layers.Layer]":
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
