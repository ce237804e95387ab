"""`ab` and `validate` from end to end with real TensorFlow, as small as they can be, and what reads their records."""

import json
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.analysis.comparison.pairs import pairs_of
from harness.record import Run, load_run
from harness.record.validation import find_validation, load_validation
from tests.cli.real import SMALL, only_run, processes_of, run, start, still_alive, wait_for_lines
from tests.engines.numpy_engine import flags

pytestmark = pytest.mark.slow

TINY = [flag for flag in SMALL if not flag.startswith("--trials")]
ONE = [*TINY, "--strategy=none", "--replicas=1"]
WIDE = ["--delta=30%", "--epsilon=60%"]
"""Margins beyond any noise of so few windows: these tests are not about a verdict."""
TWO_BLOCKS = ["--max-blocks=2"]
OWN = flags("trials", strategy="threads", replicas="2")
"""A cell of the tests' own engine."""


@dataclass(frozen=True)
class Done:
    folder: Path
    code: int
    out: str
    error: str
    stored: Run


@pytest.fixture(scope="session")
def same(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """One cell against itself, in two blocks."""
    folder = tmp_path_factory.mktemp("the same λ")
    done = run("ab", *ONE, *WIDE, *TWO_BLOCKS, "--strict", "--json", folder=folder)
    assert done.returncode in (0, 3), done.stderr
    return Done(folder, done.returncode, done.stdout, done.stderr, only_run(folder / "results"))


def test_a_cell_against_itself_is_equivalent_or_undecided_and_says_so(same: Done) -> None:
    whole = json.loads(same.out)
    assert {0: "equivalent", 3: "undecided"}[same.code] == whole["verdict"]
    assert (whole["blocks"], whole["delta"], whole["epsilon"]) == (2, 0.3, 0.6)
    assert whole["ci95"][0] < whole["ratio"] < whole["ci95"][1]
    assert whole["noise"] > 0
    assert 1 < whole["wall_s"] < 600


def test_both_sides_of_each_block_ran_together_in_fresh_processes(same: Done) -> None:
    stored = same.stored
    assert stored.manifest.status == "finished"
    assert [(trial.status, trial.reason) for trial in stored.trials] == [("ok", None)] * 4
    assert [pair.block for pair in pairs_of(stored.trials)] == [0, 1]
    assert all(trial.checks.complete for trial in stored.trials)
    assert len({trial.windows.steps_per_window for trial in stored.trials if trial.windows}) == 1
    for pair in pairs_of(stored.trials):
        assert pair.a.windows is not None
        assert pair.b.windows is not None
        assert pair.a.windows.rounds == pair.b.windows.rounds


def test_what_was_compared_is_in_the_record(same: Done) -> None:
    comparison = same.stored.manifest.comparison
    assert comparison is not None
    assert {side.cell_id for side in comparison.sides} == {same.stored.manifest.cells[0].cell_id}
    assert comparison.sides[0].versions == comparison.sides[1].versions
    assert comparison.sides[0].versions["tensorflow"]


def test_with_json_nothing_else_is_said(same: Done) -> None:
    assert same.error == ""


@pytest.mark.parametrize("verb", ["show", "report", "export", "list", "compare"])
def test_every_verb_reads_the_run(same: Done, verb: str) -> None:
    done = run(verb, *([] if verb == "list" else ["latest"]), folder=same.folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout
    if verb == "report":
        [page] = (file for file in (same.folder / "reports").glob("*.html") if file.name != "index.html")
        assert "B against A" in page.read_text(encoding="utf-8")


def test_a_run_that_is_finished_is_shown_again_without_measuring(same: Done) -> None:
    before = (same.stored.path / "trials.jsonl").read_bytes()
    done = run("ab", "--resume", "latest", "--strict", "--json", folder=same.folder)
    assert done.returncode == same.code, done.stderr
    again, first = json.loads(done.stdout), json.loads(same.out)
    assert (again["verdict"], again["ratio"], again["ci95"]) == (first["verdict"], first["ratio"], first["ci95"])
    assert (same.stored.path / "trials.jsonl").read_bytes() == before


def test_sides_that_differ_in_batch_size_and_seed_are_two_cells(tmp_path: Path) -> None:
    """With the tests' own engine: it is about the sides."""
    sides = ["--a", "seed=7", "--b", "batch_size=64"]
    done = run("ab", *OWN, *WIDE, *TWO_BLOCKS, *sides, "--json", folder=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    whole = json.loads(done.stdout)
    assert (whole["a"], whole["b"]) == ("batch_size=32, seed=7", "batch_size=64, seed=1")
    stored = only_run(tmp_path / "results")
    assert {(trial.side, trial.cell.batch_size) for trial in stored.trials} == {("a", 32), ("b", 64)}
    assert whole["blocks"] == 2


def test_sides_of_two_engines_are_each_trained_by_their_own(tmp_path: Path) -> None:
    ours = "tests.engines.numpy_engine"
    cell = flags("engine", "trials", strategy="threads", replicas="2")
    sides = ["--a", f"engine={ours}:NumpyEngine", "--b", f"engine={ours}:NumpyAgain"]
    done = run("ab", *cell, *sides, *WIDE, *TWO_BLOCKS, "--json", folder=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    whole = json.loads(done.stdout)
    assert (whole["a"], whole["b"]) == (f"engine={ours}:NumpyEngine", f"engine={ours}:NumpyAgain")
    trials = only_run(tmp_path / "results").trials
    ran = [(trial.block, trial.side, trial.executed.engine, trial.status) for trial in trials]
    of_each_block = [("a", "numpy", "ok"), ("b", "numpy_again", "ok")]
    assert sorted(ran) == [(block, *side) for block in (0, 1) for side in of_each_block]


def test_a_side_that_computes_the_wrong_thing_is_no_verdict_fails_and_ends_it_at_once(tmp_path: Path) -> None:
    flags = [*TINY, "--strategy=mirrored", "--replicas=2", "--b", "cross_device_op=tests.planted:dropped_op"]
    done = run("ab", *flags, folder=tmp_path)
    assert done.returncode == 1, done.stderr
    said = " ".join(done.stdout.split())
    assert "invalid" in said
    assert "B gave a wrong result" in said
    stored = only_run(tmp_path / "results")
    assert {(trial.side, trial.status) for trial in stored.trials} == {("a", "ok"), ("b", "wrong_result")}
    assert {trial.block for trial in stored.trials} == {0}
    assert stored.manifest.status == "finished"
    assert run("show", "latest", folder=tmp_path).returncode == 0


def test_a_users_own_that_cannot_be_loaded_is_bad_usage_and_nothing_is_written(tmp_path: Path) -> None:
    done = run("ab", *ONE, "--b", "model=no.such.package:model", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "cannot import 'no.such.package'" in done.stderr
    assert list(tmp_path.iterdir()) == []


# stopped


FOUR_BLOCKS = [*WIDE, "--max-blocks=4"]


def gone_on(folder: Path, path: Path, before: list[Any]) -> Run:
    """Resume the run in `path`, and check that nothing was lost and nothing is missing."""
    done = run("ab", "--resume", str(path), "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    after = load_run(path)
    assert after.trials[: len(before)] == before
    assert [pair.block for pair in pairs_of(after.trials)] == [0, 1, 2, 3]
    assert after.manifest.status == "finished"
    keys = [(trial.side, trial.block, trial.attempt) for trial in after.trials]
    assert len(set(keys)) == len(keys)
    assert json.loads(done.stdout)["blocks"] == 4
    return after


def started(folder: Path, lines: int) -> tuple[Any, Path]:
    """An `ab` that has so many records, and its folder. With the tests' own engine: these tests are about the run."""
    cell = flags("trials", strategy="threads", replicas="2", windows="5", window="0.03", timeout="60")
    process = start("ab", *cell, *FOUR_BLOCKS, folder=folder)
    return process, wait_for_lines(folder / "results", lines, limit_s=120)


def test_ctrl_c_ends_it_and_leaves_no_process_and_going_on_completes_it(tmp_path: Path) -> None:
    process, path = started(tmp_path, 2)
    children = processes_of(process)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert still_alive(children) == []
    last = error.splitlines()[-1]
    assert last.endswith(f"go on with: python -m harness ab --resume results/{path.name}")
    stored = load_run(path)
    assert stored.manifest.status == "interrupted"
    after = gone_on(tmp_path, path, stored.trials)
    assert len({trial.windows.steps_per_window for trial in after.trials if trial.windows}) == 1


def test_a_kill_leaves_no_process_and_going_on_completes_it(tmp_path: Path) -> None:
    process, path = started(tmp_path, 3)
    children = processes_of(process)
    process.kill()
    process.communicate()
    assert children
    assert still_alive(children) == []
    assert "killed" in run("list", folder=tmp_path).stdout
    gone_on(tmp_path, path, load_run(path).trials)


# validate


@pytest.fixture(scope="session")
def validated(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """A round of one cell of each sort: for the shape of a record, not for what it finds."""
    folder = tmp_path_factory.mktemp("validation")
    done = run("validate", *ONE, "--rounds=2", *TWO_BLOCKS, folder=folder)
    assert done.returncode == 0, done.stderr
    return Done(folder, done.returncode, done.stdout, done.stderr, only_run(folder / "results"))


def test_a_validation_runs_every_arm_in_every_block(validated: Done) -> None:
    plan = validated.stored.manifest.validation
    assert plan is not None
    assert [len(of.blocks) for of in plan.rounds] == [2, 2]
    found = {(trial.block, trial.side): trial.plant for trial in validated.stored.trials if trial.status == "ok"}
    assert found == {(block, arm.name): arm.plant for of in plan.rounds for block in of.blocks for arm in of.arms}
    assert len(validated.stored.trials) == len(found)
    assert validated.stored.manifest.status == "finished"


def test_its_record_is_written_and_printed(validated: Done) -> None:
    record = load_validation(validated.stored.path)
    assert record.complete
    assert (record.pilot_blocks, record.max_blocks, record.windows) == (2, 2, 5)
    found = {(effect.plant, effect.share) for effect in record.effects}
    assert found == {(None, 0.0), ("device_work", 0.03)}
    assert len(record.floors) == len(record.turns) == 1
    assert [spread.zygotes for spread in record.spreads] == [1, 2]
    for text in ("The method, measured", "A/A, false alarms", "records: results/"):
        assert text in validated.out


def test_ab_and_compare_cite_it_and_take_its_noise_floor(validated: Done, tmp_path: Path) -> None:
    """With the tests' own engine: it is this machine's, whatever is compared there."""
    results = ["--results", str(validated.folder / "results")]
    record = load_validation(validated.stored.path)
    assert find_validation(validated.folder / "results", record.machine_id) is not None
    floor = record.floor() or 0
    given = ["--delta", "50%"] if floor >= 1 else []  # two rounds on a busy machine: it then says so and asks for one
    done = run("ab", *OWN, *TWO_BLOCKS, *results, *given, "--json", folder=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    whole = json.loads(done.stdout)
    assert whole["validation"] == record.run_id
    assert whole["delta"] == pytest.approx(0.5 if given else max(0.01, floor))
    again = run("compare", whole["path"], *results, "--json", folder=tmp_path)
    assert json.loads(again.stdout)["validation"] == record.run_id


def test_a_validation_that_is_finished_is_printed_again_without_measuring(validated: Done) -> None:
    before = (validated.stored.path / "trials.jsonl").read_bytes()
    done = run("validate", "--resume", validated.stored.path.name, "--json", folder=validated.folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["complete"] is True
    assert (validated.stored.path / "trials.jsonl").read_bytes() == before
