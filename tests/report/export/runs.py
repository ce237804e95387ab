"""Runs that the tests of exporters share: the synthetic one, and the reference run of the repository."""

import shutil
from pathlib import Path
from types import SimpleNamespace

from harness.record import Run, load_run
from tests.synthetic import make_run

ROOT = Path(__file__).parents[3]
REFERENCE = ROOT / "results" / "reference"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def synthetic(**changes: object) -> SimpleNamespace:
    """A small run with every status, measured at `COMMIT`."""
    manifest, trials = make_run(**changes)  # type: ignore[arg-type]
    facts = {**manifest.machine.facts, "git.revision": COMMIT, "machine.id": "abc123", "python.version": "3.11.7"}
    machine = manifest.machine.model_copy(update={"facts": facts})
    return SimpleNamespace(
        manifest=manifest.model_copy(update={"machine": machine}),
        trials=trials,
        rank_unproved=False,
        results=Path("nowhere"),
    )


def reference() -> Run:
    """The run that is kept in the repository."""
    return load_run(REFERENCE)


def results_with_reference(folder: Path) -> Path:
    """A results folder that holds the reference run alone."""
    shutil.copytree(REFERENCE, folder / "results" / "reference")
    return folder / "results"
