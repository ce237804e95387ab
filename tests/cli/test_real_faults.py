"""What computes the wrong thing, hangs, crashes or eats memory is a record; the rest of the sweep goes on."""

from pathlib import Path

import pytest

from harness.analysis.summary import summarise
from harness.record import Run, TrialRecord
from tests.cli.real import ON_ALL_CORES, SMALL, only_run, run

pytestmark = pytest.mark.slow

OPS = {"dropped_op": "reduction", "delayed_op": "", "nan_op": "reduction", "late_dropped_op": "late"}
"""A wrong sum, one that is right the first time, one that is no number, and one that is right while the gate looks.

What else the gate finds in a sum is in `tests/engines/tensorflow/test_reduction.py`."""
MODELS = ("nan", "skipping", "late_doubling", "hanging", "crashing", "hungry", "late_crash", "late_hang")


@pytest.fixture(scope="session")
def wrong_ops(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The planted ops beside TensorFlow's own, in one sweep."""
    folder = tmp_path_factory.mktemp("ops")
    ops = ",".join(["auto", *(f"tests.planted:{name}" for name in OPS)])
    flags = [ON_ALL_CORES, "--strategy", "mirrored", "--replicas", "2", "--cross-device-op", ops]
    done = run("sweep", *SMALL, *flags, folder=folder)
    assert done.returncode == 0, done.stderr
    return only_run(folder / "results")


@pytest.fixture(scope="session")
def sick_models(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Every planted model beside a healthy one, in one sweep."""
    folder = tmp_path_factory.mktemp("models")
    models = ",".join(["mlp", *(f"tests.planted:{name}_model" for name in MODELS)])
    flags = ["--strategy", "none", "--replicas", "1", "--model", models, "--timeout", "20"]
    done = run("sweep", *SMALL, *flags, folder=folder)
    assert done.returncode == 0, done.stderr
    return only_run(folder / "results")


def trial_of(run: Run, name: str) -> TrialRecord:
    [trial] = [
        t for t in run.trials if t.cell.cross_device_op.endswith(f":{name}") or t.cell.model.endswith(f":{name}")
    ]
    return trial


@pytest.mark.parametrize("op", OPS)
def test_an_op_that_reduces_wrongly_is_a_wrong_result_with_evidence(wrong_ops: Run, op: str) -> None:
    trial = trial_of(wrong_ops, op)
    assert trial.status == "wrong_result"
    assert trial.throughput_examples_per_s is None
    assert trial.checks.failures
    if OPS[op]:
        assert OPS[op] in trial.checks.failures
    for check in trial.checks.failures:
        assert any(character.isdigit() for character in trial.checks.detail[check]), trial.checks.detail
    assert trial.reason is not None
    assert trial.reason.startswith(trial.checks.failures[0])


def test_what_is_wrong_is_in_no_ranking_and_what_is_right_is(wrong_ops: Run) -> None:
    summary = summarise(wrong_ops.manifest, wrong_ops.trials)
    wrong = {trial.cell_id for trial in wrong_ops.trials if trial.status == "wrong_result"}
    assert len(wrong) == len(OPS)
    ranked = {cell.cell_id for cell in summary.cells if cell.measured is not None}
    assert ranked == {trial.cell_id for trial in wrong_ops.trials} - wrong
    assert {trial.cell.strategy for trial in wrong_ops.trials if trial.cell_id in ranked} == {"none", "mirrored"}


@pytest.mark.parametrize(
    ("model", "status", "reason"),
    [
        ("nan_model", "wrong_result", "loss_finite"),
        ("skipping_model", "wrong_result", "update"),
        ("late_doubling_model", "wrong_result", "late: after update"),
        ("hungry_model", "out_of_memory", "OOM when allocating tensor"),
        ("crashing_model", "crashed", "ended by SIGSEGV during build"),
        ("hanging_model", "timeout", "no sign of life within 20 s during build"),
        ("late_crash_model", "crashed", "ended by SIGKILL during steady"),
        ("late_hang_model", "timeout", "no sign of life within 20 s during steady"),
    ],
)
def test_a_model_that_fails_is_a_record_with_its_status_phase_and_reason(
    sick_models: Run, model: str, status: str, reason: str
) -> None:
    trials = [trial for trial in sick_models.trials if trial.cell.model.endswith(f":{model}")]
    assert {trial.status for trial in trials} == {status}
    for trial in trials:
        assert reason in (trial.reason or "")
        assert trial.phase is not None
        assert trial.phase in (trial.reason or "") or trial.status in ("wrong_result", "out_of_memory")


@pytest.mark.parametrize(("model", "where"), [("hanging_model", "hanging_model"), ("late_hang_model", "Thread 0x")])
def test_a_hang_is_recorded_with_the_stacks_of_its_threads(sick_models: Run, model: str, where: str) -> None:
    evidence = trial_of(sick_models, model).evidence
    assert evidence is not None
    assert "most recent call first" in evidence
    assert where in evidence


@pytest.mark.parametrize("model", ["late_crash_model", "late_hang_model"])
def test_what_a_trial_measured_before_it_failed_is_kept(sick_models: Run, model: str) -> None:
    windows = trial_of(sick_models, model).windows
    assert windows is not None
    assert len(windows.seconds) == 2


def test_the_sweep_goes_on_after_every_failure(sick_models: Run) -> None:
    assert {trial.cell.model.rpartition(":")[2] for trial in sick_models.trials} == {
        "mlp",
        *(f"{name}_model" for name in MODELS),
    }
    assert [trial.status for trial in sick_models.trials if trial.cell.model == "mlp"] == ["ok"]
    assert sick_models.manifest.status == "finished"


@pytest.mark.parametrize("verb", [["show", "latest"], ["report", "latest"], ["export", "latest"], ["list"]])
def test_every_verb_reads_a_run_in_which_nothing_ended_well(sick_models: Run, tmp_path: Path, verb: list[str]) -> None:
    folder = tmp_path / "results" / sick_models.manifest.run_id
    folder.mkdir(parents=True)
    bad = [trial for trial in sick_models.trials if trial.status != "ok"]
    (folder / "run.json").write_bytes((sick_models.path / "run.json").read_bytes())
    (folder / "trials.jsonl").write_text("".join(trial.model_dump_json() + "\n" for trial in bad))
    done = run(*verb, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
