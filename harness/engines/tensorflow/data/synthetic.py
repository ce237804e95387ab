"""Random images that already lie on the device: what training costs without any input."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.data.base import DataInfo, Source, Tokens

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf

    from harness.engines.tensorflow.data.base import Batch

CLASSES = 10
IMAGE_SHAPE = (32, 32, 3)
EXAMPLES = 1024
SEED = 20_200_401


class Synthetic(Source):
    """Standard normal images, uniform labels. The pipeline makes one batch in the model's own shape."""

    name = "synthetic"
    summary = "random images in the model's own shape; one batch stays on each replica, so input costs nothing"
    on_device = True

    def __init__(self, tokens: Tokens | None = None) -> None:
        self._tokens = tokens

    def fitting(self, tokens: Tokens | None) -> Source:
        """Random tokens instead of images, for a model that takes those."""
        return self if tokens is None else Synthetic(tokens)

    def batch(self, input_shape: tuple[int, ...], classes: int, size: int, seed: int) -> "Batch":
        """Images and classes, or tokens and the model's answers, from `seed`."""
        if self._tokens is None:
            return random_batch(input_shape, classes, size, seed)
        return random_tokens(self._tokens, classes, size, seed)

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


def random_tokens(tokens: Tokens, classes: int, size: int, seed: int) -> "Batch":
    """x int32 [size, count], uniform over the vocabulary, and y int32: [size, count] likewise, or [size] classes."""
    import numpy as np

    generator = np.random.default_rng(seed)
    x = generator.integers(tokens.vocabulary, size=(size, tokens.count), dtype=np.int32)
    if tokens.each:
        return x, generator.integers(tokens.vocabulary, size=x.shape, dtype=np.int32)
    return x, generator.integers(classes, size=size, dtype=np.int32)


SOURCE = Synthetic()
