"""`faults.jsonl` survives a kill at any byte, and what is wrong in it is named."""

import json
from pathlib import Path

import jsonschema
import pytest

from harness.errors import StorageError
from harness.record import RunStore, list_runs, schema
from harness.record.fault_log import FaultLog, load_faults
from harness.record.faults import FAULTS_NAME, Detection, FaultRecord, FaultsPlan, Interruption, PlannedFault
from harness.spec.faults import Faults
from tests.record.examples import cell, manifest


def record(repeat: int = 0) -> FaultRecord:
    """A worker of a cluster was killed, and the job went on from step 20."""
    return FaultRecord(
        run_id="r",
        scenario="multi_worker_mirrored/kill_worker/20",
        cell_id=cell().cell_id,
        cell=cell(),
        fault="kill_worker",
        checkpoint_every=20,
        repeat=repeat,
        status="recovered",
        started_utc="2026-11-21T01:24:00Z",
        steps=100,
        target="worker 1",
        fault_step=33,
        steps_lost=13,
        resumed_from=20,
        useful_step_after_s=3.0,
        detections=[Detection(by="process_end", who="worker 1", after_s=0.05, said="ended by SIGKILL")],
        interruption=Interruption(detection_s=0.05, restart_s=2.0, replay_s=0.95),
    )


@pytest.mark.parametrize("cut", [1, 20, -1])
def test_a_line_that_a_kill_tore_is_left_out_and_written_over(tmp_path: Path, cut: int) -> None:
    with FaultLog(tmp_path) as log:
        for repeat in range(2):
            log.append(record(repeat))
    path = tmp_path / FAULTS_NAME
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second[:cut])
    kept = 1 if cut > 0 else 2  # without its newline alone a line is whole
    assert len(load_faults(tmp_path)) == kept
    with FaultLog(tmp_path) as log:
        log.append(record(5))
    assert [one.repeat for one in load_faults(tmp_path)] == [*range(kept), 5]


def test_a_run_without_a_log_has_no_jobs_yet(tmp_path: Path) -> None:
    assert load_faults(tmp_path) == []


def test_a_line_that_is_no_record_is_named_with_its_key(tmp_path: Path) -> None:
    (tmp_path / FAULTS_NAME).write_text(record().model_dump_json().replace('"recovered"', '"fine"') + "\n{}\n")
    with pytest.raises(StorageError, match=r"faults.jsonl:1: status: "):
        load_faults(tmp_path)


def test_what_is_written_is_valid_by_the_published_schema(tmp_path: Path) -> None:
    with FaultLog(tmp_path) as log:
        log.append(record())
    published = json.loads((schema.FOLDER / "fault-1.json").read_text())
    line = json.loads((tmp_path / FAULTS_NAME).read_text())
    assert jsonschema.Draft202012Validator(published).is_valid(line)
    assert not jsonschema.Draft202012Validator(published).is_valid({**line, "steps_lost": -1})


def test_a_listing_counts_jobs(tmp_path: Path) -> None:
    job = PlannedFault(
        scenario="s", cell_id=cell().cell_id, fault="restart", checkpoint_every=0, repeat=0, fault_step=50
    )
    of = manifest(faults=FaultsPlan(settings=Faults(), jobs=[job]))
    with RunStore.create(tmp_path, of) as store, FaultLog(store.path) as log:
        log.append(record())
    (listing,) = list_runs(tmp_path)
    assert (listing.trials, listing.unit) == (1, "jobs")
