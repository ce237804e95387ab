"""What a data source is: where a cell's training examples come from."""

import contextlib
import copy
import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from harness.engines.tensorflow.data.images import FLOATS, type_for
from harness.engines.tensorflow.structures import Batch, OpenShapes, Shapes, arrays_in
from harness.engines.tensorflow.workloads.shapes import input_types
from harness.errors import Unsupported
from harness.trial.sign_of_life import sign_of_life

if TYPE_CHECKING:
    import keras
    import tensorflow as tf

    from harness.engines.tensorflow.workloads.base import Vocabulary


@dataclass(frozen=True)
class DataInfo:
    """`shape` is that of an example's input, of several inputs that of each; of text it is (bytes of a piece,). Of
    images it is (height, width, channels), where height and width are None if they differ in size.

    Labels run from 0 to `classes` - 1; 0 is not known. Where a target is no label but numbers, it has the shape
    (`numbers`,). `examples` is how many there are in one pass, None where nobody knows before its end. Tokens of text
    run from 0 to `vocabulary` - 1; 0 is not known, or no text. Text that is not `labelled` has no classes: its targets
    are the next tokens.
    """

    shape: OpenShapes
    classes: int
    examples: int | None
    vocabulary: int = 0
    labelled: bool = True
    numbers: int = 0

    @property
    def outputs(self) -> int:
        """How many a model has that is built for them."""
        return self.numbers or self.classes


def length_of(dataset: "tf.data.Dataset") -> int:
    """How many examples there are, by reading them all."""
    import numpy as np
    import tensorflow as tf

    # AutoGraph would leave a file in the temporary folder of each process that ends at once, as trials do.
    one_more = tf.autograph.experimental.do_not_convert(lambda so_far, *_: so_far + 1)
    return int(dataset.reduce(np.int64(0), one_more))


def state_of_pass(examples: "tf.data.Dataset") -> tuple[str, int]:
    """A digest of the examples, and how many there are, by reading them all."""
    import tensorflow as tf

    digest, count = hashlib.sha256(str(examples.element_spec).encode()), 0
    varies = not all(spec.shape.is_fully_defined() for spec in tf.nest.flatten(examples.element_spec))
    for example in examples.as_numpy_iterator():
        for part in arrays_in(example):
            digest.update(part if isinstance(part, bytes) else part.tobytes())
            if varies:  # numbers alone would not tell where one example ends
                digest.update(str(getattr(part, "shape", "")).encode())
        count += 1
        sign_of_life(count)
    return digest.hexdigest(), count


class Source(ABC):
    """Examples by name. Every method may raise HarnessError, one line with reason and remedy."""

    name: str
    summary: str
    on_device: ClassVar[bool] = False
    """Whether one batch that already lies on each replica is used again and again (no input cost)."""
    gives: str = "images"
    """The kind of its examples: `images` with labels, which are brought to the model's size and range; `text` in pieces
    with labels, which are cut to the model's tokens; rows of a `table`; `categories` with labels; `anything` that the
    model takes; or `own`, which the model gets as they are."""
    pixels: str = FLOATS
    """The type of what images become (`images.fit`)."""
    encoded: bool = False
    """Whether inputs are still to be `decoded`, one by one, in the pipeline's parallel calls."""

    holds_images: bool = False
    """Whether `own` examples are `read` with images that are still to be decoded, in the pipeline's parallel calls."""

    cut_by: ClassVar[str] = "cut it in the data"
    """How an input that is longer than the model takes can be cut."""

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

    def batch(self, shape: Shapes, classes: int, size: int, seed: int, vocabulary: "Vocabulary | None") -> Batch:
        """Of data that lie on the device, the batch of `size` examples that `seed` makes for a model of this input."""
        raise NotImplementedError

    def for_model(self, model: "keras.Model") -> "Source":
        """What it gives a user's own model: for most data itself, images as its input has them."""
        if self.gives != "images" or len(types := input_types(model)) > 1:
            return self
        made = copy.copy(self)
        made.pixels = type_for(types[0])
        return made

    def part(self, data_dir: Path, first: int, count: int) -> "tf.data.Dataset | None":
        """The `count` examples from number `first` on; None where they are found only by reading those before."""
        return None

    def interleaved(self, data_dir: Path, files: int, in_order: bool) -> "tf.data.Dataset":
        """`examples` from so many files read side by side, one of each in turn, or where not `in_order` of any that has
        one. Raises Unsupported where they are in no files of which several could be read."""
        told = f"'{self.name}' is not read from several files; leave the flag out, or have them written: --shards 8"
        raise Unsupported(f"interleave: {told}")

    def read(self, data_dir: Path, files: int, in_order: bool) -> "tf.data.Dataset":
        """What a pipeline begins with: `examples`, or where that is more than one those of so many files side by side;
        of a source that `holds_images` still without `with_images`."""
        return self.interleaved(data_dir, files, in_order) if files > 1 else self.examples(data_dir)

    @property
    def origin(self) -> "Source":
        """Of examples that were written into files, the source that they are of; else itself."""
        return self

    @property
    def place(self) -> str:
        """What tells it from every other on this machine."""
        return self.name

    def state(self, data_dir: Path) -> str:
        """What tells its examples from those that it had another time. Reads all of them, where no source with many
        knows better."""
        return state_of_pass(self.examples(data_dir))[0]

    def decoded(self, x: "tf.Tensor") -> "tf.Tensor":
        """The input of an example that is `encoded`."""
        return x

    def with_images(self, x: Any, y: Any) -> Any:
        """An example that was `read`, of a source that `holds_images`, with these in place of their bytes."""
        return x, y

    def reading(self) -> contextlib.AbstractContextManager[None]:
        """To be entered while examples are read: what goes wrong with them is then said as every other fault is."""
        return contextlib.nullcontext()
