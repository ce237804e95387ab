"""A machine's limits are measured by fresh processes in turn; what cannot be measured has its reason."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.environment import Description, describe, usable_cores
from harness.errors import HarnessError
from harness.protocol.messages import Outcome, Request
from harness.record.limits import ProcessLimit
from harness.run.limits import LEAST_ROUNDS, measure_limits
from tests.run.fakes import FakeZygote, Play

MACHINE = Description({"machine.id": "3f2a91c07d55", "cpu.usable_cores": 2}, ("the load is high",))
NO_GPU = Outcome(status="unsupported", reason="TensorFlow finds no GPU")
Stage = Callable[[Callable[[Request], Outcome]], FakeZygote]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Two cores, and processes that end as they are told."""
    monkeypatch.setattr("harness.run.limits.usable_cores", lambda: 2)

    def make(outcome: Callable[[Request], Outcome]) -> FakeZygote:
        zygote = FakeZygote(tmp_path, lambda request: Play(outcome=outcome(request)))
        monkeypatch.setattr("harness.run.limits.Zygote", lambda: contextlib.nullcontext(zygote))
        return zygote

    return make


def found(rate: float, **changes: object) -> ProcessLimit:
    values = {"quantity": "products", "type": "float32", "rate": rate, "size": 1024, "repetitions": 3}
    return ProcessLimit(**(values | changes))  # type: ignore[arg-type]


def rising() -> Callable[[Request], Outcome]:
    """Processors whose processes come to 1, 2, 3 … GFLOP/s in the order in which they run; no GPU."""
    rates: Iterator[float] = iter(range(1, 100))
    return lambda request: (
        NO_GPU if request.cell.shape.device == "gpu" else Outcome(status="ok", limits=[found(1e9 * next(rates))])
    )


def test_one_thread_and_all_cores_take_turns_and_neither_is_always_first(stage: Stage) -> None:
    zygote = stage(rising())
    record = measure_limits(MACHINE, rounds=2)
    assert [limit.rates for limit in record.limits[:2]] == [[1e9, 4e9], [2e9, 3e9]]
    assert [(limit.device, limit.threads) for limit in record.limits[:2]] == [("cpu", 1), ("cpu", 2)]
    assert {request.task for request in zygote.spawned} == {"limits"}


def test_what_a_card_computes_float32_in_is_kept_with_its_limit(stage: Stage) -> None:
    def outcome(request: Request) -> Outcome:
        of_card = {"arithmetic": "tf32"} if request.cell.shape.device == "gpu" else {}
        return Outcome(status="ok", limits=[found(1e9, **of_card)])

    stage(outcome)
    limits = measure_limits(MACHINE, rounds=2).limits
    assert {(limit.device, limit.arithmetic) for limit in limits} == {("cpu", ""), ("gpu", "tf32")}


def test_a_gpu_that_is_not_there_is_asked_for_once_and_its_copies_have_the_reason(stage: Stage) -> None:
    zygote = stage(rising())
    record = measure_limits(MACHINE, rounds=3)
    asked = [request.cell.shape.replicas for request in zygote.spawned if request.cell.shape.device == "gpu"]
    assert asked == [1, 2]
    missing = {limit.quantity: limit.reason for limit in record.limits if not limit.rates}
    assert missing == dict.fromkeys(("host_to_device", "device_to_host", "device_to_device"), NO_GPU.reason)


def test_a_type_that_a_device_lacks_keeps_its_reason_beside_the_others(stage: Stage) -> None:
    lacking = ProcessLimit(quantity="products", type="float16", reason="no kernel")
    stage(
        lambda request: (
            NO_GPU if request.cell.shape.device == "gpu" else Outcome(status="ok", limits=[found(1e9), lacking])
        )
    )
    one = [limit for limit in measure_limits(MACHINE, rounds=2).limits if limit.threads == 1]
    assert [(limit.type, limit.rates, limit.reason) for limit in one] == [
        ("float32", [1e9, 1e9], None),
        ("float16", [], "no kernel"),
    ]


def test_a_process_on_the_processor_that_fails_ends_it_with_its_reason(stage: Stage) -> None:
    stage(lambda _: Outcome(status="crashed", reason="it raised"))
    with pytest.raises(HarnessError, match=r"^limits: a process with intra_op_threads 1 failed: it raised$"):
        measure_limits(MACHINE)


def test_no_round_begins_that_would_end_after_the_budget(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.run.limits.BUDGET_S", 0.0)
    stage(rising())
    assert len(measure_limits(MACHINE).limits[0].rates) == LEAST_ROUNDS


def test_the_record_has_the_machine_and_what_makes_its_timings_bad(stage: Stage) -> None:
    stage(rising())
    record = measure_limits(MACHINE, rounds=2)
    assert record.machine_id == "3f2a91c07d55"
    assert record.machine.facts["cpu.usable_cores"] == 2
    assert record.machine.warnings == ["the load is high"]


def test_real_processes_come_to_something_in_every_quantity(
    preloaded: Callable[[], contextlib.AbstractContextManager[None]],
) -> None:
    with preloaded():
        record = measure_limits(describe(), rounds=1, kernel_s=1e-6)
    on_processor = [limit for limit in record.limits if limit.device == "cpu"]
    assert {limit.threads for limit in on_processor} == {1, usable_cores()}
    quantities = {(limit.quantity, limit.type) for limit in on_processor}
    assert quantities == {
        ("memory", "float64"),
        *(("products", f"float{bits}") for bits in (16, 32, 64)),
        ("products", "bfloat16"),
        ("between_processes", "bytes"),
    }
    assert all(limit.best and limit.repetitions >= [3] for limit in on_processor)
    assert {limit.device for limit in record.limits} == {"cpu", "gpu"}
