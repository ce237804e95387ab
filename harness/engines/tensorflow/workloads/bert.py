"""An encoder in the plan of BERT (Devlin et al. 2019, https://arxiv.org/abs/1810.04805), fine-tuned as a classifier.

Without dropout. All tokens are of the first segment, so the table of segments trains one of its two rows.
"""

from typing import TYPE_CHECKING

from harness.engines.tensorflow.data.base import Tokens
from harness.engines.tensorflow.workloads._blocks import block_normalised_after, check_heads, position_embedding
from harness.engines.tensorflow.workloads.base import Workload, sized

if TYPE_CHECKING:
    import keras

EPSILON = 1e-12
"""Of its normalisations."""


def of_sizes(layers: int, width: int, heads: int, tokens: int, vocabulary: int) -> Workload:
    """Blocks of `width`, their perceptrons four times as wide, a dense layer on the first token, and the classes.

    `bert(layers=12,width=768,heads=12,tokens=512,vocabulary=30522)` is BERT-base: 109,482,240 weights and the classes'.
    """
    check_heads(width, heads)

    def build(input_shape: tuple[int, ...], classes: int) -> "keras.Model":
        """[batch, tokens] integers to [batch, classes] logits."""
        import keras

        inputs = keras.Input(input_shape, dtype="int32")
        words = keras.layers.Embedding(vocabulary, width, name="words")(inputs)
        segments = keras.layers.Embedding(2, width, name="segments")(keras.ops.zeros_like(inputs))
        x = position_embedding()(name="positions")(keras.layers.Add()([words, segments]))
        x = keras.layers.LayerNormalization(epsilon=EPSILON)(x)
        for _ in range(layers):
            x = block_normalised_after(x, heads, 4 * width, EPSILON)
        x = keras.layers.Dense(width, activation="tanh", name="pooler")(x[:, 0])
        return keras.Model(inputs, keras.layers.Dense(classes, dtype="float32")(x), name="bert")

    return Workload(
        name="bert",
        summary=f"{layers}-block Transformer encoder of width {width} over {tokens} of {vocabulary} tokens, as BERT",
        input_shape=(tokens,),
        build=build,
        tokens=Tokens(tokens, vocabulary),
    )


WORKLOAD = sized(of_sizes, layers=2, width=128, heads=4, tokens=64, vocabulary=256)
