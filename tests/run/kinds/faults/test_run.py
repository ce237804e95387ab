"""A run of faults: what becomes of a job whose ground breaks, and of the jobs after it."""

import signal
from pathlib import Path
from typing import Any

import pytest

from harness.errors import Interrupted
from harness.record.fault_log import load_faults
from harness.record.reading import load_manifest
from harness.run.network import NetworkError, NotAvailable
from tests.faulted import PLAN
from tests.run.benches import FaultsBench

GONE = "the process that holds a network namespace is gone"


def ran(results: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> Path:
    """A whole run in which placing any job ends in `error`."""

    def breaks(*_: Any) -> None:
        raise error

    bench = FaultsBench(results, monkeypatch)
    bench.ground = breaks
    path = bench.begin()
    assert load_manifest(path).status == "finished"
    return path


def test_a_network_that_breaks_is_one_failed_record_each_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = load_faults(ran(tmp_path, monkeypatch, NetworkError(GONE)))
    assert len(found) == len(PLAN.jobs)
    tried = [record for record in found if record.fault != "kill_ps" or record.cell.asynchronous]
    assert {(record.status, record.reason) for record in tried} == {("failed", GONE)}


def test_a_job_that_was_to_end_and_whose_network_broke_over_that_is_no_failed_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        raise NetworkError(GONE)

    bench = FaultsBench(tmp_path, monkeypatch)
    bench.ground = breaks
    with pytest.raises(Interrupted):
        bench.begin()
    found = [record for log in tmp_path.rglob("faults.jsonl") for record in load_faults(log.parent)]
    assert GONE not in {record.reason for record in found}


def test_what_this_machine_cannot_have_is_unsupported_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = load_faults(ran(tmp_path, monkeypatch, NotAvailable("emulated networks need root")))
    assert {record.status for record in found} == {"unsupported"}
    assert "emulated networks need root" in {record.reason for record in found}
