"""Random examples that already lie on the device: what training costs without any input."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.data.base import DataInfo, Source
from harness.engines.tensorflow.structures import Batch, Shapes, by_place, one_or_several, only
from harness.engines.tensorflow.workloads.spec import ExamplePart, spec_of
from harness.trial.examples import random_batch

if TYPE_CHECKING:
    import keras
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

    def batch(self, shape: Shapes, classes: int, size: int, seed: int, vocabulary: "Vocabulary | None") -> Batch:
        """As `random_batch`."""
        return random_batch(only(shape), classes, size, seed, vocabulary)

    def for_model(self, model: "keras.Model") -> Source:
        """Examples of what a user's own model takes and is trained on."""
        return SyntheticFor(model)


class SyntheticFor(Synthetic):
    """Examples in the structure, shapes and types of a model's inputs and targets (`workloads.spec.spec_of`)."""

    gives = "own"

    def __init__(self, model: "keras.Model") -> None:
        self._spec = spec_of(model)

    def info(self, data_dir: Path) -> DataInfo:
        """Of the model's shapes."""
        return DataInfo(
            one_or_several({place: part.shape for place, part in by_place(self._spec[0]).items()}), 0, EXAMPLES
        )

    def examples(self, data_dir: Path) -> "tf.data.Dataset":
        """1,024 of them."""
        import tensorflow as tf

        return tf.data.Dataset.from_tensor_slices(self._drawn(EXAMPLES, SEED))

    def batch(self, shape: Shapes, classes: int, size: int, seed: int, vocabulary: "Vocabulary | None") -> Batch:
        """(inputs, targets), each array [size, ...]; `shape`, `classes` and `vocabulary` are the model's, and known."""
        return self._drawn(size, seed)

    def _drawn(self, size: int, seed: int) -> Batch:
        import keras
        import numpy as np

        generator = np.random.default_rng(seed)
        drawn: Batch = keras.tree.map_structure(lambda part: _drawn(generator, part, size), self._spec)
        return drawn


def _drawn(generator: "np.random.Generator", part: ExamplePart, size: int) -> "np.ndarray[Any, Any]":
    """Whole numbers uniform below the part's limit, or standard normal ones."""
    drawn = generator.integers(part.below, size=(size, *part.shape)) if part.below else None
    return (generator.standard_normal((size, *part.shape)) if drawn is None else drawn).astype(part.dtype)


SOURCE = Synthetic()
