"""`explain` on the command line: which cells it takes, and what it has no use for."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.analysis.levers import LEVERS
from harness.cli.sweep import FLAGS
from harness.errors import HarnessError, UsageError
from harness.record import Run
from harness.run.kinds.explain import ExplainSettings
from tests.comparisons import stored, sweep_run
from tests.explained import explain_run
from tests.synthetic import make_cell

Harness = Callable[..., tuple[int, str, str]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[ExplainSettings]:
    """What it would have measured."""
    found: list[ExplainSettings] = []

    def instead(settings: ExplainSettings, *_: Any) -> Path:
        found.append(settings)
        raise HarnessError("it would measure")

    monkeypatch.setattr("harness.run.kinds.explain.explain", instead)
    return found


@pytest.mark.parametrize("arguments", [(), ("--trials", "3"), ("--seed", "2")])
def test_without_an_axis_one_cell_is_explained(
    harness: Harness, asked: list[ExplainSettings], arguments: tuple[str, ...]
) -> None:
    assert harness("explain", *arguments)[0] == 4
    assert [cell.label for cell in asked[0].cells] == ["mirrored ×2 b32"]


def test_a_combination_that_makes_no_sense_is_said_and_the_others_are_explained(
    harness: Harness, asked: list[ExplainSettings]
) -> None:
    keys = ("--strategy", "mirrored", "--replicas", "2", "--batch-scope", "global", "--batch-size", "32,33")
    code, _, error = harness("explain", *keys)
    assert code == 4
    [settings] = asked
    assert [cell.batch_size for cell in settings.cells] == [32]
    [item] = settings.left_out
    assert item.words == "global batch 33 over 2 replicas: 2 replicas do not divide a global batch of 33"
    assert error.startswith(f"left out: {item.words}\n")
    assert harness("explain", *keys, "--quiet")[2].count("\n") == 1


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ('work = "collective"\nreplicas = [2]', "work: explain takes trainings of a model"),
        ('step = "benchmarks.own_step:make_step"', "step: explain takes trainings of a model"),
        ('step = "benchmarks.own_step:make_step"\nintra_op_threads = [1]', "step: explain takes trainings of a model"),
        ("replicas = [0]", "replicas: given 0, expected greater than or equal to 1"),
    ],
)
def test_a_spec_of_what_has_no_parts_is_one_line_that_names_it(
    harness: Harness, asked: list[ExplainSettings], tmp_path: Path, spec: str, says: str
) -> None:
    path = tmp_path / "spec.toml"
    path.write_text(spec)
    code, out, error = harness("explain", str(path))
    assert (code, out, asked, error.count("\n")) == (2, "", [], 1)
    assert f"{path}: {says}" in error


def test_what_a_spec_says_of_a_sweep_alone_is_left_out(
    harness: Harness, asked: list[ExplainSettings], tmp_path: Path
) -> None:
    path = tmp_path / "spec.toml"
    path.write_text("strategy = ['none']\nreplicas = [1]\ntime = 60\nmax_trials = 2\nlive_trials = 3\ntrace = true")
    assert harness("explain", str(path))[0] == 4
    [settings] = asked
    assert (settings.sweep.time, settings.sweep.live_trials, settings.sweep.trace) == (0, 0, True)


def test_a_value_that_a_sweep_refuses_is_refused_also_for_a_key_that_it_has_no_use_for(
    harness: Harness, tmp_path: Path
) -> None:
    path = tmp_path / "spec.toml"
    path.write_text("live_trials = -1")
    code, _, error = harness("explain", str(path))
    assert (code, error.count("\n")) == (2, 1)
    assert "live_trials: given -1" in error


@pytest.mark.parametrize("flag", ["--work", "--size", "--step", "--time", "--half-width", "--live-trials"])
def test_a_flag_that_it_has_no_use_for_is_none_of_its_flags(harness: Harness, flag: str) -> None:
    code, _, error = harness("explain", flag, "1")
    assert code == 2
    assert f"no flag '{flag}'" in error


def test_a_run_of_which_nothing_was_measured_is_shown_and_is_exit_code_one(harness: Harness, tmp_path: Path) -> None:
    path = stored(explain_run(crashed={"whole": "no such op"}), tmp_path / "results")
    code, out, error = harness("explain", "--resume", str(path))
    assert (code, error) == (1, "harness: nothing was measured: unsupported: no such op\n")
    assert "not told, since 'whole'" in out
    assert out.endswith(f"\nrecords: {path}\nreport:  python -m harness report {path}\n")


def test_every_flag_that_it_advises_is_one_of_a_sweep() -> None:
    offered = {str(flag.name) for flag in FLAGS}
    assert {
        flag.replace("-", "_")
        for known in LEVERS.values()
        for one in known
        for flag in re.findall(r"--([a-z-]+)", one.words)
    } <= offered


SWEPT = [make_cell(batch_size=size) for size in (32, 128)] + [
    make_cell("mirrored", 2, size, op) for size in (32, 128) for op in ("auto", "reduction_to_one_device")
]


def test_of_a_run_the_cells_that_one_asks_about_are_explained_and_a_line_says_why(
    harness: Harness, asked: list[ExplainSettings], tmp_path: Path
) -> None:
    stored(sweep_run("swept", SWEPT), tmp_path / "results")
    code, _, error = harness("explain", "latest", "--windows", "9")
    assert code == 4
    [settings] = asked
    names = [cell.label for cell in settings.cells]
    assert names[-1] == "none ×1 b128"
    line = error.splitlines()[0]
    assert line.startswith("of swept: ")
    assert all(name in line for name in names)
    assert "(TensorFlow's default op)" in line
    assert (settings.sweep.windows, settings.sweep.trials) == (9, 6)


def test_an_axis_chooses_among_the_runs_cells(harness: Harness, asked: list[ExplainSettings], tmp_path: Path) -> None:
    path = stored(sweep_run("swept", SWEPT), tmp_path / "elsewhere")
    assert harness("explain", str(path), "--batch-size", "32", "--cross-device-op", "auto", "--quiet")[0] == 4
    [settings] = asked
    assert {cell.batch_size for cell in settings.cells} == {32}
    assert {cell.cross_device_op for cell in settings.cells} == {"auto"}
    code, _, error = harness("explain", str(path), "--batch-size", "33")
    assert (code, error.count("\n")) == (2, 1)
    assert "'swept' has no such cell that was measured" in error


@pytest.mark.parametrize(
    ("flag", "value", "why"),
    [
        ("inter_op_threads", "2", "JAX has one pool of threads; give --intra-op-threads"),
        ("gpu_memory_mb", "512", "only trials on virtual-gpu read it; leave it out"),
    ],
)
def test_a_setting_that_no_trial_of_the_runs_cells_takes_is_refused_before_any_arm_runs(
    harness: Harness, asked: list[ExplainSettings], tmp_path: Path, flag: str, value: str, why: str
) -> None:
    cells = [make_cell(batch_size=32, engine="jax", loop="jit")]
    stored(sweep_run("swept", cells), tmp_path / "results")
    code, out, error = harness("explain", "latest", f"--{flag.replace('_', '-')}", value)
    assert (code, out, asked) == (2, "", [])
    assert error == f"harness: {flag}: given {value}, but {why}\n"


@pytest.mark.parametrize(
    ("chosen", "excluded"),
    [
        (("--model", "transformer(layers=2)"), "optimizer='sgd(learning_rate=0.01)'"),
        (("--optimizer", "adam( learning_rate=1e-3 )"), "model='transformer( layers=4 )'"),
    ],
)
def test_equal_sizes_choose_the_runs_cells_however_they_are_written(
    harness: Harness, asked: list[ExplainSettings], tmp_path: Path, chosen: tuple[str, str], excluded: str
) -> None:
    names = [("transformer", "adam"), ("transformer", "sgd"), ("transformer(layers=4)", "adam")]
    cells = [make_cell(batch_size=32, model=model, data="text", optimizer=optimizer) for model, optimizer in names]
    stored(sweep_run("swept", cells), tmp_path / "results")
    assert harness("explain", "latest", *chosen, "--exclude", excluded)[0] == 4
    [settings] = asked
    assert list(settings.cells) == cells[:1]


@pytest.mark.parametrize(
    ("run", "says"),
    [
        (explain_run(), "'explain-run' is a run of explain; explain takes a spec or a sweep's run"),
        (sweep_run("half", status="interrupted"), "'half' has not finished.*sweep --resume half"),
        (None, "no run 'latest'"),
    ],
)
def test_a_run_that_names_no_cells_to_explain_is_one_line(
    harness: Harness, asked: list[ExplainSettings], tmp_path: Path, run: Run | None, says: str
) -> None:
    if run is not None:
        stored(run, tmp_path / "results")
    code, out, error = harness("explain", "latest")
    assert (code, out, asked, error.count("\n")) == (2, "", [], 1)
    assert re.search(says, error)


def test_with_try_the_levers_of_a_finished_run_are_measured_and_told(
    harness: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = stored(explain_run(), tmp_path / "results")
    tried: list[Path] = []

    def instead(path: Path, *_: Any) -> tuple[()]:
        tried.append(path)
        return ()

    monkeypatch.setattr("harness.run.kinds.tries.try_levers", instead)
    code, out, error = harness("explain", "--try", "--resume", str(path))
    assert (code, error, tried) == (0, "", [path])
    assert "is communication-bound" in out
    assert harness("explain", "--resume", str(path))[0] == 0
    assert tried == [path]


def test_where_no_lever_could_be_measured_the_parts_are_told_and_it_is_exit_code_one(
    harness: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: Any, **__: Any) -> None:
        raise UsageError("no room")

    path = stored(explain_run(), tmp_path / "results")
    monkeypatch.setattr("harness.run.kinds.tries.sides_of", refuses)
    code, out, error = harness("explain", "--try", "--quiet", "--resume", str(path))
    first = "bytes_per_pack=1048576"
    assert (code, error) == (1, f"harness: no lever could be measured: {first}: no room\n")
    assert "is communication-bound" in out
    assert "not measured: no room" in out
