"""What a data source is: where a cell's training examples come from."""

import contextlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from harness.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf

    Batch = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


@dataclass(frozen=True)
class DataInfo:
    """`shape` is that of an example's input. Of images it is (height, width, channels), where height and width are
    None if they differ in size.

    Labels run from 0 to `classes` - 1; 0 is not known. `examples` is how many there are in one pass, None where nobody
    knows before its end.
    """

    shape: tuple[int | None, ...]
    classes: int
    examples: int | None


@dataclass(frozen=True)
class Tokens:
    """What a model takes that does not take images: `count` whole numbers from 0 to `vocabulary` - 1."""

    count: int
    vocabulary: int
    each: bool = False
    """Whether it answers at each of them with one of the vocabulary, instead of once with a class."""


class Source(ABC):
    """Examples by name. Every method may raise HarnessError, one line with reason and remedy."""

    name: str
    summary: str
    on_device: ClassVar[bool] = False
    """Whether one batch that already lies on each replica is used again and again (no input cost)."""
    images: ClassVar[bool] = True
    """Whether examples are labelled images, which are brought to the model's size and range; any other example is given
    to the model as it is."""

    def fitting(self, tokens: Tokens | None) -> "Source":
        """The source for a model of `tokens`, for None of anything else; UsageError where they do not go together."""
        if tokens is None:
            return self
        raise UsageError(
            f"data: '{self.name}' has images, and the model takes {tokens.count} whole numbers, expected --data text "
            "or synthetic"
        )

    def batch(self, input_shape: tuple[int, ...], classes: int, size: int, seed: int) -> "Batch":
        """A batch from `seed`, of a source on the device."""
        raise NotImplementedError(self.name)

    @abstractmethod
    def prepare(self, data_dir: Path) -> None:
        """Make or download what is missing under `data_dir`; a second call costs little.

        Called once a run, in a process of its own; safe when two processes call it at once, and
        after one was killed half-way.
        """

    @abstractmethod
    def info(self, data_dir: Path) -> DataInfo:
        """What `examples` will give; the source is prepared."""

    @abstractmethod
    def examples(self, data_dir: Path) -> "tf.data.Dataset":
        """One pass, unbatched, in an order that never changes: (image [h, w, c], label [] int64).

        Images of an integer type fill its range; those of a floating type are used as they are.
        """

    def reading(self) -> contextlib.AbstractContextManager[None]:
        """To be entered while examples are read: what goes wrong with them is then said as every other fault is."""
        return contextlib.nullcontext()
