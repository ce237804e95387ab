"""A worker that is made slow makes the others wait, whatever the engine."""

import itertools
import time
from pathlib import Path
from typing import Any

import pytest

from harness.engines.horovod import ENGINE as HOROVOD
from harness.engines.jax import ENGINE as JAX
from harness.engines.keras_distribution import ENGINE as KERAS_DISTRIBUTION
from harness.engines.torch import ENGINE as TORCH
from harness.errors import Unsupported
from harness.protocol.messages import Request
from harness.record.trial import Plant
from harness.run.process.startup import Startup
from harness.run.process.zygote import Zygote
from harness.trial.same_work.batches import Data
from harness.trial.same_work.trainer import SameWorkTrainer, refuse_what_is_tensorflows
from tests.engines.conftest import python_of
from tests.goals import load
from tests.preloaded import handed_in
from tests.synthetic import make_cell

EACH_S = 0.05
WAYS: tuple[tuple[Any, str, str], ...] = (
    (JAX, "multi_process", "jit"),
    (KERAS_DISTRIBUTION, "multi_process", "data_parallel"),
    (TORCH, "data_parallel", "ddp"),
    (HOROVOD, "data_parallel", "tape"),
)


def with_plant(kind: str, each: float | None = EACH_S) -> Request:
    of = {"cell": make_cell("none", 1), "seed": 1, "data_dir": "", "window_s": 0.1}
    threads = {"intra_op_threads": 1, "inter_op_threads": 1}
    return Request(**of, **threads, plant=Plant(kind=kind, share=0.0, each=each))  # type: ignore[arg-type]


def test_what_is_in_tensorflows_programs_alone_is_refused_by_its_name() -> None:
    with pytest.raises(Unsupported, match="plant: 'device_work' is planted in TensorFlow's programs alone"):
        refuse_what_is_tensorflows(with_plant("device_work"), "Mine", "compiles nothing")
    refuse_what_is_tensorflows(with_plant("slow_worker"), "Mine", "compiles nothing")


class Fed(SameWorkTrainer):
    """A worker of two that takes batches and waits for the step before."""

    def __init__(self, kind: str, rank: int, each: float | None = EACH_S) -> None:
        made = with_plant(kind, each)
        self._request = made.model_copy(update={"cell": made.training.model_copy(update={"workers": 2})})
        self._data, self._of, self.done = Data("synthetic", (2, 2, 1), 4, 1, 0), rank, 0

    @property
    def _rank(self) -> int:
        return self._of

    def synchronise(self) -> None:
        self.done += 1


Fed.__abstractmethods__ = frozenset()  # of what a trainer is it feeds alone


@pytest.mark.parametrize(("kind", "asked"), [("slow_worker", [[0.1, 0, 0.1], [0, 0.1, 0]]), ("worker_delay", None)])
def test_before_each_step_another_worker_sleeps_once_the_step_before_is_done(
    kind: str, asked: list[list[float]] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.append(now.pop() + seconds))
    for rank, expected in enumerate(asked or [[EACH_S] * 3] * 2):
        trainer, slept, before = Fed(kind, rank), [], now[0]
        for _ in itertools.islice(trainer._fed(lambda batch: batch), 3):
            slept.append(now[0] - before)
            before = now[0]
        assert slept == pytest.approx(expected)
        assert trainer.done == 3


def test_a_share_of_a_step_is_no_time_that_a_worker_can_sleep() -> None:
    with pytest.raises(Unsupported, match="'slow_worker' is seconds of each step, and no share of it"):
        Fed("slow_worker", 0, None)._fed(lambda batch: batch)


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.parametrize(("engine", "strategy", "loop"), WAYS)
def test_every_step_waits_for_the_worker_that_sleeps_and_is_right(engine: Any, strategy: str, loop: str) -> None:
    goals, python = load("common"), python_of(engine)
    keys = {"loop": loop, "workers": 2, "model": "mlp", "data": "synthetic", "intra_op_threads": 1}
    asked = goals.cell(strategy, 1, 8, engine.name, **keys)
    with handed_in(others=True), Zygote(Startup(python=python, path=[Path.cwd()], engine=engine.name)) as zygote:
        trial = goals.live(zygote, asked, 0, 0)
        trial.request = trial.request.model_copy(update={"plant": with_plant("slow_worker").plant})
        trial.start()
        trial.set_up()
        for number in range(3):
            trial.take_turn(number)
        trial.measure_from(0)
        trial.finish()
        record = trial.record()
    assert (record.status, record.reason) == ("ok", None)
    assert record.plant is not None
    # of windows of a step one may miss the sleep that fell just before its clock began, and the one before has it
    steps = record.windows.steps_per_window * len(record.windows.seconds)
    assert sum(record.windows.seconds) / steps > 1.9 * EACH_S
