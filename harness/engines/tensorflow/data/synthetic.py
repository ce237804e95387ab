"""Random images that already lie on the device: what training costs without any input."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.data.base import DataInfo, Source

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf

CLASSES = 10
IMAGE_SHAPE = (32, 32, 3)
EXAMPLES = 1024
SEED = 20_200_401


class Synthetic(Source):
    """Standard normal images, uniform labels. The pipeline makes one batch in the model's own shape."""

    name = "synthetic"
    summary = "random images in the model's own shape; one batch stays on each replica, so input costs nothing"
    on_device = True

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
    input_shape: tuple[int, ...], classes: int, size: int, seed: int
) -> "tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]":
    """x float32 [size, *input_shape], standard normal, and y int32 [size], uniform over the classes, from `seed`.

    A model with one output is a binary classifier: its labels are 0 and 1.
    """
    import numpy as np

    generator = np.random.default_rng(seed)
    x = generator.standard_normal((size, *input_shape), dtype=np.float32)
    y = generator.integers(max(classes, 2), size=size, dtype=np.int32)
    return x, y


SOURCE = Synthetic()
