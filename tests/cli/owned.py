"""What sweeps with models and data of the user's own are asked, and their trials."""

from pathlib import Path

from harness.record import TrialRecord
from tests.cli.real import SMALL, only_run

THREADS = "--intra-op-threads=2"
"""As many as two cores: there a base case on the whole machine is one on the cell's threads."""
ASKED = [*(flag for flag in SMALL if not flag.startswith(("--model", "--data", "--optimizer"))), THREADS]
SPREAD = ("--strategy=none,mirrored,multi_worker_mirrored", "--workers=1,2", "--loop=custom,fit")
ALIKE = (
    "strategy=mirrored replicas=1; strategy=multi_worker_mirrored workers=1; strategy=multi_worker_mirrored loop=fit"
)
"""What is left out: one replica is as none, one process of several as a mirrored one, and workers have one loop."""


def grouped(folder: Path, key: str) -> dict[str, list[TrialRecord]]:
    """The trials of the run in a folder, by the value of a key."""
    found: dict[str, list[TrialRecord]] = {}
    for trial in only_run(folder / "results").trials:
        found.setdefault(trial.cell.get(key), []).append(trial)
    return found
