"""‖·‖ of values that are worked out a block at a time.

What is as large as a model would be fresh memory for every intermediate result, whose pages cost more than the
arithmetic. NumPy's own norm would have a thread a core, which wait for those that other workers of the trial keep busy.
"""

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

BLOCK = 2**15
"""Elements: what is made of them stays in a core's cache."""


def blocks(size: int) -> Iterator[slice]:
    """`size` elements in parts."""
    return (slice(begin, begin + BLOCK) for begin in range(0, size, BLOCK))


def norm(size: int, values: "Callable[[slice], Array]") -> float:
    """‖v‖ of a v of `size` elements, where `values` gives a part of it in float64."""
    import numpy as np

    return math.sqrt(sum(float(np.square(values(part)).sum()) for part in blocks(size)))


def distance(a: "Array", b: "Array", chosen: "Array | None" = None) -> float:
    """‖a − b‖ in float64 over the `chosen` elements, a mask of their shape; over all where that is None. What is the
    same in both is no difference, and be it infinite."""
    import numpy as np

    a, b = a.reshape(-1), b.reshape(-1)
    mask = None if chosen is None else chosen.reshape(-1)

    def difference(part: slice) -> "Array":
        with np.errstate(invalid="ignore"):
            found: Array = a[part].astype(np.float64) - b[part].astype(np.float64)
        return found if mask is None else found[mask[part]]

    def unless_same(part: slice) -> "Array":
        same = a[part] == b[part]
        return np.where(same if mask is None else same[mask[part]], 0.0, difference(part))

    found = norm(a.size, difference)
    return found if math.isfinite(found) else norm(a.size, unless_same)


def distance_but_for_few(a: "Array", b: "Array", chosen: "Array | None", few: float) -> float:
    """As `distance`, without the share `few` of the chosen elements that are furthest apart; of what is no number as
    `distance`."""
    import numpy as np

    if not math.isfinite(whole := distance(a, b, chosen)):
        return whole
    mask = slice(None) if chosen is None else chosen.reshape(-1)
    apart = np.abs(a.reshape(-1)[mask].astype(np.float64) - b.reshape(-1)[mask].astype(np.float64))
    kept = apart.size - int(few * apart.size)
    nearest = np.partition(apart, kept - 1)[:kept] if kept else apart
    return norm(nearest.size, lambda part: nearest[part])


def length(a: "Array", chosen: "Array | None" = None) -> float:
    """‖a‖ in float64 over the `chosen` elements, or all."""
    import numpy as np

    return distance(a, np.broadcast_to(np.float64(0), a.shape), chosen)
