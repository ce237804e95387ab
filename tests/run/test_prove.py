"""`doctor --prove`: what each question makes of what it saw, and the whole of it on TensorFlow and virtual CPUs."""

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.environment import describe
from harness.protocol.messages import WindowTimes
from harness.record import Executed, load_run
from harness.record.proof import Proof
from harness.record.trial import MEASURED, TraceRecord, TrialRecord
from harness.run.progress import Quiet
from harness.run.prove import cells, questions
from harness.run.prove.acceptance import prove
from harness.run.prove.questions import PAIRS, SHORTS, Answered
from harness.spec.catalogue import DeviceTraits
from harness.trial.engines import catalogue_of
from tests.axes import OF_EXTENDING
from tests.preloaded import handed_in
from tests.record.examples import cell, failed_trial, manifest, trial

NO_ROOM = cell(model=catalogue_of().oversized, device="gpu")


def window(steps: int, seconds: float) -> WindowTimes:
    return WindowTimes(
        round=0, steps=steps, seconds=seconds, cpu_seconds=0.0, waiting_seconds=0.0, waiting_cpu_seconds=0.0
    )


def ended(status: str, **of: Any) -> TrialRecord:
    if status in MEASURED:
        return trial(status=status, **({} if status == "ok" else {"reason": "so it is"}), **of)
    return failed_trial(status=status, **({"reason": "so it is"} | of))


def answered(step_s: float = 0.01, of_short: float = 1.0, **of: Any) -> Answered:
    """Windows of 5 and of 100 steps; a step takes `of_short` times as long in the short ones."""
    pair = [window(5, 5 * step_s * of_short)] * SHORTS + [window(100, 100 * step_s)]
    libraries = frozenset(of.pop("libraries", ("libc.so",)))
    return Answered(ended(of.pop("status", "ok"), **of), [window(5, 1.0), *pair * PAIRS], libraries)


@pytest.mark.parametrize(("of_short", "verdict"), [(1.0, "passed"), (1.05, "passed"), (0.3, "failed"), (1.5, "failed")])
def test_a_clock_that_is_right_shows_one_step_time_in_short_and_in_long_windows(of_short: float, verdict: str) -> None:
    assert questions.clock(answered(of_short=of_short)).verdict == verdict


def test_a_clock_on_a_busy_machine_cannot_be_told_and_neither_one_of_a_trial_that_crashed() -> None:
    windows = answered().windows
    windows[6] = window(100, 9.0)
    noisy = questions.clock(Answered(trial(), windows, frozenset()))
    assert noisy.verdict == "unknown"
    assert "too noisy to tell" in noisy.words
    assert questions.clock(answered(status="crashed", reason="exit status 3")).words == "crashed: exit status 3"


@pytest.mark.parametrize(("key", "where"), [("peak_memory_bytes", "host"), ("peak_device_memory_bytes", "device")])
def test_a_second_trial_that_uses_more_memory_than_the_first_failed(key: str, where: str) -> None:
    def of(before: float, after: float) -> Proof:
        sizes = [{"peak_memory_bytes": 9 * 10**9, key: int(size)} for size in (before, after)]
        return questions.memory(*(answered(**size) for size in sizes))

    assert of(2e9, 2.1e9).verdict == "passed"
    assert of(2e9, 4e9) == Proof(
        subject="memory",
        name=cell().label,
        device="virtual-cpu",
        verdict="failed",
        words=f"{where} memory at most 2000 MB, then 4000 MB",
    )


@pytest.mark.parametrize(
    ("operation", "libraries", "verdict"),
    [
        ("NcclAllReduce", ("libc.so", "libnccl.so.2"), "passed"),
        ("CollectiveReduceV2[ring]", ("libc.so",), "passed"),
        ("NcclAllReduce", ("libc.so",), "failed"),
        ("CollectiveReduceV2[ring]", ("libc.so", "libnccl.so.2"), "failed"),
        ("NcclAllReduce", (), "unknown"),
    ],
)
def test_nccl_is_to_be_loaded_where_the_record_names_it_and_nowhere_else(
    operation: str, libraries: tuple[str, ...], verdict: str
) -> None:
    of = answered(libraries=libraries, executed=Executed(operations={operation: 2}))
    assert questions.nccl(of).verdict == verdict


def test_tensorfloat_must_stay_within_the_gate_where_there_is_any() -> None:
    tf32, wrong = Executed(arithmetic="tf32"), {"status": "wrong_result", "reason": "update"}
    assert questions.arithmetic(answered(), answered(executed=tf32)).verdict == "passed"
    assert questions.arithmetic(answered(), answered(executed=tf32, **wrong)).verdict == "failed"
    assert questions.arithmetic(answered(), answered()).verdict == "unknown"


@pytest.mark.parametrize(("copies", "verdict"), [(1, "passed"), (5, "failed"), (None, "unknown")])
def test_a_step_that_copies_to_the_host_each_time_failed(copies: int | None, verdict: str) -> None:
    traced = trial(trace=TraceRecord(path="traces/a", steps=5, copies_to_host=copies))
    assert questions.copies(traced).verdict == verdict


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        ({"loop": "fit"}, "fit reads each step's metrics"),
        ({"precision": "mixed_float16"}, questions.COPYING["precision", "mixed_float16"]),
        ({"strategy": "central_storage", "replicas": 2}, "the variables are on the host, and gradients go there"),
    ],
)
def test_what_tensorflow_itself_copies_in_each_step_is_told_with_its_reason(of: dict[str, Any], reason: str) -> None:
    asked = cell(**of)
    traced = trial(cell=asked, cell_id=asked.cell_id, trace=TraceRecord(path="traces/a", steps=5, copies_to_host=11))
    proof = questions.copies(traced)
    assert (proof.verdict, proof.words) == ("passed", f"11 copies in 5 steps: {reason}")


@pytest.mark.parametrize(("strategy", "replicas"), [("none", 1), ("mirrored", 2)])
def test_the_clock_of_an_accelerator_is_asked_with_steps_that_keep_it_busy(strategy: str, replicas: int) -> None:
    catalogue = catalogue_of()
    small = next(
        one
        for one in cells.acceptance(catalogue, ["gpu"]).cells
        if (one.get("strategy"), one.shape.replicas) == (strategy, replicas)
    )
    busy = cells.like(small, catalogue, 4096)
    assert (busy.shape, busy.get("strategy"), busy.get("batch_size")) == (small.shape, strategy, 4096)


def test_a_driver_file_that_the_fork_server_holds_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = SimpleNamespace(pid=os.getpid())
    monkeypatch.setattr(questions, "DRIVERS", (str(tmp_path / "nvidia"),))
    assert questions.drivers(here, "gpu").verdict == "unknown"  # type: ignore[arg-type]
    with (tmp_path / "nvidia0").open("w"):
        held = questions.drivers(here, "gpu")  # type: ignore[arg-type]
    assert (held.verdict, held.words) == ("failed", str(tmp_path / "nvidia0"))
    assert questions.drivers(here, "gpu").verdict == "passed"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ends", "verdict"),
    [
        ([("out_of_memory", "turns"), ("out_of_memory", "blocks")], "passed"),
        ([("out_of_memory", "blocks")], "passed"),
        ([("out_of_memory", "turns")], "unknown"),
        ([("out_of_memory", "turns"), ("crashed", "blocks")], "failed"),
        ([], None),
    ],
)
def test_a_model_without_room_must_end_as_out_of_memory_and_in_company_get_a_second_try(
    ends: list[tuple[str, str]], verdict: str | None
) -> None:
    of = {"cell": NO_ROOM, "cell_id": NO_ROOM.cell_id, "reason": "no room"}
    tried = [ended(end, attempt=1 + i, interleaving=how, **of) for i, (end, how) in enumerate(ends)]
    run = SimpleNamespace(trials=tried)
    assert [proof.verdict for proof in cells.out_of_memory(run, catalogue_of())] == ([verdict] if verdict else [])  # type: ignore[arg-type]


def test_a_cell_is_judged_by_its_last_trial_and_what_cannot_run_here_is_not_told() -> None:
    def of(*ends: str) -> list[str]:
        trials = [ended(end) for end in ends]
        return [
            proof.verdict
            for proof in cells.proofs_of(SimpleNamespace(manifest=manifest(), trials=trials), catalogue_of())
        ]  # type: ignore[arg-type]

    assert of("ok") == ["passed"]
    assert of("out_of_memory", "ok") == ["passed"]
    assert of("wrong_result") == of("crashed") == of("timeout") == ["failed"]
    assert of("unproved") == of("unsupported") == ["unknown"]


def test_every_strategy_op_precision_compilation_and_loop_has_a_cell() -> None:
    catalogue = catalogue_of()
    asked = cells.acceptance(catalogue, ["virtual-cpu", "gpu", "tpu"]).cells
    names = {"strategy": catalogue.strategies, "cross_device_op": catalogue.cross_device_ops, "loop": catalogue.loops}
    for key, known in names.items():
        assert {one.get(key) for one in asked} == set(known), key
    assert {one.get("precision") for one in asked} == {"float32", "mixed_bfloat16", "mixed_float16"}
    assert {one.shape.device for one in asked if one.get("strategy") == "tpu"} == {"tpu"}


def test_logical_gpus_have_but_for_base_cases_no_cell_that_the_real_one_has() -> None:
    asked = cells.acceptance(catalogue_of(), ["gpu", "virtual-gpu"]).cells
    logical = [one for one in asked if one.shape.device == "virtual-gpu"]
    assert {one.get("strategy") for one in logical if one.shape.replicas == 1} == {"none"}
    strategies = {one.get("strategy") for one in logical if one.shape.replicas == 2}
    assert strategies - OF_EXTENDING == {"mirrored", "central_storage"}
    assert {one.get("precision") for one in logical} == {"float32", "mixed_bfloat16", "mixed_float16"}


def test_a_kind_of_device_that_somebody_adds_has_the_cells_of_one() -> None:
    catalogue = catalogue_of()
    added = DeviceTraits("whole-cpu", "", on_processors=True)
    known = replace(catalogue, devices={**catalogue.devices, added.name: added})
    asked = cells.acceptance(known, [added.name]).cells
    assert {(one.get("strategy"), one.shape.replicas) for one in asked} == {("none", 1), ("one_device", 1)}


def test_a_right_cell_shows_how_right_it_is_and_what_reduced_it_and_another_its_reason() -> None:
    right = trial(executed=Executed(operations={"AddN": 8}))
    assert cells.evidence(right) == "a step has 8 AddN"
    held = right.checks.model_copy(update={"update_error": 0.0625})
    both = right.model_copy(update={"checks": held})
    assert cells.evidence(both) == "error of an update 0.062 of its limit; a step has 8 AddN"
    assert cells.evidence(ended("crashed", reason="exit status 3")) == "crashed: exit status 3"


@pytest.mark.slow
@pytest.mark.xdist_group("prove")
def test_virtual_processors_are_proved_and_what_only_other_hardware_tells_is_said_to_be_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(questions, "LONG_S", 0.1)
    monkeypatch.setattr(questions, "PAIRS", 2)
    monkeypatch.setattr(cells, "SMALL", {**cells.SMALL, "model": "mlp", "optimizer": "sgd"})
    told: list[Proof] = []
    with handed_in():
        record = prove(describe(), tmp_path, Quiet(), told.append, only="(none ×1|mirrored ×2) b8")
    assert told == record.proofs
    assert capfd.readouterr().out == "", "what --json prints is alone on standard output"
    failed = [proof for proof in record.of("failed") if proof.subject != "clock"]  # which a busy machine may upset
    assert not failed, failed
    by = {(proof.subject, proof.name): proof for proof in record.proofs}
    assert by["device", "virtual-cpu"].verdict == by["cell", "mirrored ×2 b8"].verdict == "passed"
    assert by["launcher", "attach"].verdict == "passed", by["launcher", "attach"].words
    assert by["nccl", "mirrored ×2 b8"].verdict == by["memory", "none ×1 b8"].verdict == "passed"
    assert "clock" in {proof.subject for proof in record.proofs}
    run = load_run(tmp_path / record.run_id)
    assert {one.status for one in run.trials} == {"ok"}
