"""AlexNet as tf_cnn_benchmarks has it: one tower, without local response normalisation.

A. Krizhevsky, I. Sutskever, G. Hinton, *ImageNet Classification with Deep Convolutional Neural Networks* (2012). The
dropout is left out: a step from given weights on a given batch has one right answer.
"""

from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.workloads.base import Workload, sized
from harness.errors import UsageError

if TYPE_CHECKING:
    import keras

SMALLEST = 67
"""Of a smaller image the third pooling leaves nothing."""


def of_sizes(side: int, filters: int, units: int) -> Workload:
    """`filters` of the first convolution, of which the others have multiples, and `units` of the two dense layers.

    `alexnet(side=227,filters=64,units=4096)` is the network of the benchmarks, with 61.8 M weights for 1,000 classes.
    UsageError for a side below SMALLEST.
    """
    if side < SMALLEST:
        raise UsageError(f"side: given {side}, expected at least {SMALLEST}")

    def build(input_shape: tuple[int, ...], classes: int) -> "keras.Model":
        """[batch, h, w, c] images to [batch, classes] logits."""
        import keras

        return keras.Sequential(
            [
                keras.Input(input_shape),
                keras.layers.Conv2D(filters, 11, strides=4, activation="relu"),
                keras.layers.MaxPooling2D(3, 2),
                _convolution(3 * filters, 5),
                keras.layers.MaxPooling2D(3, 2),
                _convolution(6 * filters, 3),
                _convolution(6 * filters, 3),
                _convolution(4 * filters, 3),
                keras.layers.MaxPooling2D(3, 2),
                keras.layers.Flatten(),
                keras.layers.Dense(units, activation="relu"),
                keras.layers.Dense(units, activation="relu"),
                keras.layers.Dense(classes, dtype="float32"),
            ],
            name="alexnet",
        )

    shape = (side, side, 3)
    return Workload("alexnet", f"AlexNet of tf_cnn_benchmarks, {side}×{side}×3, {filters} filters", shape, build)


def _convolution(filters: int, size: int) -> Any:
    import keras

    return keras.layers.Conv2D(filters, size, padding="same", activation="relu")


WORKLOAD = sized(of_sizes, side=SMALLEST, filters=16, units=256)
