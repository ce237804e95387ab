"""A classifier of texts: a table of tokens, whose gradient is sparse, and one LSTM (Hochreiter & Schmidhuber 1997)."""

from typing import TYPE_CHECKING

from harness.engines.tensorflow.data.base import Tokens
from harness.engines.tensorflow.workloads.base import Workload, sized

if TYPE_CHECKING:
    import keras


def of_sizes(width: int, tokens: int, vocabulary: int) -> Workload:
    """vocabulary·width + 4·(2·width² + width) weights, and the classes'."""

    def build(input_shape: tuple[int, ...], classes: int) -> "keras.Model":
        """[batch, tokens] integers to [batch, classes] logits."""
        import keras

        inputs = keras.Input(input_shape, dtype="int32")
        x = keras.layers.LSTM(width)(keras.layers.Embedding(vocabulary, width, name="words")(inputs))
        return keras.Model(inputs, keras.layers.Dense(classes, dtype="float32")(x), name="lstm")

    return Workload(
        name="lstm",
        summary=f"a table of {vocabulary} tokens and an LSTM of {width} over {tokens} of them; sparse gradients",
        input_shape=(tokens,),
        build=build,
        tokens=Tokens(tokens, vocabulary),
    )


WORKLOAD = sized(of_sizes, width=64, tokens=40, vocabulary=10_000)
