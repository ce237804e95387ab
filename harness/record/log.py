"""A file of records that are no trials: a JSON line each, appended durably, read back without a torn end."""

import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from pydantic import BaseModel

from harness.record.files import append_line, own_descriptor, reading, storage_error, to_json
from harness.record.kind import RECORDS_NAME
from harness.record.packed import plain_file, read_records, records_file
from harness.record.reading import validated, whole_length

_Record = TypeVar("_Record", bound=BaseModel)


class RecordLog:
    """Appends to a file of a run whose lock is held. What `append` returned from is on disk."""

    def __init__(self, folder: Path, name: str = RECORDS_NAME) -> None:
        """Open it, without a last line that a kill tore. Raises StorageError."""
        self._path = plain_file(folder / name)
        try:
            self._descriptor = own_descriptor(self._path)
            with reading(self._path):
                data = read_records(self._path)
            if (whole := whole_length(data)) < len(data):
                os.ftruncate(self._descriptor, whole)
            elif data and not data.endswith(b"\n"):
                append_line(self._descriptor, b"")
        except OSError as error:
            raise storage_error("write", self._path, error, folder) from None

    def append(self, record: BaseModel) -> None:
        """Add one record. Raises StorageError, and the file is as before."""
        try:
            append_line(self._descriptor, to_json(record))
        except OSError as error:
            raise storage_error("write", self._path, error, self._path.parent) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)


def load_records(
    model: type[_Record],
    folder: Path,
    name: str = RECORDS_NAME,
    check: Callable[[_Record, Path, int], None] | None = None,
) -> list[_Record]:
    """The records of a run, without a last line that a kill tore; none when there is no file yet.

    Raises StorageError that names the line and the key of one that is not valid; `check` may refuse others so.
    """
    path = records_file(folder / name)
    records: list[_Record] = []
    with reading(path):
        try:
            data = read_records(path)
        except FileNotFoundError:
            return records
        for number, line in enumerate(data[: whole_length(data)].splitlines(), start=1):
            record = validated(model, line, f"{path}:{number}")
            if check is not None:
                check(record, path, number)
            records.append(record)
    return records
