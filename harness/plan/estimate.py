"""How long a sweep will take, for `--dry-run` and for the first ETA."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.spec.cell import Cell
from harness.spec.sweep import Sweep

IMPORT_S = 6.0
"""Importing TensorFlow once, in the zygote (4.5–10 s on two cores)."""
FIXED_S = 0.7
FIXED_PER_REPLICA_S = 0.2
"""Fixed cost of a trial: medians of `benchmarks/goals/fixed_cost.py` on two cores."""
WINDOW_OVERHEAD = 1.35
"""A window is at least as long as asked for, and a pilot comes before them."""

WARMUP_SHARE = 0.3
"""Of the rounds that warm-up may take at most, what it takes on average."""


@dataclass(frozen=True)
class Estimate:
    """Seconds, and the trials that they pay for."""

    seconds: float
    trials: int


def estimate(sweep: Sweep, cells: Sequence[Cell]) -> Estimate:
    """A rough figure: fixed cost plus windows, were every cell supported here."""
    fixed = sum(FIXED_S + FIXED_PER_REPLICA_S * cell.replicas_in_sync for cell in cells)
    rounds = sweep.windows + WARMUP_SHARE * sweep.max_warmup
    windows = len(cells) * rounds * sweep.window * WINDOW_OVERHEAD
    return Estimate(IMPORT_S + sweep.trials * (fixed + windows), sweep.trials * len(cells))
