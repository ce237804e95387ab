"""What engines are held against each other by: names, what is told of each, and the processors that they keep busy."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from harness.analysis import CellSummary, WorkloadSummary
from harness.analysis.likeness import engine_that_ran
from harness.report.words.text import listed


@dataclass(frozen=True)
class ToldOf:
    """What a reader of figures is told of an engine that its records do not say."""

    uncompiled: str = ""
    """Of one that runs op after op, a sentence beside those that compile, which stand in its braces."""
    does_tf32: str = ""
    """Where it computes float32 as TF32, as TensorFlow does."""
    tf32: str = ""
    """Its own variable for TF32, behind that of NVIDIA."""


_TOLD_OF: Mapping[str, ToldOf] = {
    "jax": ToldOf(does_tf32="JAX does", tf32=", and JAX_DEFAULT_MATMUL_PRECISION=float32 to JAX"),
    "torch": ToldOf(
        "PyTorch ran op after op beside {}: what torch.compile would give was not measured.",
        "PyTorch does in convolutions",
        "; TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1 has PyTorch take it in products, too",
    ),
}


def told_of(engine: str) -> ToldOf:
    """What is told of an engine beside others; nothing of one that is not in the table."""
    return _TOLD_OF.get(engine, ToldOf())


def engine_name(cell: CellSummary) -> str:
    """What trained a cell."""
    return engine_that_ran(cell.trials)


def engines_words(work: WorkloadSummary) -> str:
    """`engine tensorflow`, or all that trained its cells."""
    names = list(dict.fromkeys(map(engine_name, work.cells)))
    return f"{'engine' if len(names) == 1 else 'engines'} {listed(names)}"


def processors_of_engines(work: WorkloadSummary) -> dict[str, float]:
    """By engine how many processors its cells without a strategy keep busy, the median; of processors alone, for
    beside GPUs a host's say nothing of what was computed. One that has the whole machine is not among them."""
    found: dict[str, list[float]] = {}
    for cell in work.ranking:
        trials = cell.trials
        alone = trials.cell.is_base and trials.device.on_processors and not trials.all_cores
        if alone and cell.measured is not None and cell.measured.processors is not None:
            found.setdefault(engine_name(cell), []).append(cell.measured.processors)
    return {engine: statistics.median(each) for engine, each in found.items()}
