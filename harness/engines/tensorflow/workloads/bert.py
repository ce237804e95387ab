"""A Transformer encoder that classifies text, as BERT when it is fine-tuned: J. Devlin et al. 2018,
https://arxiv.org/abs/1810.04805."""

import functools
from typing import TYPE_CHECKING, Any

from harness.engines._keras.blocks import (
    block_normalised_after,
    check_heads,
    position_embedding,
)
from harness.engines.tensorflow.workloads.base import Vocabulary, Workload, sized

if TYPE_CHECKING:
    import keras

EPSILON = 1e-12


def of_sizes(layers: int, width: int, heads: int, tokens: int, vocabulary: int) -> Workload:
    """`bert(layers=12,width=768,heads=12,tokens=512,vocabulary=30522)` is BERT-base: 109,482,240 weights below the
    dense layer that classifies."""
    check_heads(width, heads)

    def build(input_shape: tuple[int, ...], classes: int) -> "keras.Model":
        """[batch, tokens] int32 to [batch, classes] logits, by the first token. Its embedding's gradient is sparse."""
        import keras

        inputs = keras.Input(input_shape, dtype="int32")
        x = keras.layers.Embedding(vocabulary, width, name="tokens")(inputs)
        x = _first_of_two_segments()(name="token_types")(position_embedding()(name="positions")(x))
        x = keras.layers.LayerNormalization(epsilon=EPSILON)(x)
        for _ in range(layers):
            x = block_normalised_after(x, heads, 4 * width, EPSILON)
        pooled = keras.layers.Dense(width, activation="tanh", name="pooler")(x[:, 0])
        return keras.Model(inputs, keras.layers.Dense(classes, dtype="float32")(pooled), name="bert")

    return Workload(
        name="bert",
        summary=f"{layers}-block Transformer encoder of width {width}, classifies {tokens} tokens of {vocabulary:,}",
        input_shape=(tokens,),
        build=build,
        takes=("text",),
        data="text",
        vocabulary=Vocabulary(vocabulary),
    )


@functools.cache
def _first_of_two_segments() -> "type[keras.layers.Layer]":
    """The layer's class, defined on demand because this module must import without Keras."""
    import keras

    class TokenTypes(keras.layers.Layer):  # type: ignore[misc]
        """Adds to each token the vector of its segment, of which a text has one. [batch, tokens, width] to the same."""

        def build(self, shape: tuple[int | None, ...]) -> None:
            self.types = self.add_weight(
                shape=(2, shape[-1]), initializer=keras.initializers.RandomNormal(stddev=0.02), name="types"
            )

        def call(self, x: Any) -> Any:
            return x + self.types[0]

    return TokenTypes


WORKLOAD = sized(of_sizes, layers=2, width=64, heads=4, tokens=32, vocabulary=256)
