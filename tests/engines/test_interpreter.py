"""Where an engine's trials run: the user's interpreter, ours, or an installed one; and what is said where none is."""

import json
import subprocess
import sys
import types
import venv
from pathlib import Path
from typing import Any

import pytest

from harness.cli import run as command_line
from harness.engines.horovod import ENGINE as HOROVOD
from harness.engines.jax import ENGINE
from harness.engines.tensorflow import ENGINE as TENSORFLOW
from harness.engines.torch import ENGINE as TORCH
from harness.errors import UsageError
from harness.protocol.engine import Environment, Software
from harness.record.reading import load_run
from harness.run.kinds import base
from harness.run.process import engines
from harness.run.process.engines import (
    SEAL,
    digest_of,
    folder_of,
    home_of,
    newer_words,
    python_for,
    python_of,
    versions_here,
    with_interpreters,
)
from harness.spec import sweep_from
from harness.spec.sweep import Sweep
from harness.trial.engines import software_of

INSTALL = "python -m harness engine install jax"
SWEEP = ("sweep", "--engine", "jax", "--strategy", "none", "--replicas", "1", "--loop", "jit")


pytestmark = pytest.mark.usefixtures("nothing_installed")


def sweep(engine: str = "jax", python: str = "") -> Sweep:
    return sweep_from({"engine": engine, "engine_python": python})


def stand_in(folder: Path, **packages: str) -> Path:
    """An interpreter that says that it has these packages."""
    python = python_of(folder)
    python.parent.mkdir(parents=True)
    said = json.dumps({"version": [3, 12, 1], "packages": packages})
    python.write_text(f"#!/bin/sh\necho 'harness:{said}'\n")
    python.chmod(0o755)
    return python


GOOD = {"jax": "0.10.2", "numpy": "2.4.6", "psutil": "7.2.2", "pydantic": "2.14.3"}


def sealed(**packages: str) -> Path:
    """An environment as `engine install` leaves it; its interpreter."""
    python = stand_in(folder_of("jax"), **packages)
    (folder_of("jax") / SEAL).write_text(digest_of(ENGINE.environment) + "\n")
    return python


def test_an_engine_that_is_not_installed_is_named_with_the_command_and_no_run_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line([*SWEEP, "--results", str(tmp_path / "results")]) == 2
    said = capsys.readouterr().err
    assert said == f"harness: engine: 'jax' is not installed; {INSTALL}\n"
    assert list((tmp_path / "results").glob("2*")) == []


def test_what_would_be_run_can_be_planned_without_the_engine(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line([*SWEEP, "--dry-run"]) == 0
    assert "none ×1" in capsys.readouterr().out


def test_an_environment_that_was_installed_to_the_end_is_taken() -> None:
    python = sealed(**GOOD)
    assert python_for(sweep()) == str(python)


def test_one_that_was_not_is_not() -> None:
    stand_in(folder_of("jax"), **GOOD)
    with pytest.raises(UsageError, match=f"'jax' was not installed to the end in '.*'; {INSTALL}"):
        python_for(sweep())


def test_neither_is_one_from_other_pins() -> None:
    sealed(**GOOD)
    (folder_of("jax") / SEAL).write_text("of another version\n")
    with pytest.raises(UsageError, match=f"from the pins of another version of the harness; {INSTALL}"):
        python_for(sweep())


def test_nor_one_whose_interpreter_is_gone() -> None:
    sealed(**GOOD).unlink()
    with pytest.raises(UsageError, match=rf"cannot be used as it is installed \(jax: no file at '.*'\); {INSTALL}"):
        python_for(sweep())


def test_ours_is_taken_where_it_has_what_the_engine_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "versions_here", lambda _: GOOD)
    assert python_for(sweep()) is None
    monkeypatch.setattr(engines, "versions_here", lambda _: {**GOOD, "jax": "0.4.38"})
    with pytest.raises(UsageError, match=INSTALL):
        python_for(sweep())


def test_what_lies_in_the_working_directory_and_is_called_like_a_framework_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cloned").mkdir()
    (tmp_path / "written.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    needs = {"cloned": "1", "written": "1", "numpy": "1", "sklearn": "1"}
    assert versions_here(Software(needs, brought_by={"sklearn": ("scikit-learn",)})).keys() == {"numpy", "sklearn"}


def test_tensorflow_is_left_where_it_is() -> None:
    assert home_of(TENSORFLOW).ours
    assert python_for(sweep("tensorflow")) is None


def test_an_interpreter_for_another_engine_is_of_use_only_where_that_is_compared_with() -> None:
    other = sweep("tensorflow", "jax=/no/such/python")
    with pytest.raises(UsageError, match="engine_python: given for 'jax', and the engine is 'tensorflow'"):
        python_for(other)
    assert python_for(other, among=["tensorflow", "jax"]) is None
    assert python_for(sweep("tensorflow", "mine=/no/such/python"), among=["tensorflow", "mine"]) is None
    assert with_interpreters(["tensorflow", "jax", "tests.engines.numpy_engine:NumpyEngine"]) == {"jax"}


@pytest.mark.parametrize(("engine", "path"), [("jax", "/no, such"), ("torch", "/nor/such")])
def test_several_engines_have_an_interpreter_each(engine: str, path: str) -> None:
    both = sweep(engine, "torch=/nor/such,jax=/no, such")
    with pytest.raises(UsageError, match=f"engine_python: {engine}: no file at '{path}'"):
        python_for(both, among=["jax", "torch"])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("jax", "engine_python: given 'jax', expected NAME=PATH, such as jax=.venv-jax/bin/python"),
        ("jax=", "engine_python: given 'jax=', expected NAME=PATH"),
        ("jax=/a,jax=/b", "engine_python: given twice for 'jax', '/a' and '/b', expected one"),
        (
            "jix=/usr/bin/python3",
            "engine_python: 'jix' is not one of jax, horovod, keras_distribution, torch; did you mean 'jax'?",
        ),
        ("tensorflow=/usr/bin/python3", "engine_python: 'tensorflow' is not one of jax"),
        ("jax=/no/such/python", "engine_python: jax: no file at '/no/such/python'"),
    ],
)
def test_an_interpreter_that_cannot_be_meant_is_one_line(given: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        python_for(sweep(python=given))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_interpreter_without_jax_is_named_with_what_it_lacks(tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    python = python_of(tmp_path / "bare")
    with pytest.raises(UsageError) as caught:
        python_for(sweep(python=f"jax={python}"))
    wanted = "jax, numpy, psutil, pydantic"
    command = f"{python} -m pip install {wanted.replace(',', '')}"
    assert str(caught.value) == f"engine_python: jax: '{python}' cannot import {wanted}; {command}"


def test_one_with_a_jax_that_is_too_old_too(tmp_path: Path) -> None:
    python = stand_in(tmp_path / "old", **{**GOOD, "jax": "0.4.38"})
    with pytest.raises(UsageError, match=r"has jax 0.4.38, expected 0.7 or newer; .* --upgrade jax"):
        python_for(sweep(python=f"jax={python}"))


def test_the_users_comes_before_what_is_installed(tmp_path: Path) -> None:
    sealed(**GOOD)
    python = stand_in(tmp_path / "mine", **GOOD)
    assert python_for(sweep(python=f"jax={python}")) == str(python)


def test_the_list_says_what_is_there_and_why_not_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(["engine", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split(maxsplit=1) == ["horovod", f"no   not installed; {INSTALL.replace('jax', 'horovod')}"]
    assert lines[1].split(maxsplit=1) == ["jax", f"no   not installed; {INSTALL}"]
    [ours] = [line for line in lines if line.startswith("tensorflow ")]
    assert ours.split(maxsplit=1)[1].startswith("yes  tensorflow ")
    assert ours.endswith("(this interpreter)")
    python = sealed(**GOOD)
    assert command_line(["engine", "list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["jax"] == {
        "ready": True,
        "python": str(python),
        "python_version": "3.12.1",
        "packages": GOOD,
        "newer_than_tested": {},
        "reason": None,
    }


def test_the_list_remarks_on_a_framework_of_a_later_minor_version_than_was_tested(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sealed(**{**GOOD, "jax": "0.11.0rc1", "numpy": "9.0"})
    assert command_line(["engine", "list"]) == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("jax ")]
    assert line.split()[1] == "yes"
    assert line.endswith("; jax 0.11.0rc1 is newer than 0.10.2, with which engine 'jax' was tested")
    assert command_line(["engine", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["jax"]["newer_than_tested"] == {"jax": "0.10.2"}


@pytest.mark.parametrize("version", ["0.10.3", "0.10.2+local", "0.9.9", "", "head"])
def test_one_that_is_not_is_not_remarked_on(version: str) -> None:
    assert newer_words(ENGINE, {**GOOD, "jax": version}) == ""


def test_a_run_warns_of_one_once_and_keeps_it_for_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "jax 9.0 is newer than 0.10.2, with which engine 'jax' was tested"
    monkeypatch.setattr(base, "newer_words", lambda engine, _: words if engine.name == "numpy" else "")
    engine = "tests.engines.numpy_engine:NumpyEngine"
    asked = ["--engine", engine, "--strategy", "none", "--replicas", "1", "--trials", "1", "--windows", "5"]
    assert command_line(["sweep", "--quiet", *asked, "--results", str(tmp_path)]) == 0
    assert capsys.readouterr().err.count(f"harness: {words}\n") == 1
    [path] = tmp_path.glob("2*")
    assert load_run(path).manifest.machine.warnings.count(words) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["install"], "engine install: expected the name of an engine; `harness engine list` has them"),
        (
            ["install", "jox"],
            "engine: 'jox' is not one of horovod, jax, keras_distribution, torch; did you mean 'jax'?",
        ),
        (["install", "tensorflow"], "engine: 'tensorflow' is not one of horovod, jax"),
        (["list", "jax"], "engine list: takes no name, given 'jax'"),
        (["instal", "jax"], "engine: 'instal' is not one of list, install; did you mean 'install'?"),
    ],
)
def test_what_cannot_be_installed_or_listed_is_exit_code_two(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line(["engine", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_an_engine_with_an_environment_of_its_own_needs_what_that_needs_whatever_else_it_says() -> None:
    environment = Environment({"needed": "1"}, ("needed",), Path("constraints.txt"))
    for said in ({}, {"software": Software(titles={"needed": "Needed"})}):
        own: Any = types.SimpleNamespace(environment=environment, **said)
        assert software_of(own).needs == {"needed": "1"}
    assert software_of(own).titles == {"needed": "Needed"}
    assert software_of(TENSORFLOW).needs["tensorflow"] == "2"


@pytest.mark.parametrize(("engine", "alone"), [(ENGINE, True), (TORCH, True), (HOROVOD, False)])
def test_the_environment_of_an_engine_is_pinned_and_has_no_tensorflow_but_where_it_runs_that(
    engine: Any, alone: bool
) -> None:
    lines = engine.environment.constraints.read_text().splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    assert {*engine.environment.installs, *engine.environment.needs} <= pins.keys()
    assert alone != bool({"tensorflow", "keras", "tensorflow-datasets"} & pins.keys())


def test_the_parent_reads_the_names_without_importing_an_engine() -> None:
    code = (
        "import sys; from harness.trial.engines import catalogue_of; catalogue_of('jax'); catalogue_of('torch');"
        "catalogue_of('horovod');"
        "print(sorted({'tensorflow', 'keras', 'horovod', 'jax', 'jaxlib', 'torch', 'numpy'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
