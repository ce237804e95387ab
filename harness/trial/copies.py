"""Copies of one array, as replicas have them: those that are the same bit for bit are held once."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.protocol.state import Array


def one_where_alike(values: "Iterable[Array]", ours: bool = False) -> "tuple[Array, ...]":
    """What each device holds, copied, since a step overwrites it, unless nobody else writes what is `ours`. What is the
    first's bit for bit is one array with it: of a large model those of all replicas would not fit memory."""
    import numpy as np

    of_each = iter(values)
    kept = (lambda array: array) if ours else np.array
    first = kept(next(of_each))
    return (first, *(first if same_bits(first, other) else kept(other) for other in of_each))


def same_bits(one: "Array", other: "Array") -> bool:
    """Whether two arrays are the same, and so is what is no number in them, or a zero's sign."""
    import numpy as np

    one, other = np.asarray(one), np.asarray(other)  # TensorFlow gives one text as bytes
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    if one.dtype.kind not in "biufcV":  # text
        return bool(np.array_equal(one, other))
    whole = np.dtype(f"u{min(one.dtype.itemsize, 8)}")
    first, second = (np.ascontiguousarray(array).reshape(-1).view(whole) for array in (one, other))
    return np.array_equal(first, second)
