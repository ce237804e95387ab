"""A text classifier: one LSTM over embedded tokens, as Keras' own example for the IMDB reviews was for years."""

from typing import TYPE_CHECKING

from harness.engines.tensorflow.workloads.base import Vocabulary, Workload, sized

if TYPE_CHECKING:
    import keras


def of_sizes(width: int, tokens: int, vocabulary: int) -> Workload:
    """`lstm(width=128,tokens=80,vocabulary=20000)` is the example's: 2,691,713 weights for one output."""

    def build(input_shape: tuple[int, ...], classes: int) -> "keras.Model":
        """[batch, tokens] int32 to [batch, classes] logits. The embedding's gradient is sparse."""
        import keras

        return keras.Sequential(
            [
                keras.Input(input_shape, dtype="int32"),
                keras.layers.Embedding(vocabulary, width),
                keras.layers.LSTM(width),
                keras.layers.Dense(classes, dtype="float32"),
            ],
            name="lstm",
        )

    return Workload(
        name="lstm",
        summary=f"LSTM of width {width}, classifies {tokens} tokens of {vocabulary:,}",
        input_shape=(tokens,),
        build=build,
        takes=("text",),
        data="text",
        vocabulary=Vocabulary(vocabulary),
    )


WORKLOAD = sized(of_sizes, width=32, tokens=32, vocabulary=256)
