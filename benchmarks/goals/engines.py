"""Cells of other engines against the same step in programs as their own tutorials have it, taking turns in one run.

Promises: within 3 %, and a fixed cost of at most 3 s a trial of two processes or devices, the median but the first. Of
keras.distribution nothing is promised.
"""

import math
import os
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from common import BLOCKS, Program, beside, cell, free_ports, interval, live, table

from harness.engines._on_jax.devices import THREADS_A_DEVICE
from harness.errors import UsageError
from harness.run.process.engines import python_for
from harness.run.process.startup import Startup
from harness.run.process.zygote import Zygote
from harness.spec import Cell, Sweep

GOAL = 0.03
GOAL_S = 3.0
BATCH_SIZE = 128
COMMON = {"data": "synthetic", "intra_op_threads": 1}
KEEPING = {"MALLOC_TRIM_THRESHOLD_": str(2**30), "MALLOC_MMAP_THRESHOLD_": str(2**30)}
"""On both sides glibc keeps what is freed. Else a process of PyTorch gives memory back at every step and gets it again,
or does not, by where in its heap something stays: a quarter of a step, by chance (`docs/engines.md`)."""
KERAS = "keras_distribution"
FIT = {"data": "digits", "loop": "data_parallel", "intra_op_threads": 1}
"""`fit` takes batches from the host, on both sides."""
CASES = (
    ("torch", cell("none", 1, BATCH_SIZE, "torch", loop="ddp", **COMMON)),
    ("torch", cell("data_parallel", 1, BATCH_SIZE, "torch", loop="ddp", workers=2, **COMMON)),
    ("horovod", cell("none", 1, BATCH_SIZE, "horovod", loop="tape", **COMMON)),
    ("horovod", cell("data_parallel", 1, BATCH_SIZE, "horovod", loop="tape", workers=2, **COMMON)),
    ("jax", cell("none", 1, BATCH_SIZE, "jax", loop="jit", **COMMON)),
    ("jax", cell("data_parallel", 2, BATCH_SIZE, "jax", loop="jit", **COMMON)),
    ("jax", cell("multi_process", 1, BATCH_SIZE, "jax", loop="jit", workers=2, **COMMON)),
    (KERAS, cell("none", 1, BATCH_SIZE, KERAS, **FIT)),
    (KERAS, cell("distribution", 2, BATCH_SIZE, KERAS, mesh="batch:2", **FIT)),
    (KERAS, cell("multi_process", 1, BATCH_SIZE, KERAS, workers=2, **FIT)),
)


def main() -> None:
    """Measure and print; an argument sets the number of blocks, those after it the engines. Exit code 1 where a promise
    was not kept, or not tried."""
    blocks, only = int(sys.argv[1]) if len(sys.argv) > 1 else BLOCKS, sys.argv[2:]
    os.environ.update(KEEPING)
    rows = [("cell", "harness ÷ bare, time a step", "95 % interval", "sd of a block", "fixed cost (median)")]
    missed = 0
    for engine, measured in (case for case in CASES if not only or case[0] in only):
        try:
            row, good = _row(engine, measured, blocks)
            rows.append(row)
            missed += not good
        except UsageError as error:
            print(f"{measured.label}: {error}")
            missed += 1
    table(rows)
    print(f"\n{blocks} blocks; promised: within {GOAL:.0%} of 1, and at most {GOAL_S:g} s for two processes or devices")
    sys.exit(bool(missed))


def _row(engine: str, measured: Cell, blocks: int) -> tuple[tuple[str, ...], bool]:
    """For the table, and whether the promises were kept."""
    logs, fixed = [], []
    python = python_for(Sweep(engine=[engine])) or sys.executable
    with Zygote(Startup(python=python, path=[Path.cwd()], engine=engine)) as zygote:
        for block in range(blocks):
            trial = live(zygote, measured, block, 0)
            logs.append(beside(trial, Program(_commands(engine, python, measured), _variables(measured)), block))
            fixed.append(trial.record().phases.fixed_s)
    mean, low, high, deviation = interval(logs)
    between = f"[{math.exp(low):.4f}, {math.exp(high):.4f}]"
    median = statistics.median(fixed[1:] or fixed)
    row = f"{engine}: {measured.label}", f"{math.exp(mean):.4f}", between, f"{deviation:.2%}", f"{median:.2f} s"
    return row, kept(engine, measured, math.exp(mean), median)


def kept(engine: str, measured: Cell, ratio: float, fixed_s: float) -> bool:
    """Whether what is promised of the cell was; of keras.distribution nothing is."""
    several = measured.shape.workers * measured.shape.replicas > 1
    return engine == KERAS or (abs(ratio - 1) <= GOAL and (fixed_s <= GOAL_S or not several))


def _commands(engine: str, python: str, measured: Cell) -> Sequence[Sequence[str]]:
    """The program's processes, each with its share of the global batch, which all of its devices have together."""
    script, workers = str(Path(__file__).with_name(f"bare_{engine}_script.py")), measured.shape.workers
    given = f"{workers}", f"{free_ports(1)[0]}"
    return [[python, script, f"{measured.work.amount // workers}", f"{rank}", *given] for rank in range(workers)]


def _variables(measured: Cell) -> dict[str, str]:
    """As anybody would set them for so many devices; the threads are those that the cell has."""
    devices = measured.shape.replicas
    threads = 1 if devices == 1 else THREADS_A_DEVICE * devices
    flags = f"--xla_force_host_platform_device_count={devices}"
    return {**os.environ, "XLA_FLAGS": flags, "NPROC": str(threads), "JAX_PLATFORMS": "cpu"}


if __name__ == "__main__":
    main()
