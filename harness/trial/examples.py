"""Examples that need no framework: random batches, handwritten digits, and batches in which none comes twice.

NumPy alone, so that engines without TensorFlow train on the same numbers.
"""

import functools
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from harness.errors import HarnessError

if TYPE_CHECKING:
    from harness.protocol.state import Array

GATE_SEED = 20_220_101
"""The seed of the gate's first random batch; each further one has the next."""


class WholeNumbers(Protocol):
    """Of a model whose input are whole numbers: they are below `size`."""

    @property
    def size(self) -> int:
        """The first number that there is not."""

    @property
    def next_token(self) -> bool:
        """Whether a target is a number for each of the input, and not one class."""


def random_batch(
    input_shape: tuple[int, ...], classes: int, size: int, seed: int, vocabulary: WholeNumbers | None = None
) -> "tuple[Array, Array]":
    """x float32 [size, *input_shape], standard normal, and y int32 [size], uniform over the classes, from `seed`.

    A model with one output is a binary classifier: its labels are 0 and 1. With a vocabulary x is int32, uniform over
    it, and y a class for each token where the model tells the next one.
    """
    import numpy as np

    generator = np.random.default_rng(seed)
    x: Array
    if vocabulary is None:
        x = generator.standard_normal((size, *input_shape), dtype=np.float32)
    else:
        x = generator.integers(vocabulary.size, size=(size, *input_shape), dtype=np.int32)
    places = input_shape if vocabulary is not None and vocabulary.next_token else ()
    return x, generator.integers(max(classes, 2), size=(size, *places), dtype=np.int32)


def sklearn_file(name: str, file: str) -> Path:
    """A file below scikit-learn's `datasets`, which is not imported: that takes seconds. HarnessError where it is not
    installed."""
    found = importlib.util.find_spec("sklearn")
    if found is None or found.origin is None:
        raise HarnessError(f"data: '{name}' comes with scikit-learn, which is not there; pip install scikit-learn")
    return Path(found.origin).parent / "datasets" / file


@functools.cache
def handwritten_digits() -> "tuple[Array, Array]":
    """Images [1797, 8, 8, 1] uint8 over the whole range 0 to 255, labels [1797] int64; HarnessError without
    scikit-learn, which carries them. Parsed once a process: the arrays are everybody's, and nobody's to change."""
    import numpy as np

    rows = np.loadtxt(sklearn_file("digits", "data/digits.csv.gz"), delimiter=",")
    images = rows[:, :-1].reshape(-1, 8, 8, 1)
    found = np.round(images * (255 / 16)).astype(np.uint8), rows[:, -1].astype(np.int64)
    for array in found:
        array.flags.writeable = False
    return found


def shifted(needed: int, inputs: "Array", labels: "Array") -> "tuple[Array, Array]":
    """`needed` examples made of those there are: in each further pass the inputs are moved by one element more."""
    import numpy as np

    passes, position = np.divmod(np.arange(needed), len(inputs))
    x, y = inputs[position], labels[position]
    flat = x.reshape(needed, -1)
    for number in range(1, int(passes[-1]) + 1):
        flat[passes == number] = np.roll(flat[passes == number], number, axis=1)
    return flat.reshape(x.shape), y


def late_labels(y: "Array", classes: int) -> "Array":
    """Labels of what an update late in training is proved with: each the next class's, and of what is no class the
    example before's. A model that has learnt its data would have next to no gradient on them as they are. 0 `classes`:
    whole numbers are none either."""
    import numpy as np

    of_classes = classes and np.issubdtype(y.dtype, np.integer)
    return ((y + 1) % max(2, classes)).astype(y.dtype) if of_classes else np.roll(y, 1, axis=0)
