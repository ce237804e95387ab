"""Digests by which records show that cells of several engines began alike and were fed alike, in whatever layout."""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.protocol.state import VariableState

if TYPE_CHECKING:
    from harness.protocol.state import Array

LOOKED_AT = 6
"""The first batches of a process whose labels are looked at, with the gate's."""
LENGTH = 16
"""Of a digest."""


def digest_of_weights(state: Sequence[VariableState]) -> str:
    """Of the values of each weight in ascending order, weight by weight in an order of their own: engines turn arrays
    round and name them otherwise."""
    import numpy as np

    weights = (variable.copies[0] for variable in state if variable.kind == "weight")
    each = sorted(hashlib.sha256(np.sort(np.ravel(weight)).tobytes()).digest() for weight in weights)
    return hashlib.sha256(b"".join(each)).hexdigest()[:LENGTH]


class LabelsSeen:
    """The labels of the first batches that a process trains on, which tell the order of the examples."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.digests: list[str] = []
        """Of all labels up to each batch."""

    def take(self, labels: "Array | Any") -> None:
        """Those of the next batch; all after the first few come to nothing."""
        import numpy as np

        if len(self.digests) < LOOKED_AT:
            self._hash.update(np.asarray(labels, np.int64).tobytes())
            self.digests.append(self._hash.hexdigest()[:LENGTH])

    @property
    def digest(self) -> str:
        """Empty where there were fewer batches."""
        return self.digests[-1] if len(self.digests) == LOOKED_AT else ""
