"""Random examples that already lie on the device: what training costs without any input."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.data.base import DataInfo, Source

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf

    from harness.engines.tensorflow.workloads.base import Vocabulary

CLASSES = 10
IMAGE_SHAPE = (32, 32, 3)
EXAMPLES = 1024
SEED = 20_200_401


class Synthetic(Source):
    """Standard normal numbers or uniform tokens, uniform labels. The pipeline makes one batch in the model's shape."""

    name = "synthetic"
    summary = "random examples in the model's own shape; one batch stays on each replica, so input costs nothing"
    on_device = True
    gives = "anything"

    def prepare(self, data_dir: Path) -> None:
        """Nothing to prepare."""

    def info(self, data_dir: Path) -> DataInfo:
        """Ten classes, as the registered models are built for."""
        return DataInfo(IMAGE_SHAPE, CLASSES, EXAMPLES)

    def examples(self, data_dir: Path) -> "tf.data.Dataset":
        """1,024 examples (image [32, 32, 3] float32, label [] int64)."""
        import tensorflow as tf

        images, labels = random_batch(IMAGE_SHAPE, CLASSES, EXAMPLES, SEED)
        return tf.data.Dataset.from_tensor_slices((images, labels.astype("int64")))


def random_batch(
    input_shape: tuple[int, ...], classes: int, size: int, seed: int, vocabulary: "Vocabulary | None" = None
) -> "tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]":
    """x float32 [size, *input_shape], standard normal, and y int32 [size], uniform over the classes, from `seed`.

    A model with one output is a binary classifier: its labels are 0 and 1. With a vocabulary x is int32, uniform over
    it, and y a class for each token where the model tells the next one.
    """
    import numpy as np

    generator = np.random.default_rng(seed)
    x: np.ndarray[Any, Any]
    if vocabulary is None:
        x = generator.standard_normal((size, *input_shape), dtype=np.float32)
    else:
        x = generator.integers(vocabulary.size, size=(size, *input_shape), dtype=np.int32)
    places = input_shape if vocabulary is not None and vocabulary.next_token else ()
    return x, generator.integers(max(classes, 2), size=(size, *places), dtype=np.int32)


SOURCE = Synthetic()
