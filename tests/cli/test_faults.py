"""`harness faults` and the verbs that read its runs."""

import json
from pathlib import Path

import pytest

from harness.cli import run
from tests.faulted import job, write_example


def test_a_dry_run_lists_the_jobs_and_what_makes_no_sense(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["faults", "--strategy", "mirrored", "--fault", "kill_ps,restart", "--repeats", "1", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "5 jobs of 100 steps, about" in out
    assert "mirrored/kill_ps/0 (not run: mirrored has no parameter servers)" in out


def test_flags_and_the_spec_are_two_spellings_of_one_plan(capsys: pytest.CaptureFixture[str]) -> None:
    plans = []
    for arguments in (["benchmarks/faults.toml"], ["--seed", "1"], ["benchmarks/faults.toml", "--seed", "2"]):
        assert run(["faults", *arguments, "--dry-run", "--json"]) == 0
        plans.append(json.loads(capsys.readouterr().out))
    assert plans[0] == plans[1]
    assert plans[0]["sha256"] != plans[2]["sha256"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--fault", "kill_wroker"], "fault: given 'kill_wroker', expected"),
        (["--checkpoint-every", "x"], "checkpoint_every: given 'x', expected a whole number"),
        (["--model", "resnet19"], "model: 'resnet19' is not one of"),
        (["--engine", "torhc"], "engine: 'torhc' is not one of"),
        (["--engine", "torch,torch"], "engine: given ['torch', 'torch']: a value is listed twice"),
        (["--engine", "torch", "--strategy", "mirrored"], "strategy: 'mirrored' is not one of none, data_parallel"),
        (["--engine", "jax", "--engine-python", "jax=/nowhere"], "engine_python: jax: no file at '/nowhere'"),
        (["--resume", "latest", "--seed", "3"], "it takes no --seed"),
        (["--resume", "latest", "--dry-run"], "it takes no --dry-run"),
        (["--resume", "latest", "benchmarks/faults.toml"], "it takes no SPEC"),
        (["nowhere.toml"], "SPEC: no file at 'nowhere.toml'"),
    ],
)
def test_a_wrong_flag_is_one_line_and_exit_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(["faults", *arguments, "--results", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_show_list_and_report_read_a_run_of_faults(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write_example(tmp_path)
    at = ["--results", str(tmp_path)]
    assert run(["show", "latest", *at]) == 0
    assert "WRONG WEIGHTS" in capsys.readouterr().out
    assert run(["show", "latest", "--json", *at]) == 0
    assert json.loads(capsys.readouterr().out)["recorded"] == 11
    assert run(["list", *at]) == 0
    assert "11 of 30 jobs" in " ".join(capsys.readouterr().out.split())
    page = tmp_path / "page.html"
    assert run(["report", "latest", "--output", str(page), *at]) == 0
    assert "What a fault costs" in page.read_text()


@pytest.mark.parametrize("status", ["unsupported", "failed", "hung"])
def test_a_run_in_which_no_job_came_to_its_fault_is_exit_code_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, status: str
) -> None:
    ended = {"status": status, "reason": "no room", "fault_step": None}
    path = write_example(tmp_path, [job("mirrored", "kill_worker", 20, repeat, **ended) for repeat in range(2)])
    monkeypatch.setattr("harness.run.kinds.faults.run.measure_faults", lambda *_: path)
    assert run(["faults", "--results", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"harness: nothing was measured: {status}: no room\n"


def test_a_job_that_was_lost_to_its_fault_is_a_measurement(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = write_example(tmp_path, [job("mirrored", "kill_worker", 0, status="hung", reason="no step")])
    monkeypatch.setattr("harness.run.kinds.faults.run.measure_faults", lambda *_: path)
    assert run(["faults", "--results", str(tmp_path)]) == 0


def test_verbs_that_measure_throughput_say_what_the_run_is(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write_example(tmp_path)
    at = ["--results", str(tmp_path)]
    assert run(["export", "latest", *at]) == 2
    assert "is a run of faults" in capsys.readouterr().err
    assert run(["compare", "latest", "--along", "strategy", *at]) == 2
    assert "RUN_A: '" in (said := capsys.readouterr().err)
    assert "no throughput to compare" in said
    assert run(["sweep", "--resume", "latest", *at]) == 2
    assert "go on with: python -m harness faults --resume" in capsys.readouterr().err
