"""Horovod's cells, measured."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.record.reading import Run
from harness.record.trial import TrialRecord
from tests.engines.sweeps import swept

COMMON: dict[str, Any] = {"trials": 1, "windows": 5, "window": 0.01, "max_warmup": 0, "strategy": ["data_parallel"]}
MLP = {"model": ["mlp"], "data": ["synthetic"], "batch_size": [8], "optimizer": ["momentum"], "intra_op_threads": [1]}
TENSORS = 6
"""Weights and biases of the perceptron."""
WRAPPERS = ("optimizer", "fit")


def measured(
    python: str, folder: Path, engine: str, forked: bool = True, under: Sequence[str] = (), **keys: Any
) -> Run:
    """As in a sweep but for the base cases that it adds: here nothing is divided by them."""
    asked = {**COMMON, "engine": engine, **keys, "engine_python": f"horovod={python}"}
    return swept(asked, folder, forked=forked, under=under)


def of(run: Run, **keys: Any) -> TrialRecord:
    [found] = [t for t in run.trials if all(getattr(t.cell, key) == value for key, value in keys.items())]
    return found
