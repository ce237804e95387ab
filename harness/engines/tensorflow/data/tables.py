"""Tables without a network: those of scikit-learn that have classes, read from its files without importing it."""

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.data.base import DataInfo, Source
from harness.engines.tensorflow.data.store import sklearn_file
from harness.errors import HarnessError

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf

SEED = 20_200_402


class BundledTable(Source):
    """Rows of numbers, each column with mean 0 and standard deviation 1, and the row's class."""

    gives = "table"

    def __init__(self, name: str, file: str, rows: int, columns: int, classes: int) -> None:
        self.name = name
        self.summary = f"table of scikit-learn: {rows} rows of {columns} numbers, {classes} classes"
        self._file, self._info = file, DataInfo((columns,), classes, rows)

    def prepare(self, data_dir: Path) -> None:
        """Nothing to prepare."""

    def info(self, data_dir: Path) -> DataInfo:
        """Known without reading anything."""
        return self._info

    def examples(self, data_dir: Path) -> "tf.data.Dataset":
        """(row [columns] float32, class [] int32) in an order that mixes the classes."""
        import tensorflow as tf

        return tf.data.Dataset.from_tensor_slices(_rows(self.name, self._file))


@functools.cache
def _rows(name: str, file: str) -> "tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]":
    import numpy as np

    path = sklearn_file(name, f"data/{file}")
    try:
        read = np.loadtxt(path, delimiter=",", skiprows=1)
    except (OSError, ValueError) as error:
        raise HarnessError(f"data: '{name}' cannot be read: {error}; install scikit-learn anew") from error
    mixed = np.random.default_rng(SEED).permutation(read)
    x = (mixed[:, :-1] - mixed[:, :-1].mean(axis=0)) / mixed[:, :-1].std(axis=0)
    return x.astype(np.float32), mixed[:, -1].astype(np.int32)


SOURCES = (
    BundledTable("breast_cancer", "breast_cancer.csv", 569, 30, 2),
    BundledTable("iris", "iris.csv", 150, 4, 3),
    BundledTable("wine", "wine_data.csv", 178, 13, 3),
)
