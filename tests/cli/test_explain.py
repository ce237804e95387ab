"""`explain` on the command line: which cells it takes, and what it has no use for."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.cli.sweep import FLAGS
from harness.errors import HarnessError
from harness.report.tables.explain import LEVERS
from harness.run.kinds.explain import ExplainSettings
from tests.comparisons import stored
from tests.explained import explain_run

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
    assert (settings.sweep.time, settings.sweep.live_trials, settings.sweep.trace) == (0, 0, False)


@pytest.mark.parametrize("flag", ["--work", "--size", "--step", "--trace", "--time", "--half-width", "--live-trials"])
def test_a_flag_that_it_has_no_use_for_is_none_of_its_flags(harness: Harness, flag: str) -> None:
    code, _, error = harness("explain", flag, "1")
    assert code == 2
    assert f"no flag '{flag}'" in error


def test_a_run_of_which_nothing_was_measured_is_shown_and_is_exit_code_one(harness: Harness, tmp_path: Path) -> None:
    path = stored(explain_run(crashed={"whole": "no such op"}), tmp_path / "results")
    code, out, error = harness("explain", "--resume", str(path))
    assert (code, error) == (1, "harness: nothing was measured: unsupported: no such op\n")
    assert "not told, since 'whole'" in out


def test_every_flag_that_it_advises_is_one_of_a_sweep() -> None:
    offered = {str(flag.name) for flag in FLAGS}
    assert {flag.replace("-", "_") for text in LEVERS.values() for flag in re.findall(r"--([a-z-]+)", text)} <= offered
