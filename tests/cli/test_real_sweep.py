"""A sweep from end to end with real TensorFlow, and every verb on what it leaves."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.environment import usable_cores
from harness.record import Run
from tests.cli.real import ROOT, SMALL, only_run, repeated, run, start, unmeasured
from tests.engines.numpy_engine import flags

pytestmark = pytest.mark.slow

WATCHED = """
import sys
from harness.cli import run
code = run(sys.argv[1:])
loaded = sorted({"tensorflow", "keras", "tensorflow_datasets"} & set(sys.modules))
sys.stderr.write(f"imported: {loaded}\\n")
sys.exit(code)
"""

CELLS = 3 + (usable_cores() > 1)
"""No strategy, on one device and, where that is more, on the whole machine; one replica and two, of which a step takes
other types."""


@dataclass(frozen=True)
class Done:
    results: Path
    out: str
    error: str
    stored: Run


@pytest.fixture(scope="session")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """None and mirrored, from a folder with a space in its name."""
    folder = tmp_path_factory.mktemp("a folder λ")
    (folder / "elsewhere").mkdir()
    (folder / "linked").symlink_to("elsewhere")
    axes = ["--strategy", "none,mirrored", "--replicas", "1,2"]
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, "sweep", *SMALL, *axes, "--results", "linked/results"],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return Done(folder / "linked" / "results", done.stdout, done.stderr, only_run(folder / "elsewhere" / "results"))


def test_every_cell_is_measured_and_proved(sweep: Done) -> None:
    stored = sweep.stored
    assert (len(stored.manifest.cells), len(stored.trials)) == (CELLS, CELLS)
    assert unmeasured(stored) == []
    assert repeated(stored.trials) == []
    assert all(trial.checks.complete for trial in stored.trials)
    assert stored.manifest.status == "finished"


def test_the_parent_never_imports_tensorflow(sweep: Done) -> None:
    assert sweep.error.splitlines()[-1] == "imported: []"


def test_a_pipe_gets_plain_lines_and_the_answer_goes_to_standard_output(sweep: Done) -> None:
    lines = sweep.error.splitlines()
    assert lines[0].startswith("run ")
    assert sum("examples/s" in line for line in lines) == CELLS
    assert "\x1b" not in sweep.error
    assert sweep.out.startswith("The highest throughput: ")
    assert len(sweep.out.splitlines()) <= 7  # with the line of `report`, the eight of `make sweep`
    assert "report:  python -m harness report linked/results/" in sweep.out


def test_every_phase_and_the_waiting_are_recorded(sweep: Done) -> None:
    for trial in sweep.stored.trials:
        phases = trial.phases.model_dump()
        assert phases.pop("alone_s") is None  # of workers in lock-step only
        assert all(seconds is not None for seconds in phases.values()), phases
    longest = max(trial.phases.waiting_s or 0 for trial in sweep.stored.trials)
    assert longest > 0.5  # the first to be set up waits for the others


def test_a_trial_that_waits_uses_next_to_no_processor_time(sweep: Done) -> None:
    for trial in sweep.stored.trials:
        assert trial.windows is not None
        assert trial.windows.waiting_cpu_seconds < 0.1 * (trial.phases.waiting_s or 0) + 0.05


def test_every_verb_reads_the_run(sweep: Done, tmp_path: Path) -> None:
    given = ["--results", str(sweep.results)]
    listed = json.loads(run("list", *given, "--json", folder=tmp_path).stdout)
    assert [(row["status"], row["trials"]) for row in listed] == [("finished", CELLS)]
    table = run("show", "latest", *given, folder=tmp_path)
    assert table.returncode == 0
    page = run("report", "latest", *given, "--output", "page.html", folder=tmp_path)
    assert (page.returncode, page.stderr) == (0, "")
    assert "</html>" in (tmp_path / "page.html").read_text()
    rows = run("export", "latest", *given, "--format", "csv", folder=tmp_path).stdout.splitlines()
    assert len(rows) == 1 + CELLS


def test_resuming_what_is_complete_measures_nothing(sweep: Done, tmp_path: Path) -> None:
    before = (sweep.stored.path / "trials.jsonl").read_bytes()
    done = run("sweep", "--resume", str(sweep.stored.path), "--json", folder=tmp_path)
    assert done.returncode == 0
    assert json.loads(done.stdout)["trials"] == {"ok": CELLS}
    assert (sweep.stored.path / "trials.jsonl").read_bytes() == before


def test_two_sweeps_at_once_in_one_folder_do_not_disturb_each_other(tmp_path: Path) -> None:
    """With the tests' own engine: it is about the folder."""
    both = [
        start("sweep", *flags(strategy="none", replicas="1", trials="1"), "--json", folder=tmp_path) for _ in range(2)
    ]
    answers = [json.loads(process.communicate(timeout=120)[0]) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert [answer["trials"] for answer in answers] == [{"ok": 1}, {"ok": 1}]
    assert len({answer["path"] for answer in answers}) == 2
    listed = json.loads(run("list", "--json", folder=tmp_path).stdout)
    assert [(row["status"], row["problem"]) for row in listed] == [("finished", None)] * 2


@pytest.mark.parametrize(
    ("flag", "says"),
    [
        ("--model=no.such.package:model", "cannot import 'no.such.package'"),
        ("--cross-device-op=tests.planted:no_such_op", "cross_device_op: 'tests.planted:no_such_op'"),
    ],
)
def test_a_users_own_that_cannot_be_loaded_is_bad_usage_and_nothing_is_written(
    tmp_path: Path, flag: str, says: str
) -> None:
    done = run("sweep", *SMALL, "--strategy", "mirrored", "--replicas", "2", flag, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
    assert list(tmp_path.iterdir()) == []
