"""What the compiled program really does: its collectives, and a fingerprint."""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from harness.record.trial import Executed

COLLECTIVES = (
    "all-reduce",
    "all-gather",
    "all-to-all",
    "collective-broadcast",
    "collective-permute",
    "reduce-scatter",
)
_INSTRUCTION = re.compile(rf"^\s*(?:ROOT )?%?\S+ = (.+?) ({'|'.join(COLLECTIVES)})(?:-start)?\(", re.MULTILINE)
_TENSOR = re.compile(r"\b(?:pred|[a-z]+(\d+)\w*)\[([\d,]*)\]")
BITS_A_BYTE = 8


class Program(NamedTuple):
    """A step as XLA gets it, and as it is compiled."""

    lowered: Any
    compiled: Any

    @classmethod
    def of(cls, lowered: Any) -> "Program":
        """Compiled here."""
        return cls(lowered, lowered.compile())


class Collective(NamedTuple):
    """An instruction of a compiled program: its name, and the bytes of the arrays that it gives, less its scalars."""

    name: str
    bytes: int


def inspect(lowered: Any, compiled: Any, stages: list[str], unlike: dict[str, str]) -> Executed:
    """Read a step as it was lowered and as XLA compiled it; `stages` are those of its input, and `unlike` what is not
    as under TensorFlow."""
    found = [collective for collective in collectives(compiled.as_text()) if collective.bytes]
    sums = sorted((one.bytes for one in found if one.name == "all-reduce"), reverse=True)
    return Executed(
        operations=dict(sorted(Counter(one.name for one in found).items())),
        packs=len(sums),
        pack_bytes=sums,
        xla_clusters=1,
        fingerprint=hashlib.sha256(lowered.as_text().encode()).hexdigest()[:16],
        input=stages,
        unlike=unlike,
    )


def collectives(text: str) -> Iterator[Collective]:
    """The collectives of a compiled program's text; one of scalars alone, such as the reported loss, has no bytes."""
    for shapes, name in _INSTRUCTION.findall(text):
        yield Collective(name, sum(_bytes(*tensor) for tensor in _TENSOR.findall(shapes)))


def _bytes(bits: str, dimensions: str) -> int:
    if not dimensions:
        return 0
    size = int(bits) // BITS_A_BYTE if bits else 1
    return size * math.prod(map(int, dimensions.split(",")))
