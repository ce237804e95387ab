"""‖·‖ of values that are worked out a block at a time, in the same memory.

What is as large as a model would be fresh memory for every intermediate result, whose pages cost more than the
arithmetic; so may be a block's, in a process whose other threads keep glibc giving memory back. NumPy's own norm would
have a thread a core, which wait for those that other workers of the trial keep busy.
"""

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.protocol.state import Array

BLOCK = 2**14
"""Elements: what is made of them stays in a core's cache, and is no memory that glibc asks the kernel for by itself."""


def blocks(size: int) -> Iterator[slice]:
    """`size` elements in parts."""
    return (slice(begin, min(begin + BLOCK, size)) for begin in range(0, size, BLOCK))


def norm(size: int, work_out: "Callable[[slice, Array, Array], None]", chosen: "Array | None" = None) -> float:
    """‖v‖ of a v of `size` elements, of which those count that are `chosen`; all where that is None.

    `work_out` is given a part and two rooms of its length, float64: it leaves that part of v in the first, and may have
    the other.
    """
    import numpy as np

    first, second = np.empty((2, min(size, BLOCK)))
    squares = 0.0
    for part in blocks(size):
        length = part.stop - part.start
        values = first[:length]
        work_out(part, values, second[:length])
        if chosen is not None:
            np.copyto(values, 0.0, where=~chosen[part])
        squares += float(np.square(values, out=values).sum())
    return math.sqrt(squares)


def distance(a: "Array", b: "Array", chosen: "Array | None" = None, nans_alike: bool = False) -> float:
    """‖a − b‖ in float64 over the `chosen` elements, a mask of their shape; over all where that is None. What is the
    same in both is no difference, and be it infinite; where `nans_alike`, nor is what is no number in both."""
    import numpy as np

    a, b = a.reshape(-1), b.reshape(-1)
    mask = None if chosen is None else chosen.reshape(-1)

    def difference(part: slice, found: "Array", room: "Array") -> None:
        np.copyto(found, a[part], casting="unsafe")
        np.copyto(room, b[part], casting="unsafe")
        with np.errstate(invalid="ignore"):
            np.subtract(found, room, out=found)

    def unless_same(part: slice, found: "Array", room: "Array") -> None:
        difference(part, found, room)
        np.copyto(found, 0.0, where=same(a[part], b[part], nans_alike))

    apart = norm(a.size, difference, mask)
    return apart if math.isfinite(apart) else norm(a.size, unless_same, mask)


def distance_but_for_few(a: "Array", b: "Array", chosen: "Array | None", few: float, nans_alike: bool = False) -> float:
    """As `distance`, without the share `few` of the chosen elements that are furthest apart; of what is no number as
    `distance`."""
    import numpy as np

    if not math.isfinite(whole := distance(a, b, chosen, nans_alike)):
        return whole
    mask = slice(None) if chosen is None else chosen.reshape(-1)
    apart = apart_each(a.reshape(-1)[mask], b.reshape(-1)[mask], nans_alike)
    kept = apart.size - int(few * apart.size)
    nearest = np.partition(apart, kept - 1)[:kept] if kept else apart
    return norm(nearest.size, lambda part, found, _: np.copyto(found, nearest[part]))


def same(a: "Array", b: "Array", nans_alike: bool = False) -> "Array":
    """Where two hold the same; what is no number is so in both where `nans_alike`."""
    found: Array = a == b
    if nans_alike:
        found |= (a != a) & (b != b)  # NaN alone is not itself, of any type
    return found


def apart_each(a: "Array", b: "Array", nans_alike: bool = False) -> "Array":
    """|a − b| of each element in float64: 0 where they are the same, and be it infinite."""
    import numpy as np

    with np.errstate(invalid="ignore"):
        apart: Array = np.abs(a.astype(np.float64) - b.astype(np.float64))
    return np.where(same(a, b, nans_alike), 0.0, apart)


def furthest(a: "Array", b: "Array", chosen: "Array") -> float:
    """max |a − b| over the `chosen` elements; NaN where one is no number in one of them alone."""
    import numpy as np

    a, b, chosen = a.reshape(-1), b.reshape(-1), chosen.reshape(-1)
    largest = np.float64(0)
    for part in blocks(a.size):
        apart = apart_each(a[part], b[part], nans_alike=True)
        largest = np.maximum(largest, apart.max(initial=0.0, where=chosen[part]))
    return float(largest)


def change_of(now: "Array", before: "Array", chosen: "Array | None" = None) -> float:
    """‖now − before‖ over the `chosen` elements that are finite now. What was not finite before, as the maximum of
    nothing is not, has changed by all that it is."""
    import numpy as np

    if math.isfinite(whole := distance(now, before, chosen)):
        return whole
    finite = np.isfinite(now)
    return distance(now, np.where(np.isfinite(before), before, 0), finite if chosen is None else finite & chosen)


def length(a: "Array", chosen: "Array | None" = None) -> float:
    """‖a‖ in float64 over the `chosen` elements, or all."""
    import numpy as np

    return distance(a, np.broadcast_to(np.float64(0), a.shape), chosen)
