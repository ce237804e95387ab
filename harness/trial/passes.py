"""Whether an input pipeline gives each example of its source once a pass, unchanged, and in the order that it should.

An example is known by a digest of its inputs and its targets.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.errors import Unprovable
from harness.trial.ending import WrongResult

if TYPE_CHECKING:
    from harness.protocol.state import Array

DIGEST_BYTES = 8
"""Of a million examples two share a digest by chance once in 37 million data sets."""


def digests_of(*parts: "Array") -> list[int]:
    """Of each example of a batch, whose parts are its inputs and then its targets."""
    return [digest_of(example) for example in zip(*parts, strict=True)]


def digest_of(example: "Iterable[Array | bytes]") -> int:
    """Of one example, its parts one after the other."""
    data = b"".join(part if isinstance(part, bytes) else part.tobytes() for part in example)
    return int.from_bytes(hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest(), "little")


@dataclass(frozen=True)
class KnownPass:
    """The examples of one pass, by digest, in the order in which the source has them."""

    digests: Sequence[int]
    order_unknown: str = ""
    """Why that order cannot be told; empty where it can."""

    @classmethod
    def of_two(cls, name: str, first: Sequence[int], second: Sequence[int]) -> "KnownPass":
        """Of a source that was read twice, since nobody but its author knows what it does. Raises WrongResult where the
        second pass lost or doubled some, Unprovable where it has others."""
        passes = f"two passes over '{name}' itself"
        if len(first) != len(second):
            raise WrongResult(f"examples: {passes} have {len(first):,} examples and {len(second):,}")
        if not set(second) <= set(first):
            raise Unprovable(f"{passes} have other examples, as of data that are random in each")
        if (evidence := cls(first).judge(second)) is not None:
            raise WrongResult(f"examples: {passes} differ: {evidence}")
        return cls(first, "" if first == second else f"{passes} have their examples in another order each")

    def judge(self, found: Sequence[int]) -> str | None:
        """None where `found` has each example once, in whatever order; else the evidence."""
        known, drawn = Counter(self.digests), Counter(found)
        lacking, more = known - drawn, drawn - known
        changed = Counter({digest: count for digest, count in more.items() if digest not in known})
        parts = (
            (lacking, "missing", True),
            (more - changed, "there more often than in the source", True),
            (changed, "of no example of the source", False),
        )
        said = [self._told(of, words, place) for of, words, place in parts if of]
        return "; ".join(said) or None

    def judge_order(self, found: Sequence[int], order: Sequence[int]) -> str | None:
        """None where `found` are the examples with the numbers of `order`; else the first that is not."""
        for place, (digest, number) in enumerate(zip(found, order, strict=True)):
            if digest != self.digests[number]:
                return (
                    f"example {place + 1:,} of the pass is not number {number + 1:,} of the source, as the seed has it"
                )
        return None

    def _told(self, of: "Counter[int]", words: str, place: bool) -> str:
        count = of.total()
        first = f" (first number {self.digests.index(next(iter(of))) + 1:,})" if place else ""
        return f"{count:,} of a pass of {len(self.digests):,} {'is' if count == 1 else 'are'} {words}{first}"


def judge_batch(parts: "Mapping[str, Array]", like: "Mapping[str, Array]", size: int) -> str | None:
    """None where a batch has `size` examples, each part of the shape and type that it has in the example `like`; else
    the evidence."""
    for name, one in like.items():
        found, expected = parts[name], (size, *one.shape)
        if found.shape != expected or found.dtype != one.dtype:
            return f"{name} {list(found.shape)} {found.dtype}, expected {list(expected)} {one.dtype}"
    return None
