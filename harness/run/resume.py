"""Going on with a run that was begun earlier, by the name of its kind."""

from pathlib import Path

from harness.run import runner
from harness.run.kinds import run_kinds
from harness.run.progress import Listener


def resume(name: str, path: Path, listener: Listener, retry: bool = False) -> None:
    """Do what the run at `path` still misses, as `runner.resume_as` of the kind with that name does."""
    runner.resume_as(run_kinds()[name], path, listener, retry)
