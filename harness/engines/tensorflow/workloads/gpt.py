"""A decoder in the plan of GPT-2 (Radford et al. 2019): each token's answer is the next one. Without dropout."""

from typing import TYPE_CHECKING

from harness.engines.tensorflow.data.base import Tokens
from harness.engines.tensorflow.workloads._blocks import block, check_heads, position_embedding
from harness.engines.tensorflow.workloads.base import Workload, sized

if TYPE_CHECKING:
    import keras

EPSILON = 1e-5
"""Of its normalisations."""


def of_sizes(layers: int, width: int, heads: int, tokens: int, vocabulary: int) -> Workload:
    """Blocks of `width`, their perceptrons four times as wide. The table of tokens is that of the answers, too.

    `gpt(layers=12,width=768,heads=12,tokens=1024,vocabulary=50257)` is GPT-2 small with its 124,439,808 weights.
    """
    check_heads(width, heads)

    def build(input_shape: tuple[int, ...], _classes: int) -> "keras.Model":
        """[batch, tokens] integers to [batch, tokens, vocabulary] logits."""
        import keras

        words = keras.layers.ReversibleEmbedding(vocabulary, width, reverse_dtype="float32", name="words")
        inputs = keras.Input(input_shape, dtype="int32")
        x = position_embedding()(name="positions")(words(inputs))
        for _ in range(layers):
            x = block(x, heads, 4 * width, causal=True, epsilon=EPSILON)
        x = keras.layers.LayerNormalization(epsilon=EPSILON)(x)
        return keras.Model(inputs, words(x, reverse=True), name="gpt")

    return Workload(
        name="gpt",
        summary=f"{layers}-block causal Transformer of width {width} over {tokens} of {vocabulary} tokens, as GPT-2",
        input_shape=(tokens,),
        build=build,
        tokens=Tokens(tokens, vocabulary, each=True),
    )


WORKLOAD = sized(of_sizes, layers=2, width=128, heads=4, tokens=64, vocabulary=256)
