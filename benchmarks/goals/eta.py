"""How far off the time left is that a sweep shows: its error at 50, 60, 70, 80 and 90 % of the way.

Promise: within 20 % of the time that was really left, from half-way on.

    python benchmarks/goals/eta.py                       replays results/reference
    python benchmarks/goals/eta.py RUN_FOLDER ...        replays these runs
    python benchmarks/goals/eta.py --sweep [FLAGS]       measures a sweep now, listening

A replay rebuilds from a run's records when each trial began, what its phases and windows took and in which round, and
plays that to the same code that `sweep` shows. What a record does not hold (passing the turn, the import) is spread
over the rounds, so that each group ends when the next began.
"""

import datetime
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from common import scratch, table

from harness.plan import estimate
from harness.record.reading import Run, load_run
from harness.record.trial import TrialRecord
from harness.run.progress import Progress
from harness.spec.work import Cell

PLACES = (0.5, 0.6, 0.7, 0.8, 0.9)
GOAL = 0.20
Sample = tuple[float, float]
"""(when, seconds left as shown)."""


class Clock:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Listening(Progress):
    """Notes the time left before every round and whenever a trial ends, as a screen would show it."""

    def __init__(self) -> None:
        super().__init__()
        self.samples: list[Sample] = []

    def turn(self, cell: Cell, side: str | None = None) -> None:
        """Note."""
        self.samples.append((time.monotonic(), self.left_s()))

    def phase(self, cell: Cell, phase: str) -> None:
        """Learn, then note."""
        super().phase(cell, phase)
        self.turn(cell)

    def ended(self, record: TrialRecord) -> None:
        """Learn, then note."""
        super().ended(record)
        self.turn(record.cell)


def main() -> None:
    """Replay or measure, and print."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["--sweep"]:
        named = [measured(arguments[1:])]
    else:
        runs = [load_run(Path(name)) for name in arguments or ["results/reference"]]
        named = [(run.manifest.run_id, *replayed(run)) for run in runs]
    rows = [("run", "took", *(f"at {place:.0%}" for place in PLACES), "worst; samples within 20 %")]
    for name, samples, took in named:
        errors = [error_at(samples, took, place) for place in PLACES]
        late = [abs(error) for when, error in all_errors(samples, took) if 0.5 * took <= when <= 0.95 * took]
        inside = sum(error <= GOAL for error in late) / len(late)
        rows.append(
            (name, f"{took:.0f} s", *(f"{error:+.0%}" for error in errors), f"{max(late):.0%}; {inside:.0%} within")
        )
    table(rows)
    print(f"\npromised: within {GOAL:.0%} of the time really left, from half-way on (looked at up to 95 %)")


def all_errors(samples: Sequence[Sample], took: float) -> list[Sample]:
    """(when, error as a share of what was really left) of every sample."""
    return [(when, left / (took - when) - 1) for when, left in samples if when < took]


def error_at(samples: Sequence[Sample], took: float, place: float) -> float:
    """The error of what the screen showed at a share of the way."""
    return [error for when, error in all_errors(samples, took) if when <= place * took][-1]


def measured(flags: list[str]) -> tuple[str, list[Sample], float]:
    """A real sweep with `flags`: its id, what was shown, and how long it took."""
    from harness.cli._flags import read_values
    from harness.run.kinds.measure import measure_matrix
    from harness.spec.expand import expand
    from harness.spec.sweep import sweep_from
    from harness.spec.text import value_from
    from harness.trial.engines import catalogue_of

    given = dict(flag.removeprefix("--").split("=", 1) for flag in flags)
    values, source = read_values(None, {})
    values.update({key.replace("-", "_"): value_from(key.replace("-", "_"), text) for key, text in given.items()})
    sweep = sweep_from(values, source)
    heard = Listening()
    with scratch() as folder:
        path = measure_matrix(sweep, expand(sweep, catalogue_of()), Path(folder), ["goals"], heard)
        name = path.name
    begun = heard.samples[0][0]
    end = heard.samples[-1][0]
    return name, [(when - begun, left) for when, left in heard.samples], end - begun


def replayed(run: Run) -> tuple[list[Sample], float]:
    """What the screen would have shown during a recorded run, and how long that took."""
    clock = Clock()
    eta = Progress(clock)
    samples: list[Sample] = []
    groups = list(in_groups(run.trials))
    starts = [seconds(group[0]) for group in groups]
    ends = [*starts[1:], max(starts[-1] + length(groups[-1]), 0.0)]
    clock.now = starts[0]
    eta.plan(run.manifest, [])
    eta.started("run", len(run.trials), estimate(run.manifest.sweep, run.manifest.cells).seconds)

    def note() -> None:
        samples.append((clock.now - starts[0], eta.left_s()))

    for number, group in enumerate(groups):
        failed = {trial.cell_id for later in groups[:number] for trial in later if trial.status == "unsupported"}
        later = [[trial.cell for trial in trials] for trials in groups[number + 1 :]]
        if number == 0:  # what was left out of later blocks was still ahead then
            later = [[trial.cell for trial in group] for _ in groups[1:]]
        eta.group([trial.cell for trial in group if trial.cell_id not in failed], later)
        play_group(eta, clock, group, ends[number], note)
    return samples, ends[-1] - starts[0]


def play_group(eta: Progress, clock: Clock, group: Sequence[TrialRecord], end: float, note: Callable[[], None]) -> None:
    """Set-ups as they were begun, rounds of windows, exits."""
    for trial in group:
        clock.now = seconds(trial)
        eta.phase(trial.cell, "start")
        note()
        if trial.windows is None:
            clock.now += trial.phases.fixed_s
            eta.ended(trial)
            note()
    measured = [trial for trial in group if trial.windows is not None]
    if not measured:
        return
    clock.now += set_up(group[-1])
    count = max(len(trial.windows.seconds) for trial in measured if trial.windows)
    exits = sum(trial.phases.exit_s or 0.0 for trial in measured)
    busy = sum(sum(trial.windows.seconds) for trial in measured if trial.windows)
    stretched = (end - exits - clock.now) / busy  # passing the turn is in no record
    for number in range(count):
        eta.round(number, count, 2)
        for trial in measured:
            if trial.windows and number < len(trial.windows.seconds):
                note()
                clock.now += trial.windows.seconds[number] * stretched
                eta.window(trial.cell, trial.windows.seconds[number], 1)
    for trial in measured:
        eta.phase(trial.cell, "exit")
        clock.now += trial.phases.exit_s or 0.0
        eta.ended(trial)
        note()


def in_groups(trials: Sequence[TrialRecord]) -> Iterator[list[TrialRecord]]:
    """Trials that were alive together, in the order of their start."""
    names = dict.fromkeys(trial.group for trial in sorted(trials, key=seconds))
    for name in names:
        yield sorted((trial for trial in trials if trial.group == name), key=lambda trial: trial.order)


def set_up(trial: TrialRecord) -> float:
    """Seconds from a trial's start to its first turn."""
    before = sum(trial.windows.seconds[: trial.windows.measured_from]) if trial.windows else 0.0
    pilot = max(0.0, (trial.phases.warmup_s or 0.0) - before)
    return trial.phases.fixed_s - (trial.phases.exit_s or 0.0) + pilot


def length(group: Sequence[TrialRecord]) -> float:
    """Seconds from a group's start to its end, by its records."""
    last = max(group, key=seconds)
    windows = sum(sum(trial.windows.seconds) for trial in group if trial.windows)
    exits = sum(trial.phases.exit_s or 0.0 for trial in group)
    return seconds(last) - seconds(group[0]) + set_up(last) + windows + exits


def seconds(trial: TrialRecord) -> float:
    """When a trial started."""
    return datetime.datetime.fromisoformat(trial.started_utc).timestamp()


if __name__ == "__main__":
    main()
