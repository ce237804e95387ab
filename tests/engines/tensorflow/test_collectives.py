"""Collectives by themselves under TensorFlow: what is right is timed, what is wrong has no bandwidth."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import jsonschema
import pytest
from pydantic import ValidationError

from harness.engines.tensorflow import gradients
from harness.engines.tensorflow.catalogue import load_catalogue
from harness.engines.tensorflow.collectives import STEPS, lacking
from harness.engines.tensorflow.gradients import gradient_bytes
from harness.errors import UsageError
from harness.record import TrialRecord, schema
from harness.record.checks import Checks
from harness.run.kinds.measure import measure
from harness.spec import expand, sweep_from
from harness.spec.collective import COLLECTIVES, CollectiveCell
from harness.trial.collectives import WARM_CALLS
from tests.axes import GRADIENT_BYTES
from tests.preloaded import handed_in
from tests.record.examples import trial

SMALL = sweep_from({"work": "collective", "trials": 1, "windows": 5, "max_warmup": 0, "window": 0.01, "timeout": 60.0})
CELL = CollectiveCell(collective="all_reduce", size=2**16, strategy="mirrored", replicas=3, device="virtual-cpu")
WORKERS = CELL.model_copy(update={"strategy": "multi_worker_mirrored", "workers": 2, "replicas": 1})
MLP_BYTES = 4 * (784 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10)
GRADIENTS = WORKERS.model_copy(update={"gradients": "mlp", "size": MLP_BYTES})
CELLS = {
    "ring": CELL,
    "one element": CELL.model_copy(update={"size": 4}),
    "one device": CELL.model_copy(update={"cross_device_op": "reduction_to_one_device"}),
    "packs": CELL.model_copy(
        update={"replicas": 2, "cross_device_op": "hierarchical_copy", "packing": "num_packs=2"},
    ),
    "dropped": CELL.model_copy(update={"cross_device_op": "hierarchical_copy"}),
    "dropped element": CELL.model_copy(update={"cross_device_op": "hierarchical_copy", "size": 4}),
    "narrow": CELL.model_copy(update={"cross_device_op": "tests.engines.tensorflow.own_ops:narrow"}),
    "gather": CELL.model_copy(update={"collective": "all_gather", "size": 65532}),
    "gather on one": CELL.model_copy(
        update={"collective": "all_gather", "size": 65532, "cross_device_op": "reduction_to_one_device"}
    ),
    "broadcast": CELL.model_copy(update={"collective": "broadcast"}),
    "workers": WORKERS,
    "workers gather": WORKERS.model_copy(update={"collective": "all_gather", "replicas": 2}),
    "gradients": GRADIENTS,
    "gradients one by one": GRADIENTS.model_copy(update={"packing": "bytes_per_pack=1"}),
    "gradients dropped": CELL.model_copy(
        update={"gradients": "mlp", "size": MLP_BYTES, "cross_device_op": "hierarchical_copy"}
    ),
    "other gradients": GRADIENTS.model_copy(update={"size": 400}),
    "scatter": CELL.model_copy(update={"collective": "reduce_scatter", "size": 65532}),
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TrialRecord]:
    """One trial of each of these cells, by name."""
    with handed_in():
        run = measure(SMALL, list(CELLS.values()), tmp_path_factory.mktemp("results"))
    by_cell = {record.cell_id: record for record in run.trials}
    return {name: by_cell[cell.cell_id] for name, cell in CELLS.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "ring",
        "one element",
        "one device",
        "packs",
        "gather",
        "gather on one",
        "broadcast",
        "workers",
        "workers gather",
        "gradients",
        "gradients one by one",
    ],
)
def test_a_right_collective_is_timed_in_bytes_a_second(measured: dict[str, TrialRecord], name: str) -> None:
    record = measured[name]
    assert record.status == "ok", record.reason
    assert (record.checks.gate, record.checks.reduction, record.checks.late) == ("collective", True, True)
    assert record.throughput_per_s == pytest.approx(CELLS[name].size / (record.step_time_s or 0))
    assert record.final_loss is None
    assert len(record.resources.logical_devices) == CELLS[name].replicas
    assert (0 if record.cluster is None else len(record.cluster.members)) in (0, CELLS[name].workers)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("dropped", "the value of replica 2 is missing"),
        ("dropped element", "the value of replica 2 is missing"),
        ("gradients dropped", "the value of replica 2 is missing"),
        ("narrow", "a type with fewer bits was on the way"),
    ],
)
def test_an_op_that_is_wrong_at_a_size_has_no_bandwidth(measured: dict[str, TrialRecord], name: str, says: str) -> None:
    record = measured[name]
    assert (record.status, record.throughput, record.step_time_s) == ("wrong_result", None, None)
    assert says in (record.reason or "")


@pytest.mark.slow
def test_the_record_says_how_many_calls_before_each_window_were_not_timed(measured: dict[str, TrialRecord]) -> None:
    untimed = {name: of.windows.untimed_steps for name, of in measured.items() if of.windows is not None}
    assert 1 <= untimed["workers"] <= WARM_CALLS
    assert {untimed[name] for name in ("ring", "gather", "broadcast")} == {0}
    assert "untimed_steps" not in json.loads(measured["ring"].model_dump_json())["windows"]


@pytest.mark.slow
def test_what_ran_is_read_from_the_program(measured: dict[str, TrialRecord]) -> None:
    assert measured["ring"].executed.operations == {"CollectiveReduceV2[ring]": 3}
    assert measured["ring"].executed.pack_bytes == [2**16]
    assert measured["one device"].executed.operations == {"AddN": 1}
    assert {record.executed.differs_from_request for record in measured.values()} == {None}
    prints = [of.executed.fingerprint for name, of in measured.items() if of.status == "ok" and name != "one element"]
    assert len(set(prints)) == len(prints), "but for the size, which the program does not hold"


@pytest.mark.slow
def test_what_tensorflow_lacks_is_unsupported_with_the_reason(measured: dict[str, TrialRecord]) -> None:
    record = measured["scatter"]
    assert (record.status, record.throughput) == ("unsupported", None)
    assert record.reason == "tf.distribute has no reduce-scatter, in any strategy or cross-device op"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, None),
        ({"collective": "all_gather"}, None),
        ({"collective": "broadcast"}, None),
        ({"collective": "reduce_scatter"}, "tf.distribute has no reduce-scatter"),
        (
            {"collective": "broadcast", "strategy": "multi_worker_mirrored"},
            "has no broadcast between workers, only the one",
        ),
        ({"collective": "all_gather", "cross_device_op": "nccl"}, "'nccl' reduces only"),
        ({"collective": "all_gather", "cross_device_op": "hierarchical_copy"}, "'hierarchical_copy' reduces only"),
        ({"collective": "broadcast", "cross_device_op": "nccl"}, "'nccl' has no broadcast of its own"),
        ({"collective": "all_gather", "packing": "bytes_per_pack=0"}, "bytes_per_pack=0: packs are of reductions"),
    ],
)
def test_what_is_lacking_is_said_in_one_line(changes: dict[str, Any], said: str | None) -> None:
    found = lacking(CELL.model_copy(update=changes))
    assert found is None if said is None else said in (found or "")


def test_every_collective_has_its_call_or_a_reason_for_having_none() -> None:
    lacks = {name for name in COLLECTIVES if lacking(CELL.model_copy(update={"collective": name}))}
    assert lacks | STEPS.keys() == set(COLLECTIVES)
    assert not lacks & STEPS.keys()


@pytest.mark.slow  # a process of its own imports TensorFlow
def test_who_plans_is_told_how_many_bytes_the_gradients_of_a_model_are() -> None:
    assert gradient_bytes("mlp") == MLP_BYTES == GRADIENT_BYTES["mlp"]


def test_a_model_that_trains_nothing_has_no_gradients_to_send_and_the_sizes_beside_it_are_measured() -> None:
    sends = replace(load_catalogue(), gradient_bytes=lambda *_: 0)
    found = expand(SMALL.model_copy(update={"model": ["my:frozen"], "size": [4]}), sends)
    assert {cell.get("size") for cell in found.cells} == {4}
    [left_out] = found.left_out
    assert left_out.words == "gradients of my:frozen: it has no weight that is trained, so there are none to send"


def test_a_model_that_is_never_built_ends_the_plan_in_one_line_and_is_asked_nothing_on_the_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    allowed: list[float] = []

    def hang(*_: Any, stdin: int, timeout: float, **__: Any) -> NoReturn:
        assert stdin == subprocess.DEVNULL
        allowed.append(timeout)
        raise subprocess.TimeoutExpired("python", timeout)

    monkeypatch.setattr(gradients.subprocess, "run", hang)
    for timeout in (1.0, 1000.0):
        sweep = SMALL.model_copy(update={"model": ["my:slow"], "timeout": timeout})
        with pytest.raises(UsageError, match=r"^model: 'my:slow' was not built within .* s; mend it, or allow more .*"):
            expand(sweep, load_catalogue())
    assert allowed == [gradients.LEAST_LIMIT_S, 1000.0]


@pytest.mark.parametrize("printed", ["\\377", "5"], ids=["no text", "a number"])
def test_a_model_may_print_anything_before_it_breaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str
) -> None:
    broken = tmp_path / "python"
    broken.write_text(f"#!/bin/sh\nprintf '{printed}\\n'\nprintf 'no {printed}\\n' >&2\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))
    with pytest.raises(UsageError, match=r"^model: 'my:broken' could not be built: no .$"):
        gradient_bytes("my:broken")


def test_who_counts_the_bytes_of_gradients_does_not_outlive_who_asked() -> None:
    command = [sys.executable, "-m", gradients.__name__, "mlp", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "it has another parent than the process that started it, 0" in done.stderr


@pytest.mark.slow  # it imports TensorFlow
def test_a_buffer_that_does_not_fit_is_out_of_memory(tmp_path: Path) -> None:
    huge = CELL.model_copy(update={"size": 2**50})
    with handed_in():
        [record] = measure(SMALL, [huge], tmp_path).trials
    assert (record.status, record.throughput) == ("out_of_memory", None), record.reason


def record_of(**checks: Any) -> TrialRecord:
    """A trial of a collective that was measured."""
    values = json.loads(trial().model_dump_json())
    for key in ("throughput_examples_per_s", "cpu_seconds_per_example"):
        values.pop(key)
    passed = Checks(**({"gate": "collective", "reduction": True, "late": True} | checks))
    own = {"cell": CELL.model_dump(), "cell_id": CELL.cell_id, "checks": json.loads(passed.model_dump_json())}
    return TrialRecord.model_validate({**values, **own, "throughput_per_s": 1e9, "cpu_seconds_per_unit": 1e-9})


def accepted(record: dict[str, Any]) -> bool:
    """Whether the published schema accepts the record."""
    published = json.loads((schema.FOLDER / "trial-1.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(published).is_valid(record)


def test_the_gate_of_a_collective_is_complete_without_what_only_trainings_have() -> None:
    record = record_of()
    assert record.checks.complete
    assert record.checks.unproved is None
    assert record.checks.update is None
    assert accepted(json.loads(record.model_dump_json()))


@pytest.mark.parametrize("wrong", [{"reduction": False}, {"late": None}, {"late": False}, {"gate": "own_step"}])
def test_a_collective_whose_gate_is_not_passed_is_not_ok(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"gate is not complete|but the gate that was passed is"):
        record_of(**wrong)
    spoilt = json.loads(record_of().model_dump_json())
    spoilt["checks"].update(wrong)
    assert not accepted(spoilt)


@pytest.mark.slow
def test_a_models_gradients_are_sent_in_its_own_tensors_or_packed(measured: dict[str, TrialRecord]) -> None:
    together, one_by_one = measured["gradients"].executed, measured["gradients one by one"].executed
    assert sum(together.pack_bytes) == sum(one_by_one.pack_bytes) == MLP_BYTES
    assert sorted(one_by_one.pack_bytes) == sorted(4 * n for n in (784 * 512, 512, 512 * 512, 512, 512 * 10, 10))
    assert len(together.pack_bytes) < len(one_by_one.pack_bytes)


@pytest.mark.slow
def test_gradients_that_are_others_than_planned_are_refused(measured: dict[str, TrialRecord]) -> None:
    record = measured["other gradients"]
    assert record.status == "unsupported"
    assert "'mlp' has 669,706 gradients here, and the cell 100" in (record.reason or "")
