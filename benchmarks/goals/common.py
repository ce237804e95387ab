"""What the goal scripts share."""

import contextlib
import json
import math
import random
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from scipy import stats

from harness.files import default_data_dir
from harness.protocol.messages import Request
from harness.record.explain import ALONE, ExplainPlan, FamilyRecord
from harness.record.manifest import PlanRecord
from harness.record.packed import read_records
from harness.record.reading import load_run
from harness.record.store import RunStore
from harness.record.trial import TrialRecord
from harness.run.interrupts import Interrupts
from harness.run.kinds.arms import start_order
from harness.run.kinds.explain import ExplainRun, alone_of
from harness.run.process.startup import Startup
from harness.run.process.zygote import Zygote
from harness.run.progress import Progress, Quiet
from harness.run.runner import begin, new_manifest
from harness.run.turns.live import LiveTrial, Slot
from harness.spec import Cell, Sweep, expand
from harness.spec.cell import TrainingCell
from harness.trial.engines import catalogue_of

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # tests/ and benchmarks/, which scripts name modules of, are no installed packages

__all__ = [
    "BLOCKS",
    "CLUSTERS",
    "ROOT",
    "Program",
    "beside",
    "cell",
    "commit",
    "data_folder",
    "free_ports",
    "interval",
    "live",
    "markdown",
    "ports_of",
    "prepared_zygote",
    "print_ratio",
    "read",
    "scratch",
    "table",
    "trials_of_arms",
]


def cell(strategy: str, replicas: int, batch_size: int = 128, engine: str = "tensorflow", **keys: str | int) -> Cell:
    """One cell of the default workload."""
    sweep = Sweep(
        engine=[engine],
        strategy=[strategy],
        replicas=[replicas],
        batch_size=[batch_size],
        **{k: [v] for k, v in keys.items()},  # type: ignore[arg-type]
    )
    matrix = expand(sweep, catalogue_of(engine))
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
    with Zygote(Startup(folder=folder)) as zygote:
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
        inter_op_threads=max(2, 2 * measured.replicas) if zygote.engine == "tensorflow" else 0,
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


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Rows, the heads first, as a table of README.md."""
    heads, *rest = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([heads, "| --- " * len(rows[0]) + "|", *rest])


BLOCKS = 8
"""Of fresh processes on both sides."""
ROUNDS = 20
WARMUP_ROUNDS = 5


class Program:
    """A hand-written program's processes: each says `ready`, reads a number of steps, and prints their seconds.

    They are stopped while it is the harness's turn, whose trials rest in theirs: Horovod's threads of a program that
    only waits take up to two thirds of a core.
    """

    def __init__(self, commands: Sequence[Sequence[str]], environment: Mapping[str, str] | None = None) -> None:
        self._processes = [
            subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=environment,
            )
            for command in commands
        ]
        assert self._answers() == ["ready"] * len(commands), "the hand-written program did not start"
        self._signal(signal.SIGSTOP)

    def window(self, steps: int) -> float:
        """Seconds of so many steps, the slowest process's."""
        self._signal(signal.SIGCONT)
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(f"{steps}\n")
            process.stdin.flush()
        slowest = max(map(float, self._answers()))
        self._signal(signal.SIGSTOP)
        return slowest

    def close(self) -> None:
        """End all at once: one that ends alone is a failure to the others."""
        for process in self._processes:
            process.kill()
            process.wait()

    def _signal(self, number: int) -> None:
        for process in self._processes:
            process.send_signal(number)

    def _answers(self) -> list[str]:
        """A line of each process, less what Gloo says there under JAX."""
        said = (process.stdout for process in self._processes if process.stdout is not None)
        return [next((line.strip() for line in lines if not line.startswith("[Gloo]")), "") for lines in said]


def beside(trial: LiveTrial, program: Program, block: int) -> float:
    """The log ratio of their step times, harness to hand-written, over the rounds after warm-up; both are ended."""
    trial.start()
    trial.set_up()
    trial.take_turn(0)
    steps = trial.taken.windows[0].steps
    seconds = {"harness": 0.0, "bare": 0.0}
    trial.measure_from(1)
    order = random.Random(block)
    for number in range(1, ROUNDS + WARMUP_ROUNDS + 1):
        for side in order.sample(sorted(seconds), 2):
            if side == "harness":
                trial.take_turn(number)
                taken = trial.taken.windows[-1].seconds
            else:
                taken = program.window(steps)
            if number > WARMUP_ROUNDS:
                seconds[side] += taken
    trial.finish()
    assert trial.status == "ok", f"{trial.status}: {trial.reason}"
    program.close()
    return math.log(seconds["harness"] / seconds["bare"])


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago, as a hand-written program takes them."""
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(server.getsockname()[1]) for server in taken]
    for server in taken:
        server.close()
    return ports


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


def trials_of_arms(
    asked: TrainingCell,
    arms: Sequence[str],
    blocks: int,
    seed: int,
    settings: Mapping[str, Any],
    driver: Callable[[RunStore, Progress], ExplainRun] = ExplainRun,
    beside: Sequence[Cell] = (),
) -> Sequence[TrialRecord]:
    """The trials of a run of `explain` in which one cell has these arms alone; the run is not kept.

    `beside` are other cells of which `driver` makes arms.
    """
    alone = alone_of(asked)
    family = FamilyRecord(cell_id=asked.cell_id, arms=list(arms), alone=alone.cell_id if ALONE in arms else None)
    manifest = new_manifest(
        "explain",
        ["benchmarks/goals"],
        sweep=Sweep(seed=seed, trials=blocks, **settings),
        cells=list({one.cell_id: one for one in (asked, alone, *beside)}.values()),
        plans=[PlanRecord.sealed(seed, 1, [[start_order(seed, block, arms)] for block in range(blocks)])],
        explain=ExplainPlan(families=[family], blocks=blocks),
    )
    with scratch() as folder:
        return load_run(begin(driver, Path(folder), manifest, Quiet())).trials


def read(path: Path) -> dict[str, dict[str, Any]]:
    """The last result of each key, of a file that may be compressed; a line that was cut off is none."""
    found: dict[str, dict[str, Any]] = {}
    if not path.exists():
        return found
    for line in read_records(path).splitlines():
        try:
            result = json.loads(line)
        except json.JSONDecodeError:
            continue
        found[result["key"]] = result
    return found


def commit() -> str:
    """The short name of the commit that these scripts are of; empty outside a checkout."""
    said = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return said.stdout.strip()
