"""Random examples that already lie on the device: what training costs without any input."""

from pathlib import Path
from typing import TYPE_CHECKING

from harness.engines.tensorflow.data.base import DataInfo, Source
from harness.trial.examples import random_batch

if TYPE_CHECKING:
    import tensorflow as tf

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


SOURCE = Synthetic()
