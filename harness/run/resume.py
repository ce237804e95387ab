"""Going on with a run that was begun earlier, by the name of its kind."""

from pathlib import Path
from typing import Any

from harness.run import runner
from harness.run.kinds import run_kinds


def resume(name: str, path: Path, listener: Any) -> None:
    """Do what the run at `path` still misses, as `runner.resume_as` of the kind with that name does."""
    runner.resume_as(run_kinds()[name], path, listener)
