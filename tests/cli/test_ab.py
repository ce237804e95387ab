"""`ab` on the command line: what it takes, what it says, and with which exit code; nothing is measured here."""

import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness.environment import facts, hardware
from harness.record import Run, load_run
from harness.record.validation import write_validation
from harness.run.kinds.decision import AbSettings
from harness.run.kinds.sides import Side
from tests.comparisons import ab_run, stored, sweep_run, validation
from tests.run.repositories import Repo
from tests.synthetic import failed

Harness = Callable[..., tuple[int, str, str]]
SLOWER = [-0.06, -0.062, -0.058, -0.061]
SAME = [0.001, -0.001, 0.0005, 0.0]
NOISY: list[float | None] = [0.3, -0.3, 0.2]
SIDES = ("--strategy", "mirrored", "--replicas", "2")


@pytest.fixture
def harness(harness: Harness) -> Harness:
    """`harness ab ARGUMENTS` in an empty folder: exit code, standard output, standard error."""
    return partial(harness, "ab")


@dataclass
class Decider:
    """Stands in for `decide`: gives a run with these differences, and keeps what was asked."""

    differences: Sequence[float | None] = field(default_factory=lambda: list(SAME))
    change: Callable[[Run], Run] = lambda made: made
    asked: list[tuple[tuple[Side, Side], AbSettings, Sequence[str]]] = field(default_factory=list)

    def __call__(
        self, sides: tuple[Side, Side], settings: AbSettings, results: Path, command: Sequence[str], progress: object
    ) -> Run:
        self.asked.append((sides, settings, command))
        margins = settings.margins
        made = ab_run(
            self.differences,
            delta=margins.delta,
            epsilon=margins.epsilon,
            margins_source=margins.source,
            max_blocks=settings.max_blocks,
        )
        return load_run(stored(self.change(made), results))

    @property
    def settings(self) -> AbSettings:
        return self.asked[-1][1]

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.asked[-1][0]


@pytest.fixture
def decider(monkeypatch: pytest.MonkeyPatch) -> Decider:
    made = Decider()
    monkeypatch.setattr("harness.run.kinds.ab.decide", made)
    return made


def test_one_commit_on_both_sides_is_said_on_standard_error(harness: Harness, decider: Decider) -> None:
    repository = Repo(Path.cwd())
    repository.git("init", "--quiet", "--initial-branch=main")
    commit = repository.commit({"net.py": ""})
    asked = ("--model", "net:make", "--rev-a", "main", "--rev-b", "HEAD")
    said = f"A and B are the same commit, {commit[:7]}: this is A against A, which only noise tells apart\n"
    assert harness(*asked)[2].startswith(said)
    assert said not in harness(*asked, "--quiet")[2]
    assert len(decider.asked) == 2


def wrong(made: Run) -> Run:
    """Side b's first trial computed the wrong thing."""
    b = next(trial for trial in made.trials if trial.side == "b")
    bad = failed(b, "wrong_result", "update: off by 0.5", phase="check")
    return replace(made, trials=[bad if trial is b else trial for trial in made.trials])


# the answer


@pytest.mark.parametrize(
    ("differences", "flags", "code", "says"),
    [
        (SLOWER, (), 1, "slower"),
        (SLOWER, ("--strict",), 1, "slower"),
        ([-value for value in SLOWER], ("--strict",), 0, "faster"),
        (SAME, ("--strict",), 0, "equivalent"),
        (NOISY, (), 0, "undecided"),
        (NOISY, ("--strict",), 3, "undecided"),
    ],
)
def test_the_exit_code_is_the_verdict(
    harness: Harness, decider: Decider, differences: Sequence[float], flags: tuple[str, ...], code: int, says: str
) -> None:
    decider.differences = differences
    ended, out, error = harness(*SIDES, *flags)
    assert (ended, error) == (code, "")
    assert says in out


def test_a_side_b_that_computes_the_wrong_thing_is_exit_code_one_with_the_reason(
    harness: Harness, decider: Decider
) -> None:
    decider.differences, decider.change = SLOWER, wrong
    code, out, _ = harness(*SIDES)
    assert code == 1
    assert "update: off by 0.5" in " ".join(out.split())
    assert json.loads(harness(*SIDES, "--json", "--results", "again")[1])["verdict"] == "invalid"


def test_json_is_one_object_with_what_a_script_needs(harness: Harness, decider: Decider) -> None:
    decider.differences = SLOWER
    code, out, error = harness(*SIDES, "--json", "--delta", "2%", "--epsilon", "4%")
    whole = json.loads(out)
    assert (code, error) == (1, "")
    assert whole["verdict"] == "slower"
    assert whole["ratio"] == pytest.approx(math.exp(sum(SLOWER) / 4))
    assert whole["ci95"][0] < whole["ratio"] < whole["ci95"][1] < 0.98
    assert (whole["blocks"], whole["delta"], whole["epsilon"]) == (4, 0.02, 0.04)
    assert 0.001 < whole["noise"] < 0.003
    assert 0 <= whole["wall_s"] < 60
    assert Path(whole["path"]).is_dir()


def test_an_undecided_end_says_what_more_it_would_take_and_where_the_records_are(
    harness: Harness, decider: Decider
) -> None:
    decider.differences = [0.03, -0.03, 0.02, -0.02]
    _, out, _ = harness(*SIDES)
    assert "--max-blocks" in out
    assert "records: results/ab-run" in out
    assert "report: python -m harness report results/ab-run" in out


# what is asked of it


def test_what_sets_the_sides_apart_comes_from_a_and_b(harness: Harness, decider: Decider) -> None:
    harness(*SIDES, "--a", "cross_device_op=auto", "--b", "cross_device_op=hierarchical_copy", "--b", "env.TF_X=1")
    one, two = decider.sides
    assert (one.cell.cross_device_op, two.cell.cross_device_op) == ("auto", "hierarchical_copy")
    assert (one.environment, two.environment) == ({}, {"TF_X": "1"})
    assert one.cell.replicas == two.cell.replicas == 2


def test_two_specs_are_the_two_sides(harness: Harness, decider: Decider, tmp_path: Path) -> None:
    for name, size in (("one", 32), ("two", 48)):
        (tmp_path / f"{name}.toml").write_text(f'strategy = "mirrored"\nreplicas = 2\nbatch_size = {size}\n')
    assert harness("one.toml", "two.toml")[0] == 0
    assert [side.cell.batch_size for side in decider.sides] == [32, 48]


def test_windows_are_many_and_short_unless_something_else_is_asked(harness: Harness, decider: Decider) -> None:
    harness(*SIDES)
    assert [(side.sweep.window, side.sweep.windows) for side in decider.sides] == [(0.02, 100)] * 2
    harness(*SIDES, "--windows", "9", "--results", "other")
    assert [side.sweep.windows for side in decider.sides] == [9, 9]


@pytest.mark.parametrize(
    ("flags", "looks"),
    [
        ((), (5, 8, 12, 18)),
        (("--max-blocks", "4"), (4,)),
        (("--max-blocks", "12"), (5, 8, 12)),
        (("--looks", "20"), (20,)),
        (("--looks", "6,20"), (6, 20)),
    ],
)
def test_looks_are_those_that_were_given_or_by_the_most_blocks(
    harness: Harness, decider: Decider, flags: tuple[str, ...], looks: tuple[int, ...]
) -> None:
    harness(*SIDES, *flags)
    assert decider.settings.looks == looks


def test_a_machine_that_is_known_to_be_quiet_needs_fewer(harness: Harness, decider: Decider, tmp_path: Path) -> None:
    machine = hardware.facts()["machine.id"]
    for number, (floor, most) in enumerate([(0.02, 18), (0.009, 12)]):
        (folder := tmp_path / "results" / f"validation-{number}").mkdir(parents=True)
        write_validation(folder, validation(paired=floor, machine_id=machine, created_utc=f"2026-11-2{number + 1}"))
        harness(*SIDES)
        assert decider.settings.max_blocks == most
        (folder / "validation.json").unlink()


def test_margins_and_time_are_the_decisions(harness: Harness, decider: Decider) -> None:
    harness(*SIDES, "--delta", "0.5%", "--epsilon", "0.02", "--time", "90")
    settings = decider.settings
    assert (settings.margins.delta, settings.margins.epsilon) == (0.005, 0.02)
    assert settings.time_s == 90


def test_the_noise_floor_of_this_machine_is_delta_when_it_is_larger(
    harness: Harness, decider: Decider, tmp_path: Path
) -> None:
    folder = tmp_path / "results" / "validation-run"
    folder.mkdir(parents=True)
    write_validation(folder, validation(paired=0.025, machine_id=facts()["machine.id"]))
    code, out, _ = harness(*SIDES, "--json")
    assert code == 0
    assert decider.settings.margins.delta == 0.025
    assert "noise floor" in json.loads(out)["margins_source"]
    write_validation(folder, validation(paired=0.025, machine_id="another"))
    harness(*SIDES, "--results", "results/more")
    assert decider.settings.margins.delta == 0.01


def test_the_command_is_kept(harness: Harness, decider: Decider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["harness", "ab", *SIDES])
    harness(*SIDES)
    assert decider.asked[0][2] == ["harness", "ab", *SIDES]


# going on


def test_a_finished_run_is_shown_again_and_not_gone_on_with(
    harness: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any) -> Run:
        raise AssertionError("it was finished")

    monkeypatch.setattr("harness.run.runner.carry_out", never)
    stored(ab_run(SLOWER), tmp_path / "results")
    code, out, _ = harness("--resume", "ab-run", "--json")
    assert (code, json.loads(out)["verdict"]) == (1, "slower")


def test_a_run_that_was_stopped_goes_on(harness: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone_on: list[Path] = []
    half = ab_run(SLOWER, looks=(4, 8))
    path = stored(replace(half, manifest=half.manifest.model_copy(update={"status": "interrupted"})), tmp_path / "r")
    monkeypatch.setattr("harness.run.resume.resume", lambda _, path, __: gone_on.append(path))
    code, _, _ = harness("--resume", "latest", "--results", "r", "--strict", "--quiet")
    assert code == 1
    assert [one.resolve() for one in gone_on] == [path.resolve()]


def test_a_run_of_another_kind_is_not_gone_on_with(harness: Harness, tmp_path: Path) -> None:
    stored(sweep_run("swept"), tmp_path / "results")
    code, out, error = harness("--resume", "swept")
    assert (code, out, error.count("\n")) == (2, "", 1)
    assert "'swept' is a run of sweep; go on with: python -m harness sweep --resume" in error
