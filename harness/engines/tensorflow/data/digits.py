"""Real images without a network: scikit-learn's handwritten digits, kept as TFRecord shards.

The data set is the test part of *Optical Recognition of Handwritten Digits* (E. Alpaydin and
C. Kaynak, UCI Machine Learning Repository, 1998): 1,797 grey images of 8×8 pixels, values 0 to 16.
"""

import contextlib
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.data.base import DataInfo, Source
from harness.engines.tensorflow.data.store import import_tfds, not_prepared, read, write_once
from harness.trial.examples import handwritten_digits

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf

NAME = "sklearn_digits"
"""The data set's name in its files; tensorflow-datasets has none of that name."""
VERSION = "2.0.0"
"""Of how they are kept; in the first tensorflow-datasets shuffled them."""
SHARDS = 4
SIDE = 8
CLASSES = 10
EXAMPLES = 1797


class Digits(Source):
    """Handwritten digits, 8×8×1 uint8, ten classes."""

    name = "digits"
    summary = "1,797 real handwritten digits that scikit-learn carries, as TFRecord shards; needs no network"

    def prepare(self, data_dir: Path) -> None:
        """Write the shards (about half a second) unless they are there and whole."""
        write_once(data_dir, NAME, _folder(data_dir), data_dir / NAME, lambda: _write(data_dir, *handwritten_digits()))

    def info(self, data_dir: Path) -> DataInfo:
        """Known without reading anything."""
        return DataInfo((SIDE, SIDE, 1), CLASSES, EXAMPLES)

    def examples(self, data_dir: Path) -> "tf.data.Dataset":
        """(image [8, 8, 1] uint8, label [] int64) in scikit-learn's order, which every engine's are in."""
        if not _folder(data_dir).is_dir():
            raise not_prepared(self.name, data_dir)
        return read(_folder(data_dir), "image", "label")


def _folder(data_dir: Path) -> Path:
    return data_dir / NAME / VERSION


def _write(data_dir: Path, images: "np.ndarray[Any, Any]", labels: "np.ndarray[Any, Any]") -> None:
    """Write all shards anew."""
    tfds = import_tfds()
    config = tfds.download.DownloadConfig(num_shards=SHARDS, try_download_gcs=False)
    with contextlib.redirect_stdout(io.StringIO()):  # tensorflow-datasets announces itself by print
        _builder(data_dir, images, labels).download_and_prepare(download_config=config, file_format="tfrecord")


def _builder(data_dir: Path, images: "np.ndarray[Any, Any]", labels: "np.ndarray[Any, Any]") -> Any:
    """The builder; its class is made here because this module must import without tensorflow-datasets."""
    tfds = import_tfds()

    class Builder(tfds.core.GeneratorBasedBuilder, skip_registration=True):  # type: ignore[name-defined,call-arg,misc]
        name = NAME
        VERSION = tfds.core.Version(VERSION)

        def _info(self) -> Any:
            features = {
                "image": tfds.features.Image(shape=(SIDE, SIDE, 1)),
                "label": tfds.features.ClassLabel(num_classes=CLASSES),
            }
            return self.dataset_info_from_configs(
                features=tfds.features.FeaturesDict(features),
                supervised_keys=("image", "label"),
                disable_shuffling=True,
            )

        def _split_generators(self, _manager: Any) -> Any:
            return {"train": self._generate_examples()}

        def _generate_examples(self) -> Any:
            for key, (image, label) in enumerate(zip(images, labels, strict=True)):
                yield key, {"image": image, "label": int(label)}

    return Builder(data_dir=str(data_dir))


SOURCE = Digits()
