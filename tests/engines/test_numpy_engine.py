"""A whole sweep with an engine that is no TensorFlow: gate, turns, records, report, and every way to end."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.analysis.summary import summarise
from harness.cli import run as in_this_process
from harness.record.reading import Run, load_run
from harness.record.trial import TrialRecord
from tests.engines.numpy_engine import flags

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def ended(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """`python -m harness ARGUMENTS`, however it ended."""
    return subprocess.run(
        [sys.executable, "-m", "harness", *arguments],
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def harness(*arguments: str) -> str:
    """What a verb writes; it must succeed."""
    done = ended(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a sweep of every model that the engine has."""
    results = tmp_path_factory.mktemp("results")
    models = "line,loses_a_gradient,loses_it_late,leaves_out_a_loss,dies,hangs"
    told = harness(
        "sweep", "--json", *flags(model=models, strategy="threads", replicas="2", timeout="1", results=str(results))
    )
    return Path(json.loads(told)["path"])


@pytest.fixture(scope="module")
def run(swept: Path) -> Run:
    return load_run(swept)


@pytest.mark.parametrize(("model", "period"), [("loses_thirds", 3), ("loses_fourths", 4)])
def test_a_fault_that_comes_and_goes_is_found_in_one_of_as_many_blocks(tmp_path: Path, model: str, period: int) -> None:
    asked = flags(model=model, strategy="threads", replicas="2", trials=str(period), results=str(tmp_path))
    run = load_run(Path(json.loads(ended("sweep", "--json", *asked).stdout)["path"]))
    found = [trial for trial in run.trials if trial.cell.replicas == 2 and trial.checks.late is False]
    assert len(found) == 1


def trials_of(run: Run, model: str, replicas: int = 2) -> list[TrialRecord]:
    found = [trial for trial in run.trials if trial.cell.model == model and trial.cell.replicas == replicas]
    assert len(found) == 2
    return found


def test_good_trials_are_proved_take_turns_and_are_measured(run: Run) -> None:
    for trial in (*trials_of(run, "line"), *trials_of(run, "line", replicas=1)):
        assert (trial.status, trial.reason) == ("ok", None)
        assert trial.checks.complete
        assert trial.checks.updates_applied == trial.checks.updates_scheduled
        assert trial.interleaving == "turns"
        assert trial.windows is not None
        assert len(trial.windows.seconds) >= 5
        assert trial.throughput_examples_per_s
        assert trial.executed.operations == {"sum": trial.cell.replicas}


def test_no_trial_has_tensorflow_in_its_process(run: Run) -> None:
    """The engine lets a trial crash that finds it there."""
    assert not any("TensorFlow" in (trial.reason or "") for trial in run.trials)


def test_a_gradient_that_is_left_out_is_a_wrong_result_with_the_evidence(run: Run) -> None:
    for trial in trials_of(run, "loses_a_gradient"):
        assert trial.status == "wrong_result"
        assert trial.checks.reduction is True
        assert trial.checks.update is False
        assert trial.checks.update_error is not None
        assert trial.checks.update_error > 1
        assert "away from the single-device reference" in trial.checks.detail["update"]
        assert trial.throughput_examples_per_s is None


def test_a_good_trial_knows_what_it_would_have_seen(run: Run) -> None:
    alone, both = trials_of(run, "line", replicas=1)[0].checks, trials_of(run, "line")[0].checks
    assert (alone.late, alone.loss, both.late, both.loss) == (True, True, True, True)
    assert alone.sight is not None
    assert both.sight is not None
    assert (set(alone.sight), set(both.sight)) == ({"doubled"}, {"missing", "doubled", "averaged"})
    assert min(both.sight.values()) > 10


def test_a_gradient_that_is_left_out_after_the_gate_is_a_wrong_result_with_the_evidence(run: Run) -> None:
    for trial in trials_of(run, "loses_it_late"):
        assert trial.status == "wrong_result"
        assert (trial.checks.update, trial.checks.late, trial.checks.loss) == (True, False, True)
        assert trial.checks.updates_applied == trial.checks.updates_scheduled
        assert f"after update {trial.checks.updates_scheduled} slot" in trial.checks.detail["late"]


def test_a_reported_loss_that_leaves_a_replica_out_is_a_wrong_result_with_both_numbers(run: Run) -> None:
    for trial in trials_of(run, "leaves_out_a_loss"):
        assert trial.status == "wrong_result"
        assert (trial.checks.update, trial.checks.loss) == (True, False)
        assert "the mean over the global batch is" in trial.checks.detail["loss"]


def test_a_crash_is_a_record_with_signal_and_stack(run: Run) -> None:
    for trial in trials_of(run, "dies"):
        assert (trial.status, trial.reason) == ("crashed", "ended by SIGSEGV during warmup")
        assert "_go_wrong" in (trial.evidence or "")


def test_a_hang_is_a_record_with_the_stack_of_where_it_hangs(run: Run) -> None:
    for trial in trials_of(run, "hangs"):
        assert trial.status == "timeout"
        assert trial.reason == "no sign of life within 1 s during warmup"
        assert "_go_wrong" in (trial.evidence or "")


def test_the_sweep_has_a_report_and_its_cells_a_summary(run: Run, swept: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert in_this_process(["report", str(swept), "--output", str(page)]) == 0
    assert "loses_a_gradient" in page.read_text(encoding="utf-8")
    cells = [of.trials.cell for of in summarise(run.manifest, run.trials).cells if of.trials.cell.model == "line"]
    assert {cell.strategy for cell in cells} == {"none", "threads"}


def test_the_engine_is_in_the_manifest_in_each_cell_and_in_what_was_executed(run: Run) -> None:
    asked = "tests.engines.numpy_engine:NumpyEngine"
    assert run.manifest.sweep.asked("engine") == [asked]
    assert {trial.cell.engine for trial in run.trials} == {asked}
    assert {trial.executed.engine for trial in run.trials if trial.measured} == {"numpy"}


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_sweep_in_which_nothing_was_measured_is_exit_code_one_and_says_why(tmp_path: Path, more: list[str]) -> None:
    arguments = flags(model="dies", strategy="none", replicas="1", trials="1", results=str(tmp_path))
    done = ended("sweep", *arguments, "--quiet", *more)
    assert done.returncode == 1
    assert done.stderr.startswith("harness: nothing was measured: crashed: ended by SIG")
    assert done.stderr.count("\n") == 1
    [path] = tmp_path.iterdir()
    assert str(path) in done.stdout


def test_a_check_of_ones_own_that_is_not_there_is_named_before_anything_is_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check = "tests.trial.test_own_check:absent"
    assert in_this_process(["sweep", *flags(check=check, results=str(tmp_path))]) == 2
    assert f"check: '{check}': module 'tests.trial.test_own_check' has no 'absent'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ("nosuch", "engine: 'nosuch' is not one of horovod, jax"),
        ("nosuch.module:engine", "engine: 'nosuch.module:engine': cannot import 'nosuch.module'"),
        ("os:getcwd", "engine: 'os:getcwd': expected an engine (harness.protocol.engine), given str"),
        ("tests.engines.numpy_engine:broken", "engine: 'tests.engines.numpy_engine:broken': OSError: no such chip"),
        ("tests.engines.numpy_engine:Nameless", "expected an engine with a name, its attribute `name`"),
        ("tests.engines.numpy_engine:Unlicensed", ":Unlicensed': ValueError: no licence"),
        ("tests.engines.numpy_engine:Uncatalogued", "its catalogue is no Catalogue (harness.spec.catalogue), but dict"),
        ("tests.engines.numpy_engine:Baseless", "has no strategy 'none', with which others are compared; add it"),
        ("tests.engines.numpy_engine:Refusing", "refuses 'windws', which is no key of a spec; did you mean 'windows'?"),
    ],
)
def test_an_engine_that_is_not_there_or_no_sweep_can_be_planned_by_is_named(
    engine: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert in_this_process(["sweep", *flags(engine=engine, results=str(tmp_path))]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert (error.startswith("harness: engine: '"), error.count("\n")) == (True, 1)
