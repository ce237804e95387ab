"""What replicas send in a collective, and whether what each of them received is exactly what it should be."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from harness.spec.collective import CollectiveCell
from harness.trial.sums import judge_copies, judge_sums, known_values

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class KnownBuffers:
    """Replica r sends `weights[r]` times `pattern`, float32 of the shape [elements]: see `harness.trial.sums`.

    The integers are as large as float32 adds exactly, so a narrower type on the way shows at every size.
    """

    collective: str
    weights: Sequence[float]
    pattern: "Array"

    @classmethod
    def of(cls, cell: CollectiveCell) -> "KnownBuffers":
        """Buffers of the cell's own size, none of them cut."""
        weights, [pattern] = known_values(cell.replicas_in_sync, [((cell.elements,), "float32")], whole=True)
        return cls(cell.collective, weights, pattern)

    def others(self) -> "KnownBuffers":
        """Buffers of which no element is what it was, and which are as exact: a result that is kept is then wrong."""
        return replace(self, pattern=-self.pattern[::-1])

    def sent(self) -> "list[Array]":
        """What each replica sends, float32 of the shape [elements]."""
        return [weight * self.pattern for weight in self.weights]

    def judge(self, received: "Sequence[Array]") -> str | None:
        """None where what each of some replicas received is right in each element; else the evidence."""
        import numpy as np

        match self.collective:
            case "all_reduce":
                return judge_sums([received], [self.pattern], self.weights)
            case "all_gather":
                return judge_copies(received, np.concatenate(self.sent()))
            case "broadcast":
                return judge_copies(received, self.sent()[0])
        raise ValueError(f"nothing is known of what '{self.collective}' brings")
