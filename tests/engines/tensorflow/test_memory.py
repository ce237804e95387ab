"""Device memory of a trial is what its training takes; there need be no GPU: TensorFlow's counters are ours."""

from types import SimpleNamespace
from typing import Any

import pytest

from harness.engines.tensorflow import trainer as module
from harness.engines.tensorflow.memory import forget_peak, peak_device_memory_bytes
from harness.engines.tensorflow.trainer import TensorFlowTrainer
from harness.errors import Unprovable

GPUS = [f"/job:localhost/replica:0/task:0/device:GPU:{i}" for i in range(2)]


class Counters:
    """What is in use on each GPU, and the most that was."""

    def __init__(self) -> None:
        self.now = {"GPU:0": 0, "GPU:1": 0}
        self.peak = dict(self.now)

    def take(self, gpu: str, amount: int) -> None:
        self.now[gpu] += amount
        self.peak[gpu] = max(self.peak[gpu], self.now[gpu])

    def reset(self, gpu: str) -> None:
        self.peak[gpu] = self.now[gpu]


@pytest.fixture
def counters(tf: Any, monkeypatch: pytest.MonkeyPatch) -> Counters:
    kept = Counters()
    monkeypatch.setattr(
        tf.config.experimental, "get_memory_info", lambda gpu: {"current": kept.now[gpu], "peak": kept.peak[gpu]}
    )
    monkeypatch.setattr(tf.config.experimental, "reset_memory_stats", kept.reset)
    return kept


def trainer(asynchronous: bool = False) -> TensorFlowTrainer:
    """One on two GPUs, of which nothing else is built."""
    made = object.__new__(TensorFlowTrainer)
    made._request = SimpleNamespace(training=SimpleNamespace(asynchronous=asynchronous))  # type: ignore[assignment]
    made._training = SimpleNamespace(devices=SimpleNamespace(names=GPUS))  # type: ignore[assignment]
    made._own = ""
    made._raw = SimpleNamespace(must_be_as_built=lambda: None)  # type: ignore[assignment]
    return made


@pytest.mark.parametrize("provable", [True, False])
def test_what_the_reference_takes_is_not_counted_and_what_training_takes_is(
    counters: Counters, monkeypatch: pytest.MonkeyPatch, provable: bool
) -> None:
    def reference(*_: Any) -> Any:
        counters.take("GPU:0", 700)
        counters.take("GPU:0", -700)
        if not provable:
            raise Unprovable("it needs others")
        return SimpleNamespace(sight=None)

    monkeypatch.setattr(module, "run_reference", reference)
    counters.take("GPU:0", 50)
    counters.take("GPU:1", 60)
    made = trainer()
    try:
        made.reference([])
    except Unprovable:
        assert not provable
    made.forget_peak()  # as a trial asks of every process then
    assert made.peak_device_memory_bytes() == 50 + 60
    counters.take("GPU:1", 40)
    counters.take("GPU:1", -40)
    assert made.peak_device_memory_bytes() == 50 + 100


def test_a_coordinator_asks_nothing_about_gpus_that_are_its_workers(
    counters: Counters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "run_reference", lambda *_: SimpleNamespace(sight=None))
    counters.take("GPU:0", 5)
    counters.take("GPU:0", -5)
    made = trainer(asynchronous=True)
    made.reference([])
    made.forget_peak()
    assert counters.peak["GPU:0"] == 5
    assert made.peak_device_memory_bytes() is None


def test_processors_have_no_such_counter(tf: Any) -> None:  # noqa: ARG001
    forget_peak(["/device:CPU:0"])
    assert peak_device_memory_bytes(["/device:CPU:0"]) is None
