"""Each worker's own times within a cell: whether one of them is what the others wait for.

Workers in lock-step wait for each other in every step, so their windows are nearly alike, whoever is slow; what shows
there is the lag at a window's end. Whom they wait for shows in what each one's forward and backward take alone.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scipy import special

from harness.analysis.estimates.intervals import CONFIDENCE, Interval, log_mean
from harness.analysis.estimates.windows import quantile
from harness.record.trial import TrialRecord, Windows

STRAGGLES = 0.02
"""A worker whose median step is this much longer than the fastest's is called a straggler …"""
ALWAYS = 0.5
"""… where it was the last in more than this share of the windows, beyond what chance does once in 20 cells: of equal
workers, two that scatter by 7 % each for themselves, one is in more than half of them in nearly every cell."""


@dataclass(frozen=True)
class StepTimes:
    """Seconds of one step, from the measured windows of good trials: window time ÷ steps."""

    smallest_s: float
    p50_s: float
    p95_s: float
    p99_s: float
    """Percentiles: the median over trials of each trial's own."""
    largest_s: float
    windows: int


@dataclass(frozen=True)
class Alone:
    """One worker's forward and backward by itself, all workers at the same time and nothing reduced."""

    seconds: float
    """Of one step; the median over trials of the median of each one's rounds."""
    against_fastest: Interval
    """÷ the fastest worker's: of each trial the median over rounds, which are compared one by one. Bonferroni over all
    pairs of workers: which one is the fastest is known from the same figures. Of one trial it is made of the rounds
    themselves, and holds for that trial."""


@dataclass(frozen=True)
class WorkerTimes:
    """One worker of a cell."""

    worker: int
    times: StepTimes
    last_share: float
    """The share of windows in which it was the last to finish."""
    mostly_last: bool
    """Whether that is more than half of them beyond chance: a one-sided binomial test at 5 % ÷ workers."""
    behind: float
    """Its median step time ÷ the fastest worker's, less 1."""
    alone: Alone | None = None
    """None where that was not timed."""

    @property
    def slower(self) -> bool:
        """Whether what it computes takes it longer than the fastest worker, beyond doubt."""
        low = None if self.alone is None else self.alone.against_fastest.low
        return low is not None and low > 1 + STRAGGLES

    @property
    def late(self) -> bool:
        """Whether it is behind at the end of window after window."""
        return self.behind > STRAGGLES and self.mostly_last

    @property
    def straggles(self) -> bool:
        """Whether the others wait for it."""
        return self.slower or self.late


@dataclass(frozen=True)
class CellTimes:
    """A cell's step times, and each worker's where it has several."""

    cell_id: str
    times: StepTimes
    workers: tuple[WorkerTimes, ...]


def step_times(trials: Iterable[TrialRecord]) -> dict[str, CellTimes]:
    """By cell id, of the good trials that measured something; the first trial's number of workers counts."""
    by_cell: dict[str, list[TrialRecord]] = {}
    for trial in trials:
        windows = trial.windows
        if trial.measured and windows is not None and windows.measured_from < len(windows.seconds):
            by_cell.setdefault(trial.cell_id, []).append(trial)
    return {cell_id: _cell_times(cell_id, good) for cell_id, good in by_cell.items()}


def _cell_times(cell_id: str, trials: Sequence[TrialRecord]) -> CellTimes:
    series = [trial.windows for trial in trials if trial.windows is not None]
    times = _summarised([_per_step(windows, windows.seconds) for windows in series])
    count = len(series[0].workers)
    alike = [windows for windows in series if count > 1 and len(windows.workers) == count]
    if not alike:
        return CellTimes(cell_id, times, ())
    own = [_summarised([_per_step(windows, windows.workers[w]) for windows in alike]) for w in range(count)]
    last = _last_counts(alike, count)
    windows = sum(last)
    often = [special.bdtrc(times - 1, windows, ALWAYS) <= (1 - CONFIDENCE) / count for times in last]
    fastest = min(one.p50_s for one in own)
    alone = _alone(trials, count)
    workers = tuple(
        WorkerTimes(
            w, own[w], last[w] / windows, bool(often[w]), own[w].p50_s / fastest - 1 if fastest > 0 else 0.0, alone[w]
        )
        for w in range(count)
    )
    return CellTimes(cell_id, times, workers)


def _alone(trials: Sequence[TrialRecord], count: int) -> Sequence[Alone | None]:
    """Of each worker, where all of them timed it in some trial."""
    timed = [
        own for trial in trials if len(own := _rounds(trial)) == count and all(own) and len({len(r) for r in own}) == 1
    ]
    if not timed:
        return [None] * count
    seconds = [statistics.median(statistics.median(own[w]) for own in timed) for w in range(count)]
    fastest = min(range(count), key=lambda w: math.fsum(math.log(s) for own in timed for s in own[w]))
    confidence = 1 - (1 - CONFIDENCE) / math.comb(count, 2)
    return [
        Alone(seconds[w], log_mean(_log_ratios(timed, w, fastest), "paired t").interval(confidence))
        for w in range(count)
    ]


def _log_ratios(timed: Sequence[list[list[float]]], worker: int, base: int) -> list[float]:
    """ln(worker ÷ base): of each trial the median over its rounds, of one trial each round's."""
    by_round = [[math.log(a / b) for a, b in zip(own[worker], own[base], strict=True)] for own in timed]
    return [statistics.median(ratios) for ratios in by_round] if len(timed) > 1 else by_round[0]


def _rounds(trial: TrialRecord) -> list[list[float]]:
    """Each worker's rounds alone; empty ones where it has none."""
    members = [] if trial.cluster is None else trial.cluster.members
    return [member.compute_s for member in members if member.name.startswith("worker ")]


def _per_step(windows: Windows, seconds: Sequence[float]) -> list[float]:
    return sorted(time / windows.steps_per_window for time in seconds[windows.measured_from :])


def _last_counts(series: Sequence[Windows], count: int) -> list[int]:
    """In how many measured windows each worker was the last; a tie counts for the first of those."""
    last = [0] * count
    for windows in series:
        for place in range(windows.measured_from, len(windows.seconds)):
            last[max(range(count), key=lambda w: windows.workers[w][place])] += 1
    return last


def _summarised(trials: Sequence[Sequence[float]]) -> StepTimes:
    """From each trial's step times in ascending order."""
    p50, p95, p99 = (statistics.median(quantile(times, share) for times in trials) for share in (0.50, 0.95, 0.99))
    return StepTimes(
        smallest_s=min(times[0] for times in trials),
        p50_s=p50,
        p95_s=p95,
        p99_s=p99,
        largest_s=max(times[-1] for times in trials),
        windows=sum(map(len, trials)),
    )
