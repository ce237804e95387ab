"""How long a sweep will take, for `--dry-run` and for the first ETA."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from harness.spec.calls import name_of
from harness.spec.cell import TrainingCell
from harness.spec.sweep import Sweep
from harness.spec.work import Cell

IMPORT_S = 6.0
"""Importing TensorFlow (4.5–10 s on two cores), once, in the zygote, or in each trial where that takes the device."""
FIXED_S = 0.7
FIXED_PER_REPLICA_S = 0.2
"""Fixed cost of a trial: medians of `benchmarks/goals/fixed_cost.py` on two cores."""
TIMES: Mapping[str, float] = MappingProxyType(
    {"alexnet": 2, "bert": 5, "gpt": 3.5, "lenet": 2, "resnet20": 5.5, "transformer": 3}
)
"""How many times that of `mnist_cnn` building and proving a larger model costs (`results/workloads`, two cores)."""
WINDOW_OVERHEAD = 1.1
"""How long windows last, as a share of what was asked for (`harness/run/turns/steps.py`)."""
PILOT_WINDOWS = 2
"""Windows that the pilot before them costs. Where batches wait when it begins it takes up to 2 s more, which nobody
knows before."""
ANY_SIZE = ":"
"""Names of models have it whose size nobody knows before one is built: `keras:ResNet50`, `package.module:function`."""


@dataclass(frozen=True)
class Estimate:
    """Seconds, and the trials that they pay for."""

    seconds: float
    trials: int
    unknown: str = ""
    """What takes time besides, and how much nobody knows before; empty where there is no such thing."""


def estimate(sweep: Sweep, cells: Sequence[Cell], imports_in_trials: bool = False) -> Estimate:
    """A rough figure: fixed cost plus windows, were every cell supported here; on processors, since what it takes to
    start trials on accelerators was never measured."""
    fixed = sum(map(fixed_s, cells))
    rounds = PILOT_WINDOWS + sweep.max_warmup + sweep.windows
    windows = len(cells) * rounds * sweep.window * WINDOW_OVERHEAD
    trials = sweep.trials * len(cells)
    seconds = IMPORT_S * (trials if imports_in_trials else 1) + sweep.trials * (fixed + windows)
    larger = any(ANY_SIZE in cell.subject for cell in cells)
    return Estimate(seconds, trials, "building and proving models larger than the built-in ones" if larger else "")


def fixed_s(cell: Cell) -> float:
    """Fixed cost of a trial of a cell, seconds; of a model with parameters as of the one without."""
    times = TIMES.get(name_of(cell.model), 1.0) if isinstance(cell, TrainingCell) else 1.0
    return (FIXED_S + FIXED_PER_REPLICA_S * cell.replicas_in_sync) * times
