"""What a profile says of where a step's time goes: each moment belongs to what runs in it."""

from types import SimpleNamespace
from typing import Any

import pytest

from harness.engines.tensorflow.trace_parts import part_of, parts_of
from harness.engines.tensorflow.trainer import TensorFlowTrainer

MICROSECOND = 10**6


def plane(name: str, **lines: list[tuple[str, int, int]]) -> Any:
    """A plane whose lines have (event, begin, end) in microseconds."""
    names = sorted({event for events in lines.values() for event, _, _ in events})

    def made(event: str, begin: int, end: int) -> Any:
        times = {"offset_ps": begin * MICROSECOND, "duration_ps": (end - begin) * MICROSECOND}
        return SimpleNamespace(metadata_id=names.index(event), **times)

    threads = [
        SimpleNamespace(name=thread, timestamp_ns=5, events=[made(*event) for event in events])
        for thread, events in lines.items()
    ]
    return SimpleNamespace(
        name=name, lines=threads, event_metadata={i: SimpleNamespace(name=each) for i, each in enumerate(names)}
    )


@pytest.mark.parametrize(
    ("event", "part"),
    [
        ("mnist_cnn/conv2d/Relu:_MklNativeFusedConv2D", "compute"),
        ("gradient_tape/replica_1/cnn/dense/MatMul:MatMul", "compute"),
        ("adam/mul:Mul", "update"),
        ("replica_1/adam/Sqrt:Sqrt", "update"),
        ("adam/CollectiveReduceV2_1:CollectiveReduceV2", "communication"),
        ("EagerLocalExecute: IteratorGetNext", "input"),
        ("EagerLocalExecute: __inference_step_1873", None),
        ("Iterator::Root::Prefetch", None),
        ("ExecutorState::Process", None),
        ("step", None),
    ],
)
def test_an_event_is_of_the_part_that_its_op_says(event: str, part: str | None) -> None:
    assert part_of(event, "adam") == part


STEP = plane(
    "/host:CPU",
    python=[("EagerLocalExecute: IteratorGetNext", 0, 10), ("EagerLocalExecute: __inference_step_1", 10, 100)],
    tf_Compute=[("cnn/MatMul:MatMul", 20, 60), ("adam/mul:Mul", 75, 90)],
    collective_ops=[("adam/CollectiveReduceV2:CollectiveReduceV2", 50, 80)],
    tf_data_prefetch=[("map/Cast:Cast", 0, 100)],
)


def test_communication_counts_as_far_as_nothing_computes_and_what_is_made_ahead_does_not() -> None:
    found = parts_of([STEP], 1, "adam")
    assert found == pytest.approx(
        {"input": 10e-6, "rest": 10e-6, "compute": 40e-6, "communication": 15e-6, "update": 15e-6}
    )


def test_times_are_of_one_of_the_steps() -> None:
    assert (parts_of([STEP], 2, "adam") or {})["compute"] == pytest.approx(20e-6)


def test_without_a_collective_there_is_no_communication_to_tell() -> None:
    alone = plane("/host:CPU", tf_Compute=[("cnn/MatMul:MatMul", 0, 10), ("AddN:AddN", 10, 20)])
    assert parts_of([alone], 1, "adam") == pytest.approx({"compute": 20e-6, "update": 0, "input": 0, "rest": 0})


@pytest.mark.parametrize("planes", [[STEP, plane("/device:GPU:0")], [plane("/host:CPU", python=[("step", 0, 9)])], []])
def test_of_a_card_or_of_nothing_no_part_is_told(planes: list[Any]) -> None:
    assert parts_of(planes, 1, "adam") is None


@pytest.mark.parametrize(
    "optimizer",
    [
        SimpleNamespace(name="adam"),
        SimpleNamespace(name="loss_scale_optimizer", inner_optimizer=SimpleNamespace(name="adam")),
    ],
    ids=["float32", "mixed_float16"],
)
def test_the_update_is_looked_for_below_the_optimizer_that_makes_it(
    optimizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.engines.tensorflow.trainer.tracer_of", lambda _request, _leads, name: name)
    trial = SimpleNamespace(training=SimpleNamespace(asynchronous=False))
    trainer: Any = SimpleNamespace(_request=trial, _training=SimpleNamespace(optimizer=optimizer))
    assert TensorFlowTrainer.tracer(trainer, leads=True) == "adam"
