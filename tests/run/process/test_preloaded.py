"""Zygotes of the tests are forks of one that has imported TensorFlow: without a word each would import it itself."""

import contextlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.run.interrupts import Interrupts
from harness.run.preparing.asked import AskedFiles
from harness.run.preparing.processes import Writers
from harness.run.process.renewal import renew
from harness.run.process.startup import Startup
from harness.run.process.zygote import Zygote
from harness.trial.engines import engine_of
from tests.engines.conftest import python_of
from tests.preloaded import ROOT, Forked, handed_in

pytestmark = pytest.mark.tensorflow


def test_a_zygote_is_a_fork_of_the_one_that_has_tensorflow_and_so_is_the_one_in_its_place(zygote: Zygote) -> None:
    first = zygote._process
    assert isinstance(first, Forked)
    renew([zygote])
    assert isinstance(zygote._process, Forked)
    assert zygote._process is not first


def test_so_is_that_of_a_run_whose_own_modules_are_found_from_this_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with handed_in(), Zygote() as zygote:
        assert isinstance(zygote._process, Forked)


@pytest.mark.parametrize(("name", "value"), [("TF_ENABLE_ONEDNN_OPTS", "0"), ("PYTHONPATH", os.sep)])
def test_one_whose_imports_may_find_something_else_is_started_for_itself(name: str, value: str) -> None:
    with handed_in(), contextlib.closing(Zygote(Startup({name: value}))) as zygote:
        zygote.launch()
        assert isinstance(zygote._process, subprocess.Popen)


def test_so_is_a_process_by_which_files_are_prepared_and_it_ends_as_one_that_was_started(tmp_path: Path) -> None:
    asked = AskedFiles(source="iris", target=tmp_path / "prepared", data_dir=tmp_path, shards=1)
    with handed_in(), contextlib.closing(Writers(asked, tmp_path, Interrupts())) as writers:
        described = json.loads(writers.answer("describe"))
        [process] = writers._processes
        assert isinstance(process, Forked)
        process.stdin.close()
        assert process.wait(30) == 0
    assert described["features"]["examples"] == 150


def test_one_that_finds_a_fault_ends_as_one_that_was_started(tmp_path: Path) -> None:
    asked = AskedFiles(source="folder:gone", target=tmp_path / "prepared", data_dir=tmp_path, shards=1)
    with (
        handed_in(),
        contextlib.closing(Writers(asked, tmp_path, Interrupts())) as writers,
        pytest.raises(UsageError, match="'folder:gone' cannot be read"),
    ):
        writers.answer("describe")


@pytest.mark.engine
def test_of_an_engine_beside_tensorflow_it_is_a_fork_where_that_is_wanted() -> None:
    jax = Startup(python=python_of(engine_of("jax")), path=[ROOT], engine="jax")
    with handed_in(others=True), Zygote(jax) as zygote:
        assert isinstance(zygote._process, Forked)
        assert "jax" in zygote.versions
    with handed_in(), contextlib.closing(Zygote(jax)) as zygote:
        zygote.launch()
        assert isinstance(zygote._process, subprocess.Popen)
