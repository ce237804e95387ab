"""Batches: the gate's, then an endless stream of shuffled ones, or one that stays on the devices."""

import collections
import functools
import itertools
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from harness.protocol.engine import GATE_UPDATES
from harness.spec.axes import SYNTHETIC
from harness.spec.inputs import ON_DEVICES
from harness.trial.examples import GATE_SEED, handwritten_digits, late_labels, random_batch, shifted
from harness.trial.same_work.shuffle import shuffled
from harness.trial.sameness import LOOKED_AT, LabelsSeen

if TYPE_CHECKING:
    from harness.protocol.state import Array

    Batch = tuple[Array, Array]

CLASSES = 10
DIGITS = "digits"
ANYTHING = "anything"
GIVES: Mapping[str, str] = MappingProxyType({SYNTHETIC: ANYTHING, DIGITS: "images"})
SUMMARIES: Mapping[str, str] = MappingProxyType(
    {
        SYNTHETIC: "random examples in the model's own shape; one batch stays on the devices, so input costs nothing",
        DIGITS: "1,797 real handwritten digits that scikit-learn carries; needs no network",
    }
)
_WHOLE_BATCH = slice(None)
Placed = TypeVar("Placed")


def gives(name: str) -> str:
    """The kind of examples of a data set; one that is not here fits every model, so that its name has the word."""
    return GIVES.get(name, ANYTHING)


class Data:
    """The data of a cell: x float32 [G, *input_shape] and y int32 [G] a batch, of which a process takes `share`.

    After the gate's batches come those that TensorFlow's pipeline makes of the same seed: of several `processes` each
    shuffles its own examples, every so-manieth, and has a part of each global batch, in their order.

    `ahead` batches are placed before they are asked for: in a `thread` of their own, or, where placing returns before
    it is done, in between.
    """

    def __init__(
        self,
        name: str,
        input_shape: tuple[int, ...],
        global_batch: int,
        seed: int,
        ahead: int,
        share: slice = _WHOLE_BATCH,
        thread: bool = False,
        processes: int = 1,
    ) -> None:
        self._shape, self._size, self._seed, self._ahead = input_shape, global_batch, seed, ahead
        self._share, self._thread, self._processes = share, thread, processes
        self._stays = name == SYNTHETIC
        self.gate: list[Batch] = self.first(GATE_UPDATES)
        self.seen = LabelsSeen()

    @property
    def ahead(self) -> int:
        """Batches that may be ready before a step asks, with the one that a thread waits to hand over; 0 of what
        stays on the devices."""
        return 0 if self._stays else self._ahead + (1 if self._thread and self._ahead else 0)

    @property
    def stages(self) -> list[str]:
        """From the source to this process's step, for the record."""
        if self._stays:
            return ["Synthetic", f"Batch({self._size})", ON_DEVICES]
        count, n = len(self._digits[1]), self._processes
        shard = [f"Shard({n})"] if n > 1 else []
        stages = [f"Digits({count})", *shard, f"Shuffle({count // n})", f"Batch({self._size // n})"]
        return [*stages, f"Prefetch({self._ahead})"] if self._ahead else stages

    @property
    def unlike(self) -> dict[str, str]:
        """Of the input what is not as under TensorFlow, whose threads run beside Python."""
        if self._stays:
            return {}
        where = "a Python thread beside the step" if self._thread and self._ahead else "the step's own thread"
        return {"input": f"batches are gathered in {where}"}

    def batches(self, place: "Callable[[Batch], Placed]") -> Iterator[Placed]:
        """This process's share of the gate's batches as `place` puts them on the devices, then of the endless rest, a
        few ahead of the step."""
        self.seen = LabelsSeen()
        shares = [self.share_of(batch) for batch in self.gate]
        first = [place(share) for share in shares]
        for _, labels in shares + shares[-1:] * (LOOKED_AT if self._stays else 0):
            self.seen.take(labels)
        if self._stays:
            return itertools.chain(first, itertools.repeat(first[-1]))
        ahead = _in_a_thread if self._thread and self._ahead else _ahead
        return itertools.chain(first, ahead(map(place, self._shuffled()), self._ahead))

    def share_of(self, batch: "Batch") -> "Batch":
        """This process's part of a global batch."""
        x, y = batch
        return x[self._share], y[self._share]

    @functools.cached_property
    def late(self) -> "list[Batch]":
        """What updates late in training are proved with, in turn: the gate's batches with other labels."""
        return [(x, late_labels(y, CLASSES)) for x, y in self.gate]

    def first(self, count: int) -> "list[Batch]":
        """So many global batches, always the same ones, no two alike."""
        if self._stays:
            return [random_batch(self._shape, CLASSES, self._size, GATE_SEED + k) for k in range(count)]
        needed = count * self._size
        x, y = shifted(needed, *self._digits)
        return [(x[k : k + self._size], y[k : k + self._size]) for k in range(0, needed, self._size)]

    @functools.cached_property
    def _digits(self) -> "Batch":
        """All of them as the model wants them."""
        import numpy as np

        images, labels = handwritten_digits()
        return resized(images.astype(np.float32) / 255, self._shape), labels.astype(np.int32)

    def _shuffled(self) -> "Iterator[Batch]":
        """Batches without end; every example comes once a pass, in another order each time."""
        import numpy as np

        images, labels = self._digits
        own = [np.arange(index, len(labels), self._processes) for index in range(self._processes)]
        orders = [shuffled(numbers, len(labels) // self._processes, self._seed) for numbers in own]
        parts = [_in_parts(order, self._size // self._processes) for order in orders]
        while True:
            now = np.concatenate([next(part) for part in parts])[self._share]
            self.seen.take(labels[now])
            yield images[now], labels[now]


def _in_parts(arrays: "Iterator[Array]", size: int) -> "Iterator[Array]":
    """What comes in arrays of any size, so many at a time."""
    import numpy as np

    waiting = next(arrays)
    while True:
        while len(waiting) < size:
            waiting = np.concatenate([waiting, next(arrays)])
        yield waiting[:size]
        waiting = waiting[size:]


def _ahead(placed: Iterator[Placed], count: int) -> Iterator[Placed]:
    """The same, so many placed before they are asked for: placing returns before the copy is done."""
    waiting = collections.deque(itertools.islice(placed, count))
    while True:
        waiting.append(next(placed))
        yield waiting.popleft()


class _Raised(NamedTuple):
    """What came instead of a batch."""

    error: Exception


def _in_a_thread(placed: Iterator[Placed], count: int) -> Iterator[Placed]:
    """The same, placed beside the step by a thread that waits where so many are ready. It ends with the process.

    What it raises is raised here: who asks for a batch would else wait for ever.
    """
    ready: queue.Queue[Placed | _Raised] = queue.Queue(count)

    def fill() -> None:
        try:
            for batch in placed:
                ready.put(batch)
        except Exception as error:  # noqa: BLE001  whatever it is, the step is told
            ready.put(_Raised(error))

    threading.Thread(target=fill, daemon=True).start()
    while True:
        batch = ready.get()
        if isinstance(batch, _Raised):
            raise batch.error
        yield batch


def resized(images: "Array", shape: tuple[int, ...]) -> "Array":
    """Grey images [n, h, w, 1] as float32 [n, *shape]: bilinear with half-pixel centres and no antialiasing, as
    `tf.image.resize` does it; colour by repetition."""
    import numpy as np

    rows, columns = (_weights(images.shape[axis], shape[axis - 1]) for axis in (1, 2))
    small = np.einsum("ai,nij,bj->nab", rows, images[..., 0], columns, optimize=True)
    return np.repeat(small[..., np.newaxis], shape[2], axis=-1).astype(np.float32)


def _weights(given: int, wanted: int) -> "Array":
    """What each of `wanted` pixels takes of each of `given`, [wanted, given]."""
    import numpy as np

    centres = np.clip((np.arange(wanted) + 0.5) * given / wanted - 0.5, 0, given - 1)
    weights: Array = np.maximum(0.0, 1 - np.abs(centres[:, np.newaxis] - np.arange(given)))
    return weights
