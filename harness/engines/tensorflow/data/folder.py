"""`folder:PATH`: images of one's own, a folder a class, as PATH/CLASS/*.jpg."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.arguments import path_of
from harness.engines.tensorflow.data.base import DataInfo, Source
from harness.engines.tensorflow.data.records import told_as_fault
from harness.engines.tensorflow.data.store import state_of_files
from harness.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf

PREFIX = "folder:"
ENDINGS = (".jpg", ".jpeg", ".png")
SEED = 20_200_403
EXPECTED = "expected images, JPEG or PNG"


class FolderSource(Source):
    """The files in an order that mixes the classes, and is the same every time."""

    encoded = True

    def __init__(self, path: str) -> None:
        """UsageError where it is no folder of folders with images."""
        self.name = PREFIX + path
        self.summary = f"the images in the folders of '{path}'"
        self._place = path_of("data", path)
        self.classes, self._labelled = _images(self.name, self._place)

    def prepare(self, data_dir: Path) -> None:
        """Nothing to prepare."""

    def info(self, data_dir: Path) -> DataInfo:
        """As many classes as there are folders with images."""
        return DataInfo((None, None, 3), len(self.classes), len(self._labelled))

    def examples(self, data_dir: Path) -> "tf.data.Dataset":
        """(the file's bytes [] string, class [] int64)."""
        return self.part(data_dir, 0, len(self._labelled))

    def part(self, data_dir: Path, first: int, count: int) -> "tf.data.Dataset":
        """The same, without reading those before."""
        import numpy as np
        import tensorflow as tf

        mixed = [self._labelled[k] for k in self._order()[first : first + count]]
        files, labels = [file for file, _ in mixed], np.array([label for _, label in mixed])

        @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
        def with_bytes(file: "tf.Tensor", label: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
            return tf.io.read_file(file), label

        return tf.data.Dataset.from_tensor_slices((files, labels)).map(with_bytes)

    @property
    def place(self) -> str:
        """The folder, from wherever it is named."""
        return PREFIX + str(self._place.absolute())

    def state(self, data_dir: Path) -> str:
        """As its files' names, sizes and times tell."""
        return state_of_files([file for file, _ in self._labelled])

    def decoded(self, x: "tf.Tensor") -> "tf.Tensor":
        """The picture [h, w, 3] uint8."""
        import tensorflow as tf

        return tf.ensure_shape(tf.io.decode_image(x, channels=3, expand_animations=False), [None, None, 3])

    def reading(self) -> contextlib.AbstractContextManager[None]:
        """A file that is gone or no image is the data's fault, and is named."""
        return told_as_fault(self.name, EXPECTED, EXPECTED, self._no_images)

    def file_of(self, number: int) -> str:
        """Where the example of this number is from."""
        return self._labelled[int(self._order()[number])][0]

    def _order(self) -> "np.ndarray[Any, Any]":
        import numpy as np

        return np.random.default_rng(SEED).permutation(len(self._labelled))

    def _no_images(self, _: str) -> Iterator[str | None]:
        """What is wrong with each file. Decodes them."""
        import tensorflow as tf

        for file, _label in self._labelled:
            try:
                self.decoded(tf.io.read_file(file))
                yield None
            except tf.errors.OpError:
                yield f"'{file}' is no image that can be decoded, or is gone; mend or remove it"


def _images(name: str, place: Path) -> tuple[list[str], list[tuple[str, int]]]:
    """The names of the classes, and each file with the number of its class, by name. UsageError where there is none."""
    try:
        folders = sorted(path for path in place.iterdir() if path.is_dir() and not path.name.startswith("."))
        of_each = {path.name: sorted(str(f) for f in path.iterdir() if f.suffix.lower() in ENDINGS) for path in folders}
    except OSError as error:
        raise UsageError(f"data: '{name}' cannot be read: {error.strerror or error}; give an existing folder") from None
    classes = [folder for folder, files in of_each.items() if files]
    if not classes:
        wanted = ", ".join(f"*{ending}" for ending in ENDINGS)
        raise UsageError(f"data: '{name}' has no folder with images, expected PATH/CLASS/ with {wanted}")
    return classes, [(file, label) for label, folder in enumerate(classes) for file in of_each[folder]]
