"""Tables without a network: those of scikit-learn, read from its files without importing it."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.data.base import DataInfo, Source
from harness.engines.tensorflow.data.store import sklearn_file
from harness.errors import HarnessError
from harness.visible import plural

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf

    Array = np.ndarray[Any, Any]

SEED = 20_200_402


class BundledTable(Source):
    """Rows of numbers, each column with mean 0 and standard deviation 1, and the row's class; or where targets are
    numbers, those, of the same scale."""

    gives = "table"

    def __init__(self, name: str, info: DataInfo, read: "Callable[[str], tuple[Array, Array]]") -> None:
        """`read(name)` gives the rows and their targets, as they are in the files."""
        [columns] = info.shape
        targets = f"targets of {plural(info.numbers, 'number')}" if info.numbers else f"{info.classes} classes"
        self.name = name
        self.summary = f"table of scikit-learn: {info.examples} rows of {columns} numbers, {targets}"
        self._info, self._read = info, functools.cache(lambda: _mixed(info, *read(name)))

    def prepare(self, data_dir: Path) -> None:
        """Nothing to prepare."""

    def info(self, data_dir: Path) -> DataInfo:
        """Known without reading anything."""
        return self._info

    def examples(self, data_dir: Path) -> "tf.data.Dataset":
        """(row [columns] float32, class [] int32 or target [numbers] float32) in an order that mixes the classes."""
        import tensorflow as tf

        return tf.data.Dataset.from_tensor_slices(self._read())


def _mixed(info: DataInfo, rows: "Array", targets: "Array") -> "tuple[Array, Array]":
    import numpy as np

    order = np.random.default_rng(SEED).permutation(len(rows))
    x, y = rows[order], targets[order]
    return _scaled(x), _scaled(y) if info.numbers else y.astype(np.int32)


def _scaled(columns: "Array") -> "Array":
    import numpy as np

    scaled: Array = ((columns - columns.mean(axis=0)) / columns.std(axis=0)).astype(np.float32)
    return scaled


def _last_column(file: str, name: str) -> "tuple[Array, Array]":
    read = _numbers(name, file, skiprows=1, delimiter=",")
    return read[:, :-1], read[:, -1]


def _of_files(rows: str, targets: str, header: int, name: str) -> "tuple[Array, Array]":
    return _numbers(name, rows, skiprows=header), _numbers(name, targets, skiprows=header, ndmin=2)


def _numbers(name: str, file: str, **form: Any) -> "Array":
    """All of a file of scikit-learn's."""
    import numpy as np

    path = sklearn_file(name, f"data/{file}")
    try:
        read: Array = np.loadtxt(path, **form)
    except (OSError, ValueError) as error:
        raise HarnessError(f"data: '{name}' cannot be read: {error}; install scikit-learn anew") from error
    return read


def _of_classes(name: str, file: str, rows: int, columns: int, classes: int) -> BundledTable:
    return BundledTable(name, DataInfo((columns,), classes, rows), functools.partial(_last_column, file))


def _of_numbers(name: str, files: tuple[str, str], header: int, rows: int, columns: int, numbers: int) -> BundledTable:
    return BundledTable(
        name, DataInfo((columns,), 0, rows, numbers=numbers), functools.partial(_of_files, *files, header)
    )


SOURCES = (
    _of_classes("breast_cancer", "breast_cancer.csv", 569, 30, 2),
    _of_numbers("diabetes", ("diabetes_data_raw.csv.gz", "diabetes_target.csv.gz"), 0, 442, 10, 1),
    _of_classes("iris", "iris.csv", 150, 4, 3),
    _of_numbers("linnerud", ("linnerud_exercise.csv", "linnerud_physiological.csv"), 1, 20, 3, 3),
    _of_classes("wine", "wine_data.csv", 178, 13, 3),
)
