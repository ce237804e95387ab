"""A run of faults: what becomes of a job whose ground breaks, and of the jobs after it."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.record.fault_log import FaultLog, load_faults
from harness.record.store import RunStore
from harness.run.kinds.faults.progress import FaultLines
from harness.run.kinds.faults.run import FaultsRun
from harness.run.network import NetworkError, NotAvailable
from tests.faulted import PLAN, run_manifest

GONE = "the process that holds a network namespace is gone"


def ran(results: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> Path:
    """A whole run in which placing any job ends in `error`."""

    @contextlib.contextmanager
    def breaks(*_: Any, **__: Any) -> Iterator[None]:
        raise error
        yield

    monkeypatch.setattr("harness.run.kinds.faults.run.hosts_for", breaks)
    monkeypatch.setattr(FaultsRun, "_prepare", lambda _: None)
    zygote: Any = SimpleNamespace(scratch=str(results))
    with RunStore.create(results, run_manifest(status="running")) as store, FaultLog(store.path) as log:
        FaultsRun(store, log, zygote, FaultLines(quiet=True)).run()
        assert store.manifest.status == "finished"
    return store.path


def test_a_network_that_breaks_is_one_failed_record_each_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = load_faults(ran(tmp_path, monkeypatch, NetworkError(GONE)))
    assert len(found) == len(PLAN.jobs)
    tried = [record for record in found if record.fault != "kill_ps" or record.cell.asynchronous]
    assert {(record.status, record.reason) for record in tried} == {("failed", GONE)}


def test_what_this_machine_cannot_have_is_unsupported_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = load_faults(ran(tmp_path, monkeypatch, NotAvailable("emulated networks need root")))
    assert {record.status for record in found} == {"unsupported"}
    assert "emulated networks need root" in {record.reason for record in found}
