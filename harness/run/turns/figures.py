"""A trial's figures from its raw windows (`docs/protocol.md#estimators`)."""

import math
from typing import TYPE_CHECKING

from harness.record.trial import Windows
from harness.spec.cell import Cell

if TYPE_CHECKING:
    from harness.run.turns.live import LiveTrial


def windows_of(trial: "LiveTrial") -> Windows | None:
    """Every window of the trial, raw; None where it took none."""
    taken = trial.windows
    if not taken:
        return None
    return Windows(
        steps_per_window=taken[0].steps,
        seconds=[window.seconds for window in taken],
        cpu_seconds=[window.cpu_seconds for window in taken],
        rounds=[window.round for window in taken],
        measured_from=_measured_from(trial),
        steady=trial.steady,
        sync_seconds=trial.sync_seconds,
        waiting_cpu_seconds=math.fsum(window.waiting_cpu_seconds for window in taken),
        workers=[list(times) for times in zip(*(window.workers for window in taken), strict=True)],
    )


def figures_of(cell: Cell, windows: Windows) -> dict[str, float]:
    """τ = Σ window time / Σ steps, throughput G/τ, and processor seconds per example."""
    seconds = windows.seconds[windows.measured_from :]
    steps = windows.steps_per_window * len(seconds)
    step_time = math.fsum(seconds) / steps
    cpu = math.fsum(windows.cpu_seconds[windows.measured_from :])
    return {
        "step_time_s": step_time,
        "throughput_examples_per_s": cell.work.rate(step_time),
        "cpu_seconds_per_example": cpu / (steps * cell.work.amount),
    }


def _measured_from(trial: "LiveTrial") -> int:
    """Index of the first measured window; a trial that ended before the steady state has none."""
    taken = len(trial.windows)
    return taken if trial.measured_from is None else min(trial.measured_from, taken)


def phases_of(trial: "LiveTrial", clocked: dict[str, float]) -> dict[str, float]:
    """Seconds of each phase: set-up as the parent clocked it, the rest from the windows.

    The pilot is warm-up. Waiting is what the trial spent blocked between its windows.
    """
    phases = {f"{name}_s": seconds for name, seconds in clocked.items()}
    if not trial.windows:
        return phases
    first = _measured_from(trial)
    before = math.fsum(window.seconds for window in trial.windows[:first])
    phases["warmup_s"] = phases.get("warmup_s", 0.0) + before
    phases["steady_s"] = math.fsum(window.seconds for window in trial.windows[first:])
    phases["waiting_s"] = math.fsum(window.waiting_seconds for window in trial.windows)
    return phases
