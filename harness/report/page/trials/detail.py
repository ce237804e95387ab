"""What opens when a trial is clicked: its windows and the texts that only it has, up to a size.

The windows of 100,000 trials would make a page of 30 MB. So there is a budget. Trials that did not end well come
first, then block after block; the page says how many it holds and where the others are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.record.trial import TrialRecord, Windows
from harness.report.page.trials.encoding import packed
from harness.visible import printable

BUDGET_BYTES = 1_500_000
"""Of all details on the page, as they stand in it."""
PER_CHUNK = 100
"""Trials that are inflated together when one of them is opened."""
GRAIN = 1000
"""Window times are kept in thousandths of the trial's median window."""
MOST_LETTERS = 4000
"""Of one text of evidence."""
_SAMPLE = 400


@dataclass(frozen=True)
class Details:
    """Details of some trials in the order recorded, `PER_CHUNK` to a chunk."""

    there: tuple[bool, ...]
    """Of each trial whether it has its details on the page."""
    chunks: tuple[str, ...]

    @property
    def count(self) -> int:
        """Trials with details."""
        return sum(self.there)


def details_of(trials: Sequence[TrialRecord], budget: int = BUDGET_BYTES) -> Details:
    """As many as fit into `budget` bytes, the trials to look at first. The same trials give the same choice."""
    order = sorted(range(len(trials)), key=lambda index: (not _telling(trials[index]), trials[index].block, index))
    sample = order[:: max(1, len(order) // _SAMPLE)]
    each = len(packed([_detail(trials[index]) for index in sample])) / max(1, len(sample))
    kept = sorted(order[: int(budget / each)] if each * len(order) > budget else order)
    chunks = []
    for start in range(0, len(kept), PER_CHUNK):
        chunks.append(packed([_detail(trials[index]) for index in kept[start : start + PER_CHUNK]]))
    chosen = set(kept)
    return Details(tuple(index in chosen for index in range(len(trials))), tuple(chunks))


def _telling(trial: TrialRecord) -> bool:
    return not trial.measured or trial.windows is None


def _detail(trial: TrialRecord) -> dict[str, Any]:
    """Short keys, explained in trials.js: windows w, evidence e, trace t, remarks and evidence of the gate d."""
    detail: dict[str, Any] = {}
    if trial.windows is not None and trial.windows.seconds:
        detail["w"] = _windows(trial.windows)
    if trial.evidence:
        detail["e"] = long_text(trial.evidence)
    if trial.checks.detail:
        detail["d"] = {long_text(name): long_text(text) for name, text in trial.checks.detail.items()}
    if trial.trace is not None:
        where = trial.trace.path or f"none: {trial.trace.reason}"
        detail["t"] = long_text(f"{where} in the run's folder" if trial.trace.path else where)
    if trial.cluster is not None:
        detail["m"] = [
            [long_text(text or "") for text in (part.name, part.phase, part.reason)] for part in trial.cluster.members
        ]
    return detail


def _windows(windows: Windows) -> dict[str, Any]:
    """Grains of the median window u: seconds s, processor seconds c, workers k; K steps, m first measured, r rounds."""
    middle = sorted(windows.seconds)[len(windows.seconds) // 2]
    unit = float(f"{middle / GRAIN:.6g}")

    def grains(times: Sequence[float]) -> list[int]:
        return [round(time / unit) for time in times]

    rounds = windows.rounds
    in_a_row = rounds == list(range(rounds[0], rounds[0] + len(rounds)))
    found = {
        "u": unit,
        "s": grains(windows.seconds),
        "c": grains(windows.cpu_seconds),
        "K": windows.steps_per_window,
        "m": windows.measured_from,
        "r": rounds[0] if in_a_row else rounds,
    }
    return found | ({"k": [grains(worker) for worker in windows.workers]} if windows.workers else {})


def long_text(text: str) -> str:
    """Printable, and cut after `MOST_LETTERS`: it says how much more the record has."""
    shown = printable(text[:MOST_LETTERS])
    return (
        shown if len(text) <= MOST_LETTERS else f"{shown} … ({len(text) - MOST_LETTERS:,} more letters in the record)"
    )
