"""Whether the windows of a run's cells still change in the course of a trial, from its records."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from harness.analysis.estimates.trend import trends
from harness.record.trial import TrialRecord
from harness.visible import significant

Trends = Mapping[tuple[str, str | None], float]
"""By cell and side: the change of its windows from first to last, as a share; only those where one was found."""


def trends_of(trials: Iterable[TrialRecord]) -> Trends:
    """The trends in the measured windows of trials that took turns, whatever their records say of steadiness."""
    groups: defaultdict[str, list[TrialRecord]] = defaultdict(list)
    for trial in trials:
        if trial.measured and trial.windows is not None:
            groups[trial.group].append(trial)
    return trends(
        [((trial.cell_id, trial.side), seconds) for trial, seconds in zip(group, _together(group), strict=True)]
        for group in groups.values()
    )


def trend_of(found: Trends, cell_id: str) -> float | None:
    """The largest trend of a cell, of whichever side."""
    own = (change for (cell, _), change in found.items() if cell == cell_id)
    return max(own, key=abs, default=None)


def trend_words(change: float) -> str:
    """A trend as it follows a cell's name."""
    return f"windows become {significant(100 * abs(change), 2)} % {'shorter' if change < 0 else 'longer'}"


def _together(group: Iterable[TrialRecord]) -> list[list[float]]:
    """Seconds of each trial's windows in the rounds in which all of the group were measured."""
    measured = [
        dict(zip(of.rounds[of.measured_from :], of.seconds[of.measured_from :], strict=True))
        for of in (trial.windows for trial in group)
        if of is not None
    ]
    shared = sorted(set.intersection(*(set(rounds) for rounds in measured)))
    return [[rounds[number] for number in shared] for rounds in measured]
