"""`pytest benchmarks/` as a user runs it, over planted measurements: in this process where no process is claimed."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# Imported here, once: a pytest inside this process forgets what it was the first to import, and would get another
# module than the one that is patched.
from benchmarks import suite  # noqa: F401
from harness.environment import usable_cores
from harness.pytest_plugin import telling  # noqa: F401
from harness.run.kinds import measure
from tests.benchmarks.planted_measure import planted

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
FAULTY = """
name = "faulty"
strategy = ["mirrored"]
replicas = [3]
cross_device_op = ["nccl", "hierarchical_copy", "reduction_to_one_device"]
batch_size = [64]
trials = 2
"""


IN_A_PROCESS = """
import sys, pytest
import harness.run.kinds.measure as measuring
from tests.benchmarks.planted_measure import planted
measuring.measure = planted
sys.exit(pytest.main())
"""
ARGUMENTS = ("-p", "no:cacheprovider", "benchmarks/")


@dataclass(frozen=True)
class Outcome:
    """What a pytest said and did."""

    code: int
    text: str
    folder: Path

    @property
    def asked(self) -> list[dict[str, Any]]:
        """What the suite asked to be measured, one entry a call."""
        log = self.folder / "asked.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    @property
    def saved(self) -> dict[str, Any]:
        """What --benchmark-json wrote, benchmarks by their parameter."""
        report = json.loads((self.folder / "b.json").read_text())
        return {benchmark["param"]: benchmark for benchmark in report["benchmarks"]}


Runner = Callable[..., Outcome]


@pytest.fixture
def run(pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    """Run `pytest benchmarks/` with further arguments; `plant` is the environment's PLANTED."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(measure, "measure", planted)
    monkeypatch.setenv("PLANTED_LOG", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "240")

    def start(*arguments: str, plant: str = "") -> Outcome:
        monkeypatch.setenv("PLANTED", plant)
        places = ("--benchmark-storage", str(tmp_path / "store"), "--results", str(tmp_path))
        done = pytester.runpytest_inprocess(*ARGUMENTS, *places, *arguments)
        return Outcome(int(done.ret), f"{done.stdout.str()}{done.stderr.str()}", tmp_path)

    return start


@pytest.fixture
def faulty(tmp_path: Path) -> str:
    """A spec with a cell that is unsupported, one that is wrong, and one that is right."""
    spec = tmp_path / "faulty.toml"
    spec.write_text(FAULTY)
    return str(spec)


def recorded_step_times(folder: Path, cell_id: str) -> list[float]:
    """Seconds a step of every measured window of the cell, from the records."""
    records = [json.loads(line) for line in (folder / "trials.jsonl").read_text().splitlines()]
    return [
        seconds / record["windows"]["steps_per_window"]
        for record in records
        if record["cell_id"] == cell_id
        for seconds in record["windows"]["seconds"][record["windows"]["measured_from"] :]
    ]


def test_every_measured_window_reaches_the_statistics_exactly(run: Runner, tmp_path: Path) -> None:
    outcome = run("--benchmark-json", str(tmp_path / "b.json"))
    assert outcome.code == 0, outcome.text
    assert len(outcome.saved) == 7
    for benchmark in outcome.saved.values():
        expected = recorded_step_times(outcome.folder, benchmark["extra_info"]["cell_id"])
        assert len(expected) == 3 * 10
        assert benchmark["stats"]["data"] == expected
        assert benchmark["stats"]["mean"] == pytest.approx(sum(expected) / len(expected), rel=1e-12)


def test_a_benchmark_carries_its_cell_its_throughput_with_interval_and_its_proof(run: Runner, tmp_path: Path) -> None:
    info = run("-k", "mirrored-2x64-hier", "--benchmark-json", str(tmp_path / "b.json")).saved[
        "mirrored-2x64-hierarchical_copy"
    ]["extra_info"]
    assert (info["cell"]["strategy"], info["cell"]["replicas"]) == ("mirrored", 2)
    throughput = info["throughput_examples_per_s"]
    assert throughput["low"] < throughput["value"] < throughput["high"]
    assert (throughput["method"], throughput["count"]) == ("t", 3)
    assert info["speed_up_over_no_strategy"]["method"] == "paired t"
    assert info["status"] == "ok"
    assert info["checks"]["update"] is True
    assert info["fingerprint"]
    assert info["run_id"]


def test_only_selected_cells_are_measured(run: Runner) -> None:
    outcome = run("-k", "mirrored-1x64 or central_storage-2x64")
    assert outcome.code == 0, outcome.text
    assert [asked["cells"] for asked in outcome.asked] == [["central_storage ×2 b64", "mirrored ×1 b64"]]


@pytest.mark.parametrize("arguments", [["--collect-only"], ["--benchmark-skip"], ["-k", "nothing_is_called_so"]])
def test_nothing_is_measured_when_nothing_is_run(run: Runner, arguments: list[str]) -> None:
    assert run(*arguments).asked == []


def test_a_wrong_cell_fails_with_its_evidence_and_an_unsupported_one_is_skipped_with_its_reason(
    run: Runner, faulty: str, tmp_path: Path
) -> None:
    outcome = run("--spec", faulty, "-rs", "--benchmark-json", str(tmp_path / "b.json"))
    assert outcome.code == 1
    assert "1 failed, 1 passed, 1 skipped" in outcome.text
    assert "replica 2's value is missing from the sum" in outcome.text
    assert "No OpKernel was registered to support Op 'NcclAllReduce'" in outcome.text
    assert list(outcome.saved) == ["mirrored-3x64-reduction_to_one_device"], "a wrong answer has no statistics"


def test_a_crashed_trial_beside_good_ones_is_a_warning_not_silence(run: Runner) -> None:
    outcome = run("-k", "mirrored-1x64", plant="crash")
    assert outcome.code == 0, outcome.text
    assert "crashed in 1 of its trials: ended by SIGSEGV during warmup" in outcome.text


def test_disabled_benchmarks_are_proved_in_one_short_trial_and_not_timed(run: Runner, tmp_path: Path) -> None:
    outcome = run("--benchmark-disable", "--benchmark-json", str(tmp_path / "b.json"))
    assert outcome.code == 0, outcome.text
    assert [(asked["trials"], asked["windows"]) for asked in outcome.asked] == [(1, 5)]
    assert not (tmp_path / "b.json").exists()


def test_a_saved_run_can_be_compared_with_and_a_regression_fails(run: Runner, tmp_path: Path) -> None:
    assert run("-k", "none", "--benchmark-save", "before").code == 0
    same = run("-k", "none", "--benchmark-compare", "--benchmark-compare-fail", "median:25%")
    assert same.code == 0, same.text
    assert "NOW" in same.text
    saved = next((tmp_path / "store").rglob("*before.json"))
    report = json.loads(saved.read_text())
    report["benchmarks"][0]["stats"]["median"] /= 2
    saved.write_text(json.dumps(report))
    slower = run("-k", "none", "--benchmark-compare", "--benchmark-compare-fail", "median:25%")
    assert slower.code != 0
    assert "Performance has regressed" in slower.text


def test_what_was_saved_under_an_earlier_name_of_its_cell_is_compared_by_the_cell(run: Runner, tmp_path: Path) -> None:
    assert run("-k", "none", "--benchmark-save", "before").code == 0
    saved = next((tmp_path / "store").rglob("*before.json"))
    report = json.loads(saved.read_text())
    for one in report["benchmarks"]:
        one["name"] = one["name"].replace("]", "-data=digits]")
        one["fullname"] = one["fullname"].replace("]", "-data=digits]")
        one["stats"]["median"] /= 2
    saved.write_text(json.dumps(report))
    slower = run("-k", "none", "--benchmark-compare", "--benchmark-compare-fail", "median:25%")
    assert slower.code != 0
    assert "Performance has regressed" in slower.text
    assert "test_step[none-1x64] (0001_before)" in slower.text


def test_benchmark_only_and_profiling_work(run: Runner) -> None:
    outcome = run("-k", "none", "--benchmark-only", "--benchmark-cprofile", "tottime")
    assert outcome.code == 0, outcome.text


def test_a_bad_spec_is_one_line(run: Runner, tmp_path: Path) -> None:
    spec = tmp_path / "bad.toml"
    spec.write_text('strategies = ["mirrored"]\n')
    outcome = run("--spec", str(spec))
    assert outcome.code == 2
    assert "unknown key 'strategies'; did you mean 'strategy'?" in outcome.text
    assert "Traceback" not in outcome.text


def test_results_that_cannot_be_written_fail_with_the_reason(run: Runner) -> None:
    outcome = run("-k", "none", plant="read-only")
    assert outcome.code == 1
    assert "Permission denied" in outcome.text
    assert "Traceback" not in outcome.text


def test_an_interrupted_measurement_ends_the_process_with_130(tmp_path: Path) -> None:
    command = [sys.executable, "-c", IN_A_PROCESS, *ARGUMENTS, "--results", str(tmp_path)]
    environment = {**os.environ, "PLANTED": "interrupted", "PLANTED_LOG": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 130
    assert "go on with" in done.stdout + done.stderr


def test_the_module_that_the_how_to_shows_measures_its_own_spec(run: Runner, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to.md").read_text(encoding="utf-8")
    code = page.partition("```python\n# benchmarks/bench_mine.py\n")[2].partition("```")[0]
    assert "SPEC = " in code
    # Outside benchmarks/ its conftest.py does not apply, so it is imported.
    (tmp_path / "bench_mine.py").write_text("from benchmarks.conftest import *  # noqa: F403\n" + code)
    outcome = run("-k", "bench_mine and mirrored-3x256", str(tmp_path / "bench_mine.py"))
    assert outcome.code == 0, outcome.text
    assert [asked["cells"] for asked in outcome.asked] == [["mirrored ×3 b256"]]


@pytest.mark.slow
def test_the_suite_measures_real_cells_in_processes_of_their_own(tmp_path: Path) -> None:
    spec = tmp_path / "real.toml"
    spec.write_text(
        'name = "real"\nstrategy = ["none", "mirrored"]\nreplicas = [3]\nbatch_size = [8]\n'
        'cross_device_op = ["auto", "hierarchical_copy"]\nmodel = ["mlp"]\ndata = ["synthetic"]\n'
        "trials = 1\nwindows = 5\nmax_warmup = 0\nwindow = 0.02\n"
        f"intra_op_threads = [{usable_cores()}]\n"  # one device is the whole machine then, and no base case is added
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "benchmarks/",
        "-p",
        "no:cacheprovider",
        "--spec",
        str(spec),
        "--results",
        str(tmp_path / "results"),
        "--benchmark-json",
        str(tmp_path / "b.json"),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "the value of replica 2 is missing" in done.stdout
    benchmarks = json.loads((tmp_path / "b.json").read_text())["benchmarks"]
    run_id = benchmarks[0]["extra_info"]["run_id"]
    records = (tmp_path / "results" / run_id / "trials.jsonl").read_text().splitlines()
    measured = {benchmark["extra_info"]["cell_id"]: benchmark for benchmark in benchmarks}
    for line in records:
        record = json.loads(line)
        if record["cell_id"] in measured:
            windows = record["windows"]
            first = windows["seconds"][windows["measured_from"]] / windows["steps_per_window"]
            assert first in measured[record["cell_id"]]["stats"]["data"]
