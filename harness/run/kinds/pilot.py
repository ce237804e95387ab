"""The spread of a cell's first-stage trials, for planning a second stage."""

import math
import statistics
from collections.abc import Sequence

from harness.record.trial import TrialRecord


def log_deviation(trials: Sequence[TrialRecord], cell_id: str) -> tuple[float | None, int]:
    """(standard deviation of ln τ over the cell's measured trials, how many); None below two."""
    times = [t.step_time_s for t in trials if t.cell_id == cell_id and t.measured and t.step_time_s]
    if len(times) < 2:
        return None, len(times)
    return statistics.stdev(math.log(time) for time in times), len(times)
