"""A recorded run played to a listener, as a sweep would tell it."""

from collections.abc import Callable, Sequence

from harness.record.manifest import RunManifest
from harness.record.trial import TrialRecord
from harness.run.progress import Progress


def unwatched(_: str) -> None:
    """Look at nothing."""


def play(
    progress: Progress, manifest: RunManifest, trials: Sequence[TrialRecord], look: Callable[[str], None] = unwatched
) -> None:
    """Tell `progress` every event of the run; `look` is called at places with their name, before the end."""
    progress.plan(manifest, [])
    progress.started(manifest.run_id, len(trials), 60.0)
    groups = [[t for t in trials if t.group == name] for name in dict.fromkeys(t.group for t in trials)]
    for number, group in enumerate(groups):
        progress.group([t.cell for t in group], [[t.cell for t in later] for later in groups[number + 1 :]])
        progress.block(number, len(groups), len(group))
        for trial in group:
            for phase in ("start", "build", "first_step", "check", "warmup"):
                progress.phase(trial.cell, phase)
            look(f"{number} set-up")
            if trial.windows is None:
                progress.ended(trial)
        measured = [t for t in group if t.windows is not None]
        rounds = max((len(t.windows.seconds) for t in measured if t.windows), default=0)
        for turn in range(rounds):
            progress.round(turn, rounds, len(measured))
            for trial in measured:
                assert trial.windows is not None
                progress.turn(trial.cell)
                look(f"{number} turn {turn}")
                progress.window(trial.cell, trial.windows.seconds[turn], trial.windows.steps_per_window)
        for trial in measured:
            progress.phase(trial.cell, "exit")
            progress.ended(trial)
        look(f"{number} ended")
    look("over")
    progress.finished()
