"""Zygotes of the tests are forks of one that has imported TensorFlow: without a word each would import it itself."""

import contextlib
import os
import subprocess

import pytest

from harness.run.process.renewal import renew
from harness.run.process.zygote import Zygote
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
    with handed_in(), contextlib.closing(Zygote({name: value})) as zygote:
        zygote.launch()
        assert isinstance(zygote._process, subprocess.Popen)
