"""Who is made ready by importing what the process imports that Dask's are forks of, and with whom those end."""

import importlib
import os
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from harness.trial import engines, forking, parent


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is done, in turn, in place of ending with a process and of importing a framework."""
    did: list[Any] = []
    monkeypatch.setattr(parent, "die_with_parent", did.append)
    importing = SimpleNamespace(prepare_files=lambda order: did.append(order.do))
    monkeypatch.setattr(engines, "engine_of", lambda _: importing)
    return did


@pytest.fixture(autouse=True)
def _as_it_was() -> Any:
    yield
    importlib.reload(forking)


def test_one_that_is_started_for_a_process_ends_with_it_before_it_imports_for_its_forks(
    done: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(forking.FOR, "4711")
    importlib.reload(forking)
    assert done == [4711, "import"]
    assert forking.FOR not in os.environ, "its forks run functions of the user's"


def test_nobody_else_imports_anything_or_ends_with_another(done: list[Any]) -> None:
    importlib.reload(forking)
    assert done == []


def test_who_writes_for_another_ends_with_it_though_nobody_waits_for_that_one() -> None:
    writes = "import time, harness.trial.orders as orders; orders.carry_out = lambda _: time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        while psutil.Process(ended.pid).status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
        script = f"{writes}; orders.carry_out_for_another('{{}}', {ended.pid})"
        assert subprocess.run([sys.executable, "-c", script], timeout=300).returncode == 1
