"""`faults.jsonl` survives a kill at any byte, and what is wrong in it is named."""

import json
from pathlib import Path

import jsonschema
import pytest

from harness.errors import StorageError
from harness.record import RunStore, list_runs, schema
from harness.record.fault_log import FaultLog, load_faults
from harness.record.faults import (
    FAULTS_NAME,
    CheckpointCost,
    Detection,
    FaultRecord,
    FaultsPlan,
    Interruption,
    PlannedFault,
)
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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of the run that `record` is of."""
    job = PlannedFault(
        scenario="s", cell_id=cell().cell_id, fault="restart", checkpoint_every=0, repeat=0, fault_step=50
    )
    of = manifest("r", faults=FaultsPlan(settings=Faults(), jobs=[job]))
    with RunStore.create(tmp_path, of) as store:
        return store.path


@pytest.mark.parametrize("cut", [1, 20, -1])
def test_a_line_that_a_kill_tore_is_left_out_and_written_over(folder: Path, cut: int) -> None:
    with FaultLog(folder) as log:
        for repeat in range(2):
            log.append(record(repeat))
    path = folder / FAULTS_NAME
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second[:cut])
    kept = 1 if cut > 0 else 2  # without its newline alone a line is whole
    assert len(load_faults(folder)) == kept
    with FaultLog(folder) as log:
        log.append(record(5))
    assert [one.repeat for one in load_faults(folder)] == [*range(kept), 5]


def test_a_run_without_a_log_has_no_jobs_yet(folder: Path) -> None:
    assert load_faults(folder) == []


def test_a_line_that_is_no_record_is_named_with_its_key(folder: Path) -> None:
    (folder / FAULTS_NAME).write_text(record().model_dump_json().replace('"recovered"', '"fine"') + "\n{}\n")
    with pytest.raises(StorageError, match=r"faults.jsonl:1: status: "):
        load_faults(folder)


@pytest.mark.parametrize(("with_s", "without_s"), [([], []), ([1.0], []), ([1.0], [1.0, 1.0]), ([1.0], [0.0])])
def test_windows_that_no_cost_of_a_checkpoint_follows_from_are_named(
    folder: Path, with_s: list[float], without_s: list[float]
) -> None:
    cost = CheckpointCost(steps_per_window=20, with_s=[1.0], without_s=[1.0], bytes=8)
    broken = cost.model_copy(update={"with_s": with_s, "without_s": without_s})
    (folder / FAULTS_NAME).write_text(record().model_copy(update={"cost": broken}).model_dump_json() + "\n")
    with pytest.raises(StorageError, match=r"faults.jsonl:1: cost: expected .*windows"):
        load_faults(folder)


def test_what_is_written_is_valid_by_the_published_schema(folder: Path) -> None:
    with FaultLog(folder) as log:
        log.append(record())
    published = json.loads((schema.FOLDER / "fault-1.json").read_text())
    line = json.loads((folder / FAULTS_NAME).read_text())
    assert jsonschema.Draft202012Validator(published).is_valid(line)
    assert not jsonschema.Draft202012Validator(published).is_valid({**line, "steps_lost": -1})


def test_a_listing_counts_jobs(folder: Path) -> None:
    with FaultLog(folder) as log:
        log.append(record())
    (listing,) = list_runs(folder.parent)
    assert (listing.trials, listing.unit) == (1, "jobs")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (record(1), "record: repeats line 2: remove one of the two"),
        (
            record(2).model_copy(update={"cell": cell(replicas=3), "cell_id": cell(replicas=3).cell_id}),
            f"cell_id: '{cell(replicas=3).cell_id}' is none of the cells of this run: mend or remove it",
        ),
        (record(2).model_copy(update={"cell_id": "0" * 12}), "record: cell_id 000000000000 is not the hash of the"),
    ],
    ids=["twice", "of another cell", "of no cell"],
)
def test_a_job_of_a_cell_that_the_run_does_not_have_or_one_that_is_there_twice_is_refused_by_file_line_and_key(
    folder: Path, line: FaultRecord, said: str
) -> None:
    with FaultLog(folder) as log:
        for one in (record(0), record(1), line):
            log.append(one)
    with pytest.raises(StorageError) as caught:
        load_faults(folder)
    assert str(caught.value).startswith(f"{folder / FAULTS_NAME}:3: {said}")


def test_a_log_that_is_a_link_is_not_written_to(folder: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_bytes(b"no line of ours")
    for target in (theirs, tmp_path / "new"):
        (folder / FAULTS_NAME).unlink(missing_ok=True)
        (folder / FAULTS_NAME).symlink_to(target)
        with pytest.raises(StorageError, match="it is a link; remove that link, then go on with --resume r"):
            FaultLog(folder)
    assert theirs.read_bytes() == b"no line of ours"
    assert not (tmp_path / "new").exists()
