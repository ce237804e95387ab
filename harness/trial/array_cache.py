"""Arrays that trials of one sweep share: what one trial has computed, the next ones read.

They lie in the zygote's scratch folder and go with it. A key must name all that the arrays depend on.
"""

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.files import lock_within

if TYPE_CHECKING:
    import numpy as np

    Arrays = Mapping[str, np.ndarray[Any, Any]]

OF_A_LIBRARY = 2
"""`numpy.dtype.isbuiltin` of a type that a library has added, such as bfloat16."""


def cached_arrays(
    folder: str, kind: str, key: bytes, compute: "Callable[[], Arrays]", others_limit_s: float = 0.0
) -> "Arrays":
    """The arrays in `folder` under `kind` and `key`, computed and put there if they are not; "" caches nothing, and
    neither does a disk that is full.

    Where another process is at it, so many seconds of its work are waited for; then this one computes them, too.
    `compute` must not wait for another process that may want the same.
    """
    import numpy as np

    if not folder:
        return compute()
    place = Path(folder) / f"{kind}-{hashlib.sha256(key).hexdigest()[:24]}.npz"
    with _while_nobody_else(place.with_suffix(".lock"), others_limit_s):
        if not place.exists():
            computed = compute()
            if not _kept(place, computed) or all(_reads_alike(array) for array in computed.values()):
                return computed
    with np.load(place, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays}


def _reads_alike(array: "np.ndarray[Any, Any]") -> bool:
    """Whether it is of a type that NumPy's files know: of any other later trials read bare bytes, and so does this."""
    return bool(array.dtype.isbuiltin != OF_A_LIBRARY)


def _kept(place: Path, arrays: "Arrays") -> bool:
    import numpy as np

    unfinished = place.with_suffix(f".{os.getpid()}.npz")
    try:
        np.savez(unfinished, allow_pickle=False, **arrays)
        unfinished.rename(place)
    except OSError:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        return False
    return True


@contextlib.contextmanager
def _while_nobody_else(lock: Path, limit_s: float) -> Iterator[None]:
    """One process at a time, as long as none takes longer than the limit; one that dies lets go."""
    if not limit_s:
        yield
        return
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):  # where no lock can be had, each computes its own
            lock_within(held.enter_context(lock.open("wb")).fileno(), limit_s)
        yield
