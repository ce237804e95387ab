"""Tables without a network: those of scikit-learn, read from its files without importing it."""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.data.base import DataInfo, Source
from harness.errors import HarnessError
from harness.trial.examples import sklearn_file
from harness.visible import plural

if TYPE_CHECKING:
    import tensorflow as tf

    from harness.protocol.state import Array

SEED = 20_200_402


class BundledTable(Source):
    """Rows of numbers, each column with mean 0 and standard deviation 1, and the row's class; or where targets are
    numbers, those, of the same scale."""

    gives = "table"

    def __init__(self, name: str, info: DataInfo, *files: str, **form: Any) -> None:
        """Of a file of scikit-learn's whose last column is the target, or of two, rows and targets; their `form` is
        NumPy's."""
        [columns] = info.shape
        targets = f"targets of {plural(info.numbers, 'number')}" if info.numbers else f"{info.classes} classes"
        self.name = name
        self.summary = f"table of scikit-learn: {info.examples} rows of {columns} numbers, {targets}"
        self._info, self._read = info, functools.cache(lambda: _mixed(info, name, files, form))

    def prepare(self, data_dir: Path) -> None:
        """Nothing to prepare."""

    def info(self, data_dir: Path) -> DataInfo:
        """Known without reading anything."""
        return self._info

    def examples(self, data_dir: Path) -> "tf.data.Dataset":
        """(row [columns] float32, class [] int32 or target [numbers] float32) in an order that mixes the classes."""
        import tensorflow as tf

        return tf.data.Dataset.from_tensor_slices(self._read())


def _mixed(info: DataInfo, name: str, files: Sequence[str], form: Mapping[str, Any]) -> "tuple[Array, Array]":
    """The rows and their targets."""
    import numpy as np

    first, *others = (_numbers(name, file, form) for file in files)
    rows, targets = (first, *others) if others else np.split(first, [-1], axis=1)
    order = np.random.default_rng(SEED).permutation(len(rows))
    x, y = rows[order], targets[order]
    return _scaled(x), _scaled(y) if info.numbers else y[:, 0].astype(np.int32)


def _scaled(columns: "Array") -> "Array":
    import numpy as np

    scaled: Array = ((columns - columns.mean(axis=0)) / columns.std(axis=0)).astype(np.float32)
    return scaled


def _numbers(name: str, file: str, form: Mapping[str, Any]) -> "Array":
    """All of a file, [rows, columns]."""
    import numpy as np

    path = sklearn_file(name, f"data/{file}")
    try:
        read: Array = np.loadtxt(path, ndmin=2, **form)
    except (OSError, ValueError) as error:
        raise HarnessError(f"data: '{name}' cannot be read: {error}; install scikit-learn anew") from error
    return read


SOURCES = (
    BundledTable("breast_cancer", DataInfo((30,), 2, 569), "breast_cancer.csv", skiprows=1, delimiter=","),
    BundledTable("diabetes", DataInfo((10,), 0, 442, numbers=1), "diabetes_data_raw.csv.gz", "diabetes_target.csv.gz"),
    BundledTable("iris", DataInfo((4,), 3, 150), "iris.csv", skiprows=1, delimiter=","),
    BundledTable(
        "linnerud",
        DataInfo((3,), 0, 20, numbers=3),
        "linnerud_exercise.csv",
        "linnerud_physiological.csv",
        skiprows=1,
    ),
    BundledTable("wine", DataInfo((13,), 3, 178), "wine_data.csv", skiprows=1, delimiter=","),
)
