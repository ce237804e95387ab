"""How a decision between two sides is reached: margins, stages and caps."""

from dataclasses import dataclass

from harness.analysis.estimates.verdict import Margins
from harness.errors import UsageError
from harness.spec.axes import MOST_SECONDS
from harness.stages import MAX_BLOCKS, PILOT_BLOCKS

WINDOWING = {"window": 0.02, "windows": 100}
"""The keys of a spec that a comparison sets where nobody else does: many short turns instead of few long ones.

The noise of a window hardly depends on its length, down to some 16 ms; and as many of them as keep a decision
of twelve blocks under three minutes (`docs/verdicts.md`).
"""


@dataclass(frozen=True)
class AbSettings:
    """How a decision is reached. `half_width` None: (ε − δ)/2, so that no difference is found equivalent
    and a difference of ε is found to count, each well within the interval."""

    margins: Margins
    pilot_blocks: int = PILOT_BLOCKS
    max_blocks: int = MAX_BLOCKS
    half_width: float | None = None
    time_s: float | None = None

    def __post_init__(self) -> None:
        if self.half_width is not None and not 0 < self.half_width < 1:
            raise UsageError(f"half_width: given {self.half_width}, expected a share such as 0.01, between 0 and 1")
        if self.time_s is not None and not 0 < self.time_s <= MOST_SECONDS:
            raise UsageError(f"time: given {self.time_s}, expected seconds, above 0 and at most {MOST_SECONDS:g}")
        if self.pilot_blocks < 2:
            raise UsageError(f"pilot_blocks: given {self.pilot_blocks}, expected at least 2: one has no spread")
        if self.max_blocks < self.pilot_blocks:
            raise UsageError(
                f"max_blocks: given {self.max_blocks}, expected at least pilot_blocks, {self.pilot_blocks}"
            )

    @property
    def target(self) -> float:
        """Half-width of the log interval that the second stage is planned for."""
        room = self.margins.log_epsilon - self.margins.log_delta
        return max(room / 2, self.margins.log_delta / 2, 0.001) if self.half_width is None else self.half_width
