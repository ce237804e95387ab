"""A trial's figures from its raw windows (`docs/protocol.md#estimators`)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

from harness.protocol.messages import WindowTimes
from harness.record.gpus import GpuRecord
from harness.record.trial import Windows, rates
from harness.run.turns.cards import CardWindow
from harness.spec.work import Cell

_TOLD = tuple(one.name for one in fields(CardWindow))


@dataclass
class Taken:
    """What a live trial has taken so far."""

    windows: list[WindowTimes] = field(default_factory=list)
    measured_from: int | None = None
    """The round from which its windows are measured; None during warm-up."""
    sync_seconds: float = 0.0
    after_own: list[int] = field(default_factory=list)
    """Indices of windows before which no other trial had a turn."""
    cards: list[Mapping[str, CardWindow]] = field(default_factory=list)
    """What each GPU of the machine did in each window, by its id; empty where none was watched."""
    process_memory: dict[str, int] = field(default_factory=dict)
    """Bytes that its processes held of each GPU after the last window."""

    @property
    def first_measured(self) -> int:
        """Index of the first measured window; a trial that ended in its warm-up has none."""
        taken = len(self.windows)
        return taken if self.measured_from is None else min(self.measured_from, taken)


def windows_of(taken: Taken) -> Windows | None:
    """Every window, raw; None where there is none."""
    windows = taken.windows
    if not windows:
        return None
    return Windows(
        steps_per_window=windows[0].steps,
        seconds=[window.seconds for window in windows],
        cpu_seconds=[window.cpu_seconds for window in windows],
        rounds=[window.round for window in windows],
        measured_from=taken.first_measured,
        sync_seconds=taken.sync_seconds,
        untimed_steps=windows[-1].untimed_steps,
        after_own=taken.after_own,
        waiting_cpu_seconds=math.fsum(window.waiting_cpu_seconds for window in windows),
        system_seconds=[window.system_seconds for window in windows],
        page_faults=[window.page_faults for window in windows],
        workers=[list(times) for times in zip(*(window.workers for window in windows), strict=True)],
    )


def gpus_of(taken: Taken, ids: Sequence[str]) -> list[GpuRecord]:
    """What the cards `ids` did in each window. Of cards that nobody here has read, as another host's, nothing."""
    missing = len(taken.windows) - len(taken.cards)  # a window that came in while the trial was interrupted
    windows: list[Mapping[str, CardWindow]] = [*taken.cards, *({} for _ in range(missing))]
    records = []
    for card in ids:
        of_card = [window.get(card, CardWindow()) for window in windows]
        lists = {name: [getattr(window, name) for window in of_card] for name in _TOLD}
        told = {name: values for name, values in lists.items() if any(value is not None for value in values)}
        if told:
            records.append(GpuRecord(id=card, process_memory_bytes=taken.process_memory.get(card), **told))
    return records


def figures_of(cell: Cell, windows: Windows) -> dict[str, float]:
    """τ = Σ window time / Σ steps, throughput A/τ with A what a step does, and processor seconds of each."""
    seconds = windows.seconds[windows.measured_from :]
    steps = windows.steps_per_window * len(seconds)
    step_time = math.fsum(seconds) / steps
    return {"step_time_s": step_time, **rates(cell, step_time, windows.cpu_s_per_step or 0.0)}


def phases_of(taken: Taken, clocked: Mapping[str, float]) -> dict[str, float]:
    """Seconds of each phase: set-up as the parent clocked it, the rest from the windows.

    The pilot is warm-up. Waiting is what the trial spent blocked between its windows.
    """
    phases = {f"{name}_s": seconds for name, seconds in clocked.items()}
    if not taken.windows:
        return phases
    first = taken.first_measured
    before = math.fsum(window.seconds for window in taken.windows[:first])
    phases["warmup_s"] = phases.get("warmup_s", 0.0) + before
    phases["steady_s"] = math.fsum(window.seconds for window in taken.windows[first:])
    if proving := math.fsum(window.check_seconds for window in taken.windows):
        phases["check_s"] = phases.get("check_s", 0.0) + proving
    phases["waiting_s"] = math.fsum(window.waiting_seconds for window in taken.windows)
    return phases
