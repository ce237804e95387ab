"""Files of records that are kept compressed: `trials.jsonl.gz` is read as `trials.jsonl` is.

Runs are written plain, since a line is appended as each trial ends; who keeps one compresses it with `gzip -n`.
"""

import gzip
import io
import zlib
from pathlib import Path
from typing import BinaryIO

from harness.errors import StorageError
from harness.files import LARGEST_RECORDS, opened, read_whole
from harness.record.files import reading

PACKED = ".gz"
MOST_TIMES = 100
"""Records become a quarter, a manifest a twentieth: what unfolds to more than so many times its size holds none."""
ALWAYS_READ = 2**24
"""Bytes that a file may unfold to however small it is."""


def records_file(path: Path) -> Path:
    """`path`, or where it is not there the compressed file beside it. StorageError where both are: one is stale."""
    packed = path.with_name(path.name + PACKED)
    with reading(path):
        if not packed.exists():
            return path
        twice = path.exists()
    if twice:
        raise StorageError(f"'{path}' is there twice, plain and as {packed.name}: remove the one that is stale")
    return packed


def plain_file(path: Path) -> Path:
    """`path`, to append to. StorageError where its lines are kept compressed."""
    if (kept := records_file(path)) != path:
        raise StorageError(f"'{kept}' is kept compressed, and nothing is added to it: unpack it first (gunzip)")
    return path


def opened_records(path: Path) -> BinaryIO:
    """`path` for reading; one that ends in .gz as what it holds.

    Opening and reading raise OSError that says so: no regular file, damaged, more than a run can hold.
    """
    stream = opened(path, LARGEST_RECORDS)
    return io.BufferedReader(_Unpacked(stream), 1 << 18) if path.suffix == PACKED else stream


def records_size(path: Path) -> int:
    """Bytes that `opened_records` has of `path`; of a compressed file by what its end says. Raises OSError."""
    with opened(path, LARGEST_RECORDS) as stream:
        size = stream.seek(0, io.SEEK_END)
        if path.suffix != PACKED:
            return size
        stream.seek(max(0, size - 4))
        return max(size, int.from_bytes(stream.read(4), "little"))


def read_records(path: Path) -> bytes:
    """All bytes of `path`, as `opened_records` has them. Raises OSError as it does."""
    if path.suffix != PACKED:
        return read_whole(path, LARGEST_RECORDS)
    with opened_records(path) as stream:
        return stream.read()


class _Unpacked(io.RawIOBase):
    """What a gzip file holds, as far as it is whole and no more than its size lets one expect."""

    def __init__(self, stream: BinaryIO) -> None:
        self._file, self._stream = stream, gzip.GzipFile(fileobj=stream)
        size = stream.seek(0, io.SEEK_END)
        stream.seek(0)
        self._left = min(LARGEST_RECORDS, max(ALWAYS_READ, MOST_TIMES * size))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # the abstract type of a buffer says less
        """How many bytes were read; OSError for a damaged file, and for one that unfolds to too much."""
        try:
            data = self._stream.read(min(len(buffer), self._left + 1))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise OSError(f"it is a damaged gzip file ({error})") from None
        self._left -= len(data)
        if self._left < 0:
            raise OSError("what it unfolds to is larger than any records of its size")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        self._file.close()
        super().close()
