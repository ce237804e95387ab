"""What a machine can do at most, as `doctor --limits` found it: `limits-MACHINE-TIME.json` in a results folder.

A file for each measurement, which is written whole and never changed. Of a machine with the same cores, GPUs and
versions the newest is the one that counts.
"""

import contextlib
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from harness.errors import StorageError
from harness.files import LARGEST_RECORDS, read_whole
from harness.record.bounds import Duration, Natural, PerSecond, Positive, Utc
from harness.record.files import is_folder, reading, replace_file, storage_error, to_json
from harness.record.manifest import Machine
from harness.record.model import RecordModel
from harness.record.proof import ProofRecord
from harness.record.reading import validated

LimitKind = Literal["products", "memory", "between_processes", "host_to_device", "device_to_host", "device_to_device"]
"""Matrix products in FLOP/s; memory by STREAM's add, what one process sends another, and copies in bytes/s."""


MACHINE_ID = r"^[0-9a-f]{12}$"
_TIME = "%Y%m%dT%H%M%SZ"


class ProcessLimit(RecordModel):
    """What one process came to in one quantity: the best of its repetitions, or why it has none."""

    quantity: LimitKind
    type: str
    """Of the numbers: `float32`."""
    arithmetic: str = ""
    """As `Limit` has it."""
    rate: PerSecond | None = None
    """FLOP/s or bytes/s."""
    size: Natural = 0
    """Rows of the square matrices, elements of an array in memory, bytes of a message or a copy."""
    repetitions: Natural = 0
    reason: str | None = None
    """Why there is no rate."""


class Limit(RecordModel):
    """One limit of the machine: what each of several fresh processes came to, or why there is none."""

    quantity: LimitKind
    type: str
    device: Literal["cpu", "gpu"]
    threads: Natural
    """On the processor; 0 elsewhere."""
    arithmetic: str = ""
    """Of products of `float32` on a GPU what they were computed in, as `Executed` has it: `tf32` or `float32`. Empty
    of others, and of earlier records."""
    rates: list[PerSecond] = []
    """The best repetition of each process, in the order in which they ran: FLOP/s or bytes/s."""
    sizes: list[Positive] = []
    """Of each process: rows of the square matrices, elements of an array in memory, bytes of a message or a copy."""
    repetitions: list[Positive] = []
    reason: str | None = None

    @model_validator(mode="after")
    def _makes_sense(self) -> "Limit":
        if not len(self.rates) == len(self.sizes) == len(self.repetitions):
            raise ValueError("rates, sizes and repetitions differ in length")
        if bool(self.rates) == (self.reason is not None):
            raise ValueError("expected rates, or a reason why there are none")
        return self

    @property
    def unit(self) -> str:
        """Of its rates: a floating-point operation is an addition or a multiplication."""
        return "FLOP/s" if self.quantity == "products" else "B/s"

    @property
    def best(self) -> float | None:
        """The limit: the largest rate that was seen. Other work on a machine makes a repetition slower, never faster,
        so STREAM's rule is to report the best."""
        return max(self.rates, default=None)


class LimitsRecord(RecordModel):
    """The whole of the file."""

    sheet: ClassVar = "limits"
    """What its file's name begins with."""
    schema_version: Literal[1] = 1
    machine_id: Annotated[str, Field(pattern=MACHINE_ID)]
    created_utc: Utc
    harness_version: str
    seconds: Duration
    """What measuring took, the import of the framework included."""
    limits: Annotated[list[Limit], Field(min_length=1)]
    machine: Machine
    """Facts of the machine then, versions among them."""


def make_place(results: Path) -> None:
    """Make the results folder where there is none. Raises StorageError, before anything was measured for it."""
    try:
        results.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error("make the results folder", results, error) from None


def keep_sheet(
    results: Path, record: LimitsRecord | ProofRecord, page: str = "", after: datetime | None = None
) -> Path:
    """Write the record, whole or not at all, as `limits-3f2a91c07d55-20261123T151009Z.json`; where it is.

    A page goes beside it, with the end `.html`. Where it was not made `after` that time, it is named a second later.
    Raises StorageError.
    """
    at = datetime.fromisoformat(record.created_utc).astimezone(UTC).replace(microsecond=0)
    if after is not None and at <= after:
        with contextlib.suppress(OverflowError):  # a copy that is named after the last second there can be
            at = after + timedelta(seconds=1)
    path = results / f"{record.sheet}-{record.machine_id}-{at:{_TIME}}.json"
    files = {path: to_json(record, indent=1) + b"\n"}
    if page:
        files[path.with_suffix(".html")] = page.encode()
    for file, data in files.items():
        try:
            replace_file(file, data)
        except OSError as error:
            raise storage_error("write", file, error) from None
    return path


def keep_newest(results: Path, record: LimitsRecord) -> Path:
    """Keep what was measured just now, so that it counts: a clock that ran ahead may have named another one later.
    Raises StorageError."""
    times = []
    for kept in results.glob(f"limits-{record.machine_id}-*.json"):
        with contextlib.suppress(ValueError):  # whatever a person calls a copy
            times.append(datetime.strptime(f"{kept.stem[-16:]}+0000", f"{_TIME}%z"))
    return keep_sheet(results, record, after=max(times, default=None))


def limits_of_machine(
    results: Path, machine_id: str, passed_over: Callable[[str], None] | None = None
) -> Iterator[LimitsRecord]:
    """The records of this machine in `results`, the newest first; none of what is no machine's id.

    One that cannot be read, is damaged, or is of another machine is passed over where `passed_over` takes the line
    that says so. Raises StorageError of that line elsewhere.
    """
    if re.fullmatch(MACHINE_ID, machine_id) and is_folder(results):
        for path in sorted(results.glob(f"limits-{machine_id}-*.json"), reverse=True):
            try:
                record = _of_machine(path, machine_id)
            except StorageError as error:
                if passed_over is None:
                    raise
                passed_over(str(error))
            else:
                yield record


def _of_machine(path: Path, machine_id: str) -> LimitsRecord:
    remedy = "remove it, or measure anew with doctor --limits --again"
    with reading(path):
        data = read_whole(path, LARGEST_RECORDS)
    try:
        record = validated(LimitsRecord, data, str(path), remedy="")
    except StorageError as error:
        raise StorageError(f"{error}; {remedy}") from None
    if record.machine_id != machine_id:
        raise StorageError(f"{path}: machine_id: it is of machine {record.machine_id}, not of {machine_id}; {remedy}")
    return record
