"""`faults.jsonl`, a line for each job that a fault was done to."""

from pathlib import Path

from harness.record.belonging import Belonging
from harness.record.faults import FAULTS_NAME, FaultRecord
from harness.record.log import RecordLog, load_records
from harness.record.reading import load_manifest


class FaultLog(RecordLog):
    """Appends to `faults.jsonl` of a run whose lock is held."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, FAULTS_NAME)


def load_faults(folder: Path) -> list[FaultRecord]:
    """The records of a run of faults. Raises what `load_records` does, also for a job of a cell that the run does
    not have, or one that is there twice."""
    return load_records(FaultRecord, folder, FAULTS_NAME, Belonging(None, load_manifest(folder).cells).check)
