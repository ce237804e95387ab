"""STREAM's add: how fast a process reads and writes memory that no cache holds."""

import concurrent.futures
import itertools
from typing import TYPE_CHECKING, Any

from harness.environment import available_memory_bytes, hardware

if TYPE_CHECKING:
    import numpy as np

    Part = tuple[np.ndarray[Any, np.dtype[np.float64]], ...]

BYTES_AN_ELEMENT = 24
"""Two are read and one is written, of 8 bytes each: what STREAM counts. That a processor reads a line of `a` before it
writes there is not counted, so what works in place may seem faster."""
CACHES = 4
"""STREAM's rule: each array is at least so many times as large as the last cache."""
SMALLEST, LARGEST = 2**22, 2**25
"""Elements of an array: 32 MiB and 256 MiB."""
MEMORY_SHARE = 0.25
"""At most this share of the memory that is free is taken, for the three arrays together."""


class StreamAdd:
    """a = b + c over three arrays of `elements` float64, cut among `threads` (J. D. McCalpin, STREAM).

    STREAM's triad, a = b + s·c, moves the same bytes in the same order, and NumPy has no such operation in one pass:
    compiled from C it came to within 2 % of this, and in two passes over blocks in a cache to three quarters of it.
    """

    def __init__(self, threads: int, elements: int) -> None:
        import numpy as np

        self.elements = elements
        self.arrays = tuple(np.empty(elements) for _ in range(3))
        bounds = [elements * number // threads for number in range(threads + 1)]
        self._parts: list[Part] = [
            tuple(array[first:end] for array in self.arrays) for first, end in itertools.pairwise(bounds)
        ]
        self._pool = concurrent.futures.ThreadPoolExecutor(threads)
        list(self._pool.map(_fill, self._parts))  # memory is nearest to the thread that first writes there

    def __call__(self) -> None:
        """Once over the arrays."""
        if len(self._parts) == 1:
            _add(self._parts[0])
        else:
            list(self._pool.map(_add, self._parts))


def _fill(part: "Part") -> None:
    for array, value in zip(part, (0.0, 1.0, 2.0), strict=True):
        array.fill(value)


def _add(part: "Part") -> None:
    import numpy as np

    a, b, c = part
    np.add(b, c, out=a)


def array_elements(l3_bytes: object, available_bytes: int) -> int:
    """Elements of each array: STREAM's rule, within the bounds above and the memory that is free."""
    cache = l3_bytes if isinstance(l3_bytes, int) else 0
    wanted = min(LARGEST, max(SMALLEST, CACHES * cache // 8))
    return max(2**16, min(wanted, int(available_bytes * MEMORY_SHARE) // BYTES_AN_ELEMENT))


def elements_here() -> int:
    """The same on this machine."""
    return array_elements(hardware.caches().get("cpu.l3_bytes"), available_memory_bytes())
