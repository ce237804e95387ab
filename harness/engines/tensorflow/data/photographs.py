"""Photographs as JPEG without a network: crops of the two that scikit-learn carries, so that decoding is real.

Both are by danielbuechele and vultilion of flickr.com, under Creative Commons BY 2.0, as `datasets/images/README.txt`
of scikit-learn says.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.data.base import DataInfo, Source
from harness.engines.tensorflow.data.records import records
from harness.engines.tensorflow.data.store import not_prepared, write_once
from harness.trial.examples import sklearn_file

if TYPE_CHECKING:
    import tensorflow as tf

PREFIX = "photographs:"
FILES = ("china.jpg", "flower.jpg")
"""Each is a class."""
CROPS = 1000
SIDES = (128, 256)
"""Pixels that a crop's height and width lie between."""
QUALITY = 90
SHARD = 400
"""Crops in a file of at most 10 MiB."""
SEED = 20_110_821


class Photographs(Source):
    """Crops of 128 to 256 pixels a side, each a JPEG of some 15 KB; the class is the photograph that it is from."""

    encoded = True

    def __init__(self, crops: int = CROPS) -> None:
        self.name = "photographs" if crops == CROPS else f"{PREFIX}{crops}"
        self.summary = (
            f"{crops:,} crops of scikit-learn's photographs, JPEG that the pipeline decodes; needs no network"
        )
        self._crops = crops

    def prepare(self, data_dir: Path) -> None:
        """Write the shards (some 2 s for 1,000 crops) unless they are there and whole."""
        folder = self._folder(data_dir)
        write_once(data_dir, "photographs", folder, folder, lambda: _write(folder, self._crops))

    def info(self, data_dir: Path) -> DataInfo:
        """Known without reading anything."""
        return DataInfo((None, None, 3), len(FILES), self._crops)

    def examples(self, data_dir: Path) -> "tf.data.Dataset":
        """(JPEG [] string, class [] int64), the classes in turn."""
        return self._parsed(data_dir, 1, True)

    def interleaved(self, data_dir: Path, files: int, in_order: bool) -> "tf.data.Dataset":
        """The same, of 400 crops a file."""
        return self._parsed(data_dir, files, in_order)

    def _parsed(self, data_dir: Path, at_once: int, in_order: bool) -> "tf.data.Dataset":
        import tensorflow as tf

        files = sorted(str(file) for file in self._folder(data_dir).glob("*.tfrecord"))
        if not files:
            raise not_prepared(self.name, data_dir)
        form = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}

        @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
        def parsed(record: Any) -> Any:
            example = tf.io.parse_single_example(record, form)
            return example["image"], example["label"]

        return records(files, at_once=at_once, in_order=in_order).map(parsed)

    def decoded(self, x: "tf.Tensor") -> "tf.Tensor":
        """The picture [h, w, 3] uint8."""
        import tensorflow as tf

        return tf.io.decode_jpeg(x, channels=3)

    def _folder(self, data_dir: Path) -> Path:
        return data_dir / "photographs" / str(self._crops)


def _write(folder: Path, count: int) -> None:
    import tensorflow as tf

    folder.mkdir(parents=True)
    crops = itertools.islice(_crops(), count)
    for shard in range(-(-count // SHARD)):
        with tf.io.TFRecordWriter(str(folder / f"{shard:05}.tfrecord")) as file:
            for record in itertools.islice(crops, SHARD):
                file.write(record)


def _crops() -> Iterator[bytes]:
    """Records of crops without end, the same ones every time."""
    import numpy as np
    import tensorflow as tf

    pictures = [tf.io.decode_jpeg(sklearn_file("photographs", f"images/{file}").read_bytes()).numpy() for file in FILES]
    random = np.random.default_rng(SEED)
    for label in itertools.cycle(range(len(FILES))):
        picture = pictures[label]
        height, width = random.integers(*SIDES, endpoint=True, size=2)
        top, left = random.integers(0, np.subtract(picture.shape[:2], (height, width)), endpoint=True)
        crop = tf.io.encode_jpeg(picture[top : top + height, left : left + width], quality=QUALITY).numpy()
        image = tf.train.Feature(bytes_list=tf.train.BytesList(value=[crop]))
        of = tf.train.Feature(int64_list=tf.train.Int64List(value=[label]))
        yield tf.train.Example(features=tf.train.Features(feature={"image": image, "label": of})).SerializeToString()


SOURCE = Photographs()
