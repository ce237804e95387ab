"""Arrays that trials of one sweep share: what one trial has computed, the next ones read.

They lie in the zygote's scratch folder and go with it. A key must name all that the arrays depend on.
"""

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Arrays = Mapping[str, np.ndarray[Any, Any]]


def cached_arrays(folder: str, kind: str, key: bytes, compute: "Callable[[], Arrays]") -> "Arrays":
    """The arrays in `folder` under `kind` and `key`, computed and put there if they are not; "" caches nothing."""
    import numpy as np

    if not folder:
        return compute()
    place = Path(folder) / f"{kind}-{hashlib.sha256(key).hexdigest()[:24]}.npz"
    if place.exists():
        with np.load(place, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays}
    found = compute()
    unfinished = place.with_suffix(f".{os.getpid()}.npz")
    np.savez(unfinished, allow_pickle=False, **found)
    unfinished.rename(place)
    return found
