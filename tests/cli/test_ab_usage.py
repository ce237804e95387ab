"""`ab` on the command line, used wrongly: one line that names the flag, and nothing measured or written."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

Harness = Callable[..., tuple[int, str, str]]


@pytest.fixture
def harness(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> Harness:
    """`harness ab ARGUMENTS` in an empty folder; what it would measure is a failure."""

    def never(*_: Any) -> None:
        raise AssertionError("it began to measure")

    monkeypatch.setattr("harness.run.kinds.ab.decide", never)
    monkeypatch.setattr("harness.run.runner.carry_out", never)
    return partial(harness, "ab")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--replica 2", "no flag '--replica'; did you mean '--replicas'?"),
        ("--a colour=1", "--a: unknown key 'colour'"),
        ("--b replica=1", "--b: unknown key 'replica'; did you mean 'replicas'?"),
        ("--a replicas", "--a: given 'replicas', expected KEY=VALUE"),
        ("--a replicas=x", "replicas: given 'x', expected a whole number"),
        ("--a seed=1 --a seed=2", "--a: seed: given '1' and '2', expected one value"),
        ("--a seed=1,2", "seed: given '1,2'"),
        ("--strategy none,mirrored", "side a: strategy: given none,mirrored, expected one value"),
        ("--b strategy=mirrored,none", "side b: strategy: given mirrored,none, expected one value"),
        ("--a seed=1 --b seed=1", "nothing sets the sides apart"),
        (
            "--engine keras_distribution --a env.KERAS_BACKEND=jax --b env.KERAS_BACKEND=tensorflow",
            "--b: env.KERAS_BACKEND: given 'tensorflow', but engine 'keras_distribution' trains with 'jax' alone",
        ),
        ("--a windows=9", "windows: given 9 for side a and 100 for side b"),
        ("--trials 3", "no flag '--trials'"),
        ("--a trials=3", "--a: trials: both sides have one trial a block"),
        ("--delta nonsense", "--delta: given 'nonsense', expected a share such as 0.01 or 1%"),
        ("--delta 120%", "--delta: given '120%'"),
        ("--epsilon 0.5% --delta 1%", "epsilon: given 0.005, expected at least delta (0.01)"),
        ("--looks 8,4", "looks: given 8,4, expected rising numbers of blocks such as 5,8,12"),
        ("--looks few", "--looks: given 'few', expected numbers of blocks such as 5,8,12"),
        ("--max-blocks 1", "--max-blocks"),
        ("--time 0", "--time"),
        ("--time nan", "--time"),
        ("--time inf", "time: given inf"),
        ("none.toml", "SPEC: no file at 'none.toml'"),
        ("a.toml b.toml c.toml", "unexpected extra argument"),
        ("--python-a nowhere/python", "--python-a"),
        ("--rev-a main", "--rev-a"),
        ("--resume nothing", "RUN: no run 'nothing'"),
        ("--resume x spec.toml", "--resume: goes on with a run as it was planned; it takes no SPEC"),
        ("--resume x --a seed=1", "it takes no --a"),
        ("--resume x --b seed=1", "it takes no --b"),
        ("--resume x --replicas 2", "it takes no --replicas"),
        ("--resume x --delta 1%", "it takes no --delta"),
        ("--resume x --max-blocks 12", "it takes no --max-blocks"),
        ("--resume x --looks 6", "it takes no --looks"),
        ("--resume x --time 60", "it takes no --time"),
        ("--resume x --python-b python", "it takes no --python-b"),
        ("--resume x --rev-a HEAD", "it takes no --rev-a"),
    ],
)
def test_bad_usage_is_one_line_and_nothing_is_measured_or_written(
    harness: Harness, tmp_path: Path, arguments: str, says: str
) -> None:
    code, out, error = harness(*arguments.split())
    assert (code, out) == (2, "")
    assert error.startswith("harness: ")
    assert error.count("\n") == 1
    assert says.lower() in error.lower()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ('trials = "x"', "side a: trials: given 'x', expected a whole number"),
        ("trials = nan", "side a: trials: given nan"),
        ("time = -1", "side a: time: given -1"),
        ("half_width = 2", "side a: half_width: given 2"),
        ("live_trials = []", "side a: live_trials: given []"),
        ("trace = 7", "side a: trace: given 7, expected true or false"),
    ],
)
def test_a_spec_that_a_sweep_refuses_is_refused_also_for_a_key_that_a_comparison_has_no_use_for(
    harness: Harness, tmp_path: Path, toml: str, says: str
) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text(toml)
    code, out, error = harness("spec.toml")
    assert (code, out, error.count("\n")) == (2, "", 1)
    assert says in error
    assert list(tmp_path.iterdir()) == [spec]


@pytest.mark.parametrize(
    ("verb", "own"),
    [("ab", ("--python-a", "--rev-b", "--time", "--looks", "--strict")), ("validate", ("--quick", "--rounds"))],
)
def test_help_in_a_pipe_says_all_flags_and_imports_no_tensorflow(
    tmp_path: Path, verb: str, own: tuple[str, ...]
) -> None:
    code = (
        "import sys; from harness.cli import run; run(sys.argv[1:]); "
        "sys.stderr.write(','.join(sorted({'tensorflow', 'keras', 'scipy', 'matplotlib'} & set(sys.modules))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, verb, "--help"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path.cwd()), "PATH": "/usr/bin:/bin", "COLUMNS": "200"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    for flag in (*own, "--resume", "--max-blocks", "--delta", "--json", "--cross-device-op"):
        assert flag in done.stdout
    for flag in ("--trials", "--live-trials", "--max-trials"):
        assert flag not in done.stdout
