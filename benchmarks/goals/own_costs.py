"""What the harness's own work within a step costs: the step as it is and as it was, by turns in one process.

It promises nothing. Before, `mirrored` added up its replicas' losses in each step, `none` had no batches ready behind
its input pipeline, and `fit` took synthetic data from the host. `fit` counts its steps in a callback, which is held
against no callback at all. `own_costs.py [BLOCKS]`.
"""

import dataclasses
import json
import math
import os
import queue
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, SupportsFloat

from common import BLOCKS, WARMUP_ROUNDS, cell, interval, prepared_zygote, table

from harness.engines._keras.paced_fit import ENDLESS, paced_windows
from harness.engines.tensorflow.loops.base import Loop
from harness.engines.tensorflow.loops.custom import CustomLoop, batches_of
from harness.engines.tensorflow.loops.fit import FitLoop
from harness.engines.tensorflow.training import Training, build, build_model
from harness.files import default_data_dir
from harness.protocol.engine import Pace
from harness.protocol.messages import Request
from harness.spec import Cell

WINDOW_S = 0.1
ROUNDS = 20
PILOT_STEPS = 10
BATCH_SIZE = 32


class LossAddedUp(CustomLoop):
    """Its step adds up the replicas' losses."""

    def __init__(self, training: Training) -> None:
        import tensorflow as tf

        super().__init__(training)
        shares_of = self._step.python_function

        @tf.function(autograph=False)  # type: ignore[untyped-decorator]
        def step(x: Any, y: Any) -> Any:
            return training.strategy.reduce(tf.distribute.ReduceOp.SUM, shares_of(x, y), axis=None)

        self._step = step


class _NothingReady(Training):
    def distributed(self, dataset: Any) -> Any:
        """The pipeline's batches as they come."""
        return dataset


class NothingReady(CustomLoop):
    """No batch waits between its input pipeline and its step."""

    def __init__(self, training: Training) -> None:
        super().__init__(_NothingReady(*(getattr(training, field.name) for field in dataclasses.fields(training))))


class DataOnHost(FitLoop):
    """Its synthetic data come from the host."""

    def run(self, pace: Pace) -> None:
        """Train until `pace` says 0."""
        training = self._training
        batches = training.distributed(training.dataset())
        training.model.fit(batches, epochs=1, steps_per_epoch=ENDLESS, verbose=0, callbacks=[paced_windows(pace)])


class NoCallback(FitLoop):
    """Its steps are counted where Keras calls them, and Keras has no callback to call."""

    def run(self, pace: Pace) -> None:
        """Train until `pace` says 0."""
        import tensorflow as tf

        training, left = self._training, pace.begin()
        placed, logs = batches_of(training), dict[str, Any]()

        def counted(_: Any) -> dict[str, Any]:
            nonlocal left, logs
            if left == 0:
                pace.end(logs["loss"])
                left = pace.begin()
            if left == 0:
                training.model.stop_training = True
                return logs
            left -= 1
            logs = self._step(placed)
            return logs

        training.model.train_function = counted
        offered = tf.data.Dataset.from_tensors(training.batches[0]).repeat()
        training.model.fit(offered, epochs=1, steps_per_epoch=ENDLESS, verbose=0)


class Pair(NamedTuple):
    """Two forms of one cell's step."""

    cell: Cell
    before: Callable[[Training], Loop]
    now: Callable[[Training], Loop]


FITTED = {"loop": "fit", "data": "synthetic"}
PAIRS = {
    "mirrored x2: losses added up in each step": Pair(cell("mirrored", 2, BATCH_SIZE), LossAddedUp, CustomLoop),
    "none: no batch ready": Pair(cell("none", 1, BATCH_SIZE), NothingReady, CustomLoop),
    "fit, none: data on the host": Pair(cell("none", 1, BATCH_SIZE, **FITTED), DataOnHost, FitLoop),
    "fit, mirrored x2: data on the host": Pair(cell("mirrored", 2, BATCH_SIZE, **FITTED), DataOnHost, FitLoop),
    "fit, none: no callback": Pair(cell("none", 1, BATCH_SIZE, **FITTED), NoCallback, FitLoop),
}


class Turns:
    """One form's loop, which trains in a thread of its own whenever it has the turn."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._asked, self._taken = queue.Queue[int](), queue.Queue[tuple[float, float] | Exception]()
        self._began = (0.0, 0.0)
        threading.Thread(target=self._train, daemon=True).start()

    def window(self, steps: int) -> tuple[float, float]:
        """So many steps: what they took of the clock and of the processors, in seconds."""
        self._asked.put(steps)
        taken = self._taken.get()
        if isinstance(taken, Exception):
            raise taken
        return taken

    def begin(self) -> int:
        """As `Pace` says."""
        steps = self._asked.get()
        self._began = time.perf_counter(), time.process_time()
        return steps

    def end(self, loss: SupportsFloat) -> None:
        """As `Pace` says."""
        float(loss)
        self._loop.synchronise()
        self._taken.put((time.perf_counter() - self._began[0], time.process_time() - self._began[1]))

    def _train(self) -> None:
        try:
            self._loop.run(self)
        except Exception as error:  # noqa: BLE001 - the thread that waits raises it
            self._taken.put(error)


def block(pair: Pair, number: int) -> tuple[float, float]:
    """The log ratios, before to now, of a step's time and of its processor time in this process.

    Each is the median over rounds, in which both had a window, so that what other work does to a few of them is left
    out.
    """
    request = Request(
        cell=pair.cell,
        seed=1,
        data_dir=str(default_data_dir()),
        window_s=WINDOW_S,
        intra_op_threads=1,
        inter_op_threads=2 * pair.cell.shape.replicas,
    )
    forms = [Turns(form(training)) for form, training in zip((pair.before, pair.now), _alike(request), strict=True)]
    for form in forms:
        form.window(PILOT_STEPS)
    steps = max(1, round(WINDOW_S / (forms[1].window(PILOT_STEPS)[0] / PILOT_STEPS)))
    rounds, order = [], random.Random(number)
    for _ in range(WARMUP_ROUNDS + ROUNDS):
        taken = {index: forms[index].window(steps) for index in order.sample(range(2), 2)}
        rounds.append([math.log(before / now) for before, now in zip(taken[0], taken[1], strict=True)])
    wall, processors = (statistics.median(of) for of in zip(*rounds[WARMUP_ROUNDS:], strict=True))
    return wall, processors


def _alike(request: Request) -> tuple[Training, Training]:
    """Two trainings of one cell under one strategy, each with a model and an optimizer of its own."""
    first = build(request)
    model, optimizer = build_model(first.workload, first.cell, first.classes, request.seed, first.strategy)
    return first, dataclasses.replace(first, model=model, optimizer=optimizer)


def main() -> None:
    """Measure and print; an argument sets the number of blocks."""
    blocks = int(sys.argv[1]) if len(sys.argv) > 1 else BLOCKS
    with prepared_zygote():
        pass  # the digits are there now
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in PAIRS}
    for number in range(blocks):
        for name in PAIRS:
            command = [sys.executable, __file__, "--block", name, str(number)]
            said = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=os.environ | QUIET)
            found[name].append(tuple(json.loads(said.stdout.splitlines()[-1])))
            print(f"block {number + 1} of {blocks}, {name}: {found[name][-1]}", file=sys.stderr, flush=True)
    rows = [("before ÷ now", "time a step", "processor time a step", "blocks")]
    for name, logs in found.items():
        rows.append((name, *(_ratio(of) for of in zip(*logs, strict=True)), str(len(logs))))
    table(rows)


QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3"}


def _ratio(logs: tuple[float, ...]) -> str:
    """`1.031 [1.012, 1.050]`."""
    value, low, high = (math.exp(log) for log in interval(logs)[:3])
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--block"]:
        print(json.dumps(block(PAIRS[sys.argv[2]], int(sys.argv[3]))), flush=True)
        os._exit(0)  # the loops go on
    main()
