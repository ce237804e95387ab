"""What GPUs did while a cell's windows were timed: whether they were slowed down, and their energy."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.record.trial import TrialRecord


@dataclass(frozen=True)
class GpuWindows:
    """The measured windows of a cell in which its GPUs were read."""

    read: int
    slowed: int
    """Windows in which the clock of some GPU was held down."""
    reasons: tuple[str, ...]
    """Why, in words."""
    joules_each: float | None
    """Of an example, or of what else the work is counted in: all GPUs' energy over the windows in which each told its
    own ÷ the work of those; None where none did."""

    @property
    def words(self) -> str:
        """`12 of 50 windows (too hot)`."""
        why = f" ({', '.join(self.reasons)})" if self.reasons else ""
        return f"{self.slowed} of {self.read} windows{why}"


@dataclass(frozen=True)
class ClockReading:
    """A card's clock in one window."""

    card: str
    turn: int
    """From 0: the turns of a run in their order. Trials that took turns have some in common, each in a window of its
    own."""
    cell_id: str
    sm_clock_mhz: int
    slowed: str
    """Why it was held down, in words; empty where it was not, or nothing was told."""


def clock_readings(trials: Sequence[TrialRecord]) -> list[ClockReading]:
    """Every reading of a clock, warm-up included, by card and turn. Turns in which no clock was read have none."""
    found = [
        (card.id, (trial.block, trial.group, trial.windows.rounds[index]), trial.cell_id, clock, held)
        for trial in trials
        if trial.windows is not None
        for card in trial.gpus
        for index, (clock, held) in enumerate(
            zip(card.sm_clock_mhz, card.slowed or [None] * len(card.sm_clock_mhz), strict=True)
        )
        if clock is not None
    ]
    turns = {turn: number for number, turn in enumerate(sorted({turn for _, turn, *_ in found}))}
    found.sort(key=lambda one: (one[0], turns[one[1]]))
    return [ClockReading(card, turns[turn], cell_id, clock, held or "") for card, turn, cell_id, clock, held in found]


@dataclass(frozen=True)
class _Window:
    """One window of one trial, over all its GPUs; None is not known."""

    slowed: frozenset[str] | None
    joules: float | None
    work: float


def gpu_windows(trials: Sequence[TrialRecord]) -> GpuWindows | None:
    """Of trials of one cell; None where no GPU was read."""
    windows = [window for trial in trials for window in _windows(trial)]
    reasons = [window.slowed for window in windows if window.slowed is not None]
    metered = [(window.joules, window.work) for window in windows if window.joules is not None]
    if not reasons and not metered:
        return None
    return GpuWindows(
        read=len(reasons),
        slowed=sum(map(bool, reasons)),
        reasons=tuple(sorted(set[str]().union(*reasons))),
        joules_each=math.fsum(j for j, _ in metered) / math.fsum(w for _, w in metered) if metered else None,
    )


def _windows(trial: TrialRecord) -> Iterator[_Window]:
    if trial.windows is None or not trial.gpus:
        return
    for index in range(trial.windows.measured_from, len(trial.windows.seconds)):
        held = [gpu.slowed[index] for gpu in trial.gpus if gpu.slowed]
        words = [text for text in held if text is not None]
        joules = [gpu.energy_j[index] if gpu.energy_j else None for gpu in trial.gpus]
        known = [value for value in joules if value is not None]
        yield _Window(
            slowed=frozenset(word for text in words if text for word in text.split(", ")) if words else None,
            joules=math.fsum(known) if len(known) == len(joules) else None,
            work=trial.windows.steps_per_window * trial.cell.work.amount,
        )
