"""A recommender: categories looked up in tables of vectors, then a perceptron, as in *Neural Collaborative Filtering*
(He et al. 2017, https://arxiv.org/abs/1708.05031). Few rows of a table have a gradient in a step: it is sparse."""

from typing import TYPE_CHECKING

from harness.engines.tensorflow.workloads.base import Vocabulary, Workload, sized

if TYPE_CHECKING:
    import keras

HIDDEN = (64, 32)


def of_sizes(tables: int, rows: int, width: int) -> Workload:
    """An example has a category of each of `tables` kinds; each table has `rows` vectors of `width`."""

    def build(input_shape: tuple[int, ...], classes: int) -> "keras.Model":
        """[batch, tables] int32 to [batch, classes] logits."""
        import keras

        inputs = keras.Input(input_shape, dtype="int32")
        found = [keras.layers.Embedding(rows, width, name=f"table_{i}")(inputs[:, i]) for i in range(tables)]
        x = keras.layers.Concatenate()(found) if tables > 1 else found[0]
        for units in HIDDEN:
            x = keras.layers.Dense(units, activation="relu")(x)
        return keras.Model(inputs, keras.layers.Dense(classes, dtype="float32")(x), name="recommender")

    return Workload(
        name="recommender",
        summary=f"{tables} embedding tables of {rows:,} × {width} with sparse gradients, then a perceptron",
        input_shape=(tables,),
        build=build,
        takes=("categories",),
        data="synthetic",
        vocabulary=Vocabulary(rows),
    )


WORKLOAD = sized(of_sizes, tables=4, rows=10_000, width=16)
