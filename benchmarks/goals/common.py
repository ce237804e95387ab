"""What the goal scripts share."""

import contextlib
import math
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from scipy import stats

from harness.protocol.messages import Request
from harness.run.interrupts import Interrupts
from harness.run.process.zygote import Zygote
from harness.run.request import default_data_dir
from harness.run.turns.live import LiveTrial, Slot
from harness.spec import Cell, Sweep, expand
from harness.trial.engines import catalogue_of

__all__ = [
    "CLUSTERS",
    "cell",
    "data_folder",
    "interval",
    "live",
    "ports_of",
    "prepared_zygote",
    "print_ratio",
    "scratch",
    "table",
]


def cell(strategy: str, replicas: int, batch_size: int = 128, **keys: str | int) -> Cell:
    """One cell of the default workload."""
    sweep = Sweep(
        strategy=[strategy], replicas=[replicas], batch_size=[batch_size], **{k: [v] for k, v in keys.items()}
    )  # type: ignore[arg-type]
    matrix = expand(sweep, catalogue_of())
    return next(c for c in matrix.cells if c.strategy == strategy and c.replicas == replicas)


CLUSTERS = (
    cell("multi_worker_mirrored", 1, workers=2),
    cell("parameter_server", 1, workers=2, ps=1),
)
"""The two kinds of cluster that the promises speak of."""


def ports_of(trial: LiveTrial) -> list[int]:
    """The ports that the trial's launcher took for its processes."""
    addresses = trial.child.merged.processes[0].member.cluster
    return [int(address.rpartition(":")[2]) for task in addresses.values() for address in task]


@contextlib.contextmanager
def prepared_zygote(folder: Path | None = None) -> Iterator[Zygote]:
    """A zygote in a working folder of its own or in this process's, with the digits prepared."""
    with Zygote(folder=folder) as zygote:
        task = live(zygote, cell("none", 1), 0, 0, task="prepare")
        task.start()
        task.finish_task()
        yield zygote


def live(
    zygote: Zygote,
    measured: Cell,
    block: int,
    order: int,
    window_s: float = 0.1,
    task: str = "trial",
    isolate: bool = True,
) -> LiveTrial:
    """A trial of `measured`, not yet started, with the thread pools that a sweep would give it."""
    request = Request(
        cell=measured,
        seed=1,
        data_dir=str(default_data_dir()),
        window_s=window_s,
        intra_op_threads=1,
        inter_op_threads=max(2, 2 * measured.replicas),
        task=task,  # type: ignore[arg-type]
        isolate=isolate,
    )
    slot = Slot("goals", block, f"b{block}", order, 1, "turns")
    return LiveTrial(measured, slot, zygote, request, 120.0, Interrupts())


def interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float, float, float]:
    """(mean, low, high, standard deviation) by Student's t."""
    n = len(values)
    mean = math.fsum(values) / n
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))
    half = float(stats.t.ppf(0.5 + confidence / 2, n - 1)) * deviation / math.sqrt(n)
    return mean, mean - half, mean + half, deviation


def table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows as aligned columns."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def data_folder() -> Path:
    """Where the prepared digits lie, for a program that reads them without the harness."""
    return next(default_data_dir().rglob("dataset_info.json")).parent


def print_ratio(logs: Sequence[float], goal: float) -> None:
    """Print the ratio of step times, harness to hand-written, from its logarithm in every block."""
    mean, low, high, deviation = interval(logs)
    table(
        [
            ("harness ÷ bare, time a step", "95 % interval", "sd of a block", "blocks"),
            (
                f"{math.exp(mean):.4f}",
                f"[{math.exp(low):.4f}, {math.exp(high):.4f}]",
                f"{deviation:.2%}",
                str(len(logs)),
            ),
        ]
    )
    print(f"\npromised: within {goal:.0%} of 1")


def scratch() -> tempfile.TemporaryDirectory[str]:
    """A folder for runs that nobody will read again."""
    return tempfile.TemporaryDirectory(prefix="harness-goals-")
