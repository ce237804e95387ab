"""What a turn costs: a window after another trial's beside one after the trial's own, by cell.

Where trials take turns, the caches hold what another trial's window left there. Both sides of a comparison pay for
that alike, so ratios do not show it; an absolute throughput is lower for it.
"""

import math
import statistics
from collections.abc import Iterable, Sequence

from harness.analysis.estimates.intervals import LogEstimate, log_mean
from harness.record.trial import TrialRecord
from harness.record.validation import TurnCost


def turn_cost(trials: Iterable[TrialRecord]) -> LogEstimate | None:
    """Of all trials together, ln of how much longer; None where fewer than two tell."""
    logs = [log for trial in trials if (log := _longer(trial)) is not None]
    return log_mean(logs, "t") if len(logs) > 1 else None


def turn_costs(trials: Iterable[TrialRecord]) -> list[TurnCost]:
    """One for each cell of which two trials tell; what has a slow-down planted is left out."""
    by_cell: dict[str, list[TrialRecord]] = {}
    for trial in trials:
        if trial.measured and not (trial.plant and trial.plant.share):
            by_cell.setdefault(trial.cell_id, []).append(trial)
    found = (_cost(same) for same in by_cell.values())
    return [cost for cost in found if cost is not None]


def _cost(same: Sequence[TrialRecord]) -> TurnCost | None:
    found = turn_cost(same)
    bounds = found.log_bounds() if found is not None else None
    if found is None or bounds is None:
        return None
    return TurnCost(
        cell=same[0].cell,
        trials=found.count,
        longer=math.expm1(found.mean),
        low=math.expm1(bounds[0]),
        high=math.expm1(bounds[1]),
    )


def _longer(trial: TrialRecord) -> float | None:
    """ln of how much longer one trial's windows took after another's than after its own; None without both sorts.

    Which follows which is drawn anew each round, so drift is in both. The trial is the unit: its windows resemble
    each other.
    """
    windows = trial.windows
    if windows is None or not windows.after_own:
        return None
    own: list[float] = []
    others: list[float] = []
    for index in range(max(1, windows.measured_from), len(windows.seconds)):
        (own if index in windows.after_own else others).append(math.log(windows.seconds[index]))
    return statistics.fmean(others) - statistics.fmean(own) if own and others else None
