"""Each worker's own windows within a cell: whether one of them is what the others wait for."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.analysis.steady import quantile
from harness.record.trial import TrialRecord, Windows

STRAGGLES = 0.02
"""A worker whose median step is this much longer than the fastest's is called a straggler: the agreement that the
steady state asks of two groups of windows, so that less is no difference between windows either."""
ALWAYS = 0.5
"""… and it must have been the last in more than this share of the windows."""


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
class WorkerTimes:
    """One worker of a cell."""

    worker: int
    times: StepTimes
    last_share: float
    """The share of windows in which it was the last to finish."""
    behind: float
    """Its median step time ÷ the fastest worker's, less 1."""

    @property
    def straggles(self) -> bool:
        """Whether the others wait for it, window after window."""
        return self.behind > STRAGGLES and self.last_share > ALWAYS


@dataclass(frozen=True)
class CellTimes:
    """A cell's step times, and each worker's where it has several."""

    cell_id: str
    times: StepTimes
    workers: tuple[WorkerTimes, ...]


def step_times(trials: Iterable[TrialRecord]) -> dict[str, CellTimes]:
    """By cell id, of the good trials that measured something; the first trial's number of workers counts."""
    by_cell: dict[str, list[Windows]] = {}
    for trial in trials:
        windows = trial.windows
        if trial.status == "ok" and windows is not None and windows.measured_from < len(windows.seconds):
            by_cell.setdefault(trial.cell_id, []).append(windows)
    return {cell_id: _cell_times(cell_id, series) for cell_id, series in by_cell.items()}


def _cell_times(cell_id: str, series: Sequence[Windows]) -> CellTimes:
    times = _summarised([_per_step(windows, windows.seconds) for windows in series])
    count = len(series[0].workers)
    alike = [windows for windows in series if count > 1 and len(windows.workers) == count]
    if not alike:
        return CellTimes(cell_id, times, ())
    own = [_summarised([_per_step(windows, windows.workers[w]) for windows in alike]) for w in range(count)]
    last = _last_counts(alike, count)
    fastest = min(one.p50_s for one in own)
    workers = tuple(
        WorkerTimes(w, own[w], last[w] / sum(last), own[w].p50_s / fastest - 1 if fastest > 0 else 0.0)
        for w in range(count)
    )
    return CellTimes(cell_id, times, workers)


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
