"""A Transformer decoder that tells the next token, as GPT-2: A. Radford et al., *Language Models are Unsupervised
Multitask Learners* (2019)."""

import functools
from typing import TYPE_CHECKING, Any

from harness.engines._keras.blocks import block, check_heads, position_embedding
from harness.engines.tensorflow.workloads.base import Vocabulary, Workload, sized

if TYPE_CHECKING:
    import keras

EPSILON = 1e-5


def of_sizes(layers: int, width: int, heads: int, tokens: int, vocabulary: int) -> Workload:
    """`gpt(layers=12,width=768,heads=12,tokens=1024,vocabulary=50257)` is GPT-2 small: 124,439,808 weights."""
    check_heads(width, heads)

    def build(input_shape: tuple[int, ...], _classes: int) -> "keras.Model":
        """[batch, tokens] int32 to [batch, tokens, vocabulary] logits, by the table that embeds the tokens."""
        import keras

        inputs = keras.Input(input_shape, dtype="int32")
        table = _tied_embedding()(vocabulary, width, name="tokens")
        x = position_embedding()(name="positions")(table(inputs))
        for _ in range(layers):
            x = block(x, heads, 4 * width, causal=True, epsilon=EPSILON)
        x = keras.layers.LayerNormalization(epsilon=EPSILON)(x)
        return keras.Model(inputs, table(x, back=True), name="gpt")

    return Workload(
        name="gpt",
        summary=f"{layers}-block Transformer decoder of width {width}, the next of {tokens} tokens of {vocabulary:,}",
        input_shape=(tokens,),
        build=build,
        takes=("text",),
        data="text",
        vocabulary=Vocabulary(vocabulary, next_token=True),
    )


@functools.cache
def _tied_embedding() -> "type[keras.layers.Layer]":
    """The layer's class, defined on demand because this module must import without Keras."""
    import keras

    class TiedEmbedding(keras.layers.Layer):  # type: ignore[misc]
        """A table of vectors, for tokens and, `back`, for what they are multiplied with. Its gradient is dense."""

        def __init__(self, vocabulary: int, width: int, **given: Any) -> None:
            super().__init__(**given)
            self.vocabulary, self.width = vocabulary, width

        def build(self, _shape: tuple[int | None, ...]) -> None:
            self.table = self.add_weight(
                shape=(self.vocabulary, self.width),
                initializer=keras.initializers.RandomNormal(stddev=0.02),
                name="table",
            )

        def call(self, x: Any, back: bool = False) -> Any:
            """[batch, tokens] to [batch, tokens, width], or these to [batch, tokens, vocabulary] float32."""
            if not back:
                return keras.ops.take(self.table, x, axis=0)
            return keras.ops.cast(keras.ops.matmul(x, keras.ops.transpose(self.table)), "float32")

    return TiedEmbedding


WORKLOAD = sized(of_sizes, layers=2, width=64, heads=4, tokens=32, vocabulary=256)
