"""A recommender: a big table for each of several features, whose gradients are sparse, and a small perceptron.

The plan of wide tables and deep layers of Cheng et al. 2016 (https://arxiv.org/abs/1606.07792) without its wide half.
"""

from typing import TYPE_CHECKING

from harness.engines.tensorflow.data.base import Tokens
from harness.engines.tensorflow.workloads.base import Workload, sized

if TYPE_CHECKING:
    import keras


def of_sizes(features: int, rows: int, width: int) -> Workload:
    """features·rows·width weights in tables, of which a step changes a row an example and feature."""

    def build(input_shape: tuple[int, ...], classes: int) -> "keras.Model":
        """[batch, features] row numbers to [batch, classes] logits."""
        import keras

        inputs = keras.Input(input_shape, dtype="int32")
        found = [keras.layers.Embedding(rows, width, name=f"table_{i}")(inputs[:, i]) for i in range(features)]
        x = keras.layers.Concatenate()(found) if features > 1 else found[0]
        x = keras.layers.Dense(64, activation="relu")(x)
        return keras.Model(inputs, keras.layers.Dense(classes, dtype="float32")(x), name="recommender")

    return Workload(
        name="recommender",
        summary=f"{features} tables of {rows} rows of {width}, and a perceptron: sparse gradients of big tables",
        input_shape=(features,),
        build=build,
        tokens=Tokens(features, rows),
    )


WORKLOAD = sized(of_sizes, features=8, rows=10_000, width=16)
