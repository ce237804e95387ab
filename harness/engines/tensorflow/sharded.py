"""Data that a run writes into TFRecord files before its first trial, because a cell asks for `shards`.

They are the files that `prepare` writes of the same source, byte for byte, and lie where the machine's prepared data
are, a folder for each source, number, compression and state of the source. What is whole there is never written again.
Files of an earlier state stay while a trial reads them.
"""

import contextlib
import copy
import fcntl
import hashlib
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from harness.engines.tensorflow.data import Source, load_source
from harness.engines.tensorflow.data.own_batches import OwnBatches
from harness.engines.tensorflow.data.store import TELL, locked, not_prepared, unusable
from harness.engines.tensorflow.data.tfds import TfdsSource
from harness.engines.tensorflow.data.tfrecord import TfrecordSource
from harness.engines.tensorflow.preparing import describe, write_group
from harness.errors import HarnessError, StorageError, Unsupported, UsageError
from harness.protocol.preparing import Described
from harness.protocol.shards import preparation_of, seal, shards_of, unfinished, whole_files, written_file
from harness.record.files import replace_file
from harness.record.tfrecords import FEATURES
from harness.spec.shape import DataFiles
from harness.spec.work import Cell
from harness.visible import plural

if TYPE_CHECKING:
    import keras

FOLDER = "shards"
READERS = "readers.lock"
"""In a data set's folder: shared by who reads its files, and alone of who removes them."""


class WrittenSource(TfrecordSource):
    """The examples of `origin` in its order, read from the files that a run has written of them."""

    def __init__(self, origin: Source, folder: Path) -> None:
        """HarnessError where the files are not there; they stay for as long as this object does."""
        with contextlib.suppress(OSError):
            self._readers = (folder / READERS).open("rb")
            fcntl.flock(self._readers, fcntl.LOCK_SH)
        if not (folder / FEATURES).is_file():
            raise not_prepared(origin.name, folder)
        super().__init__(str(folder))
        self.name = origin.name
        self._origin = copy.copy(origin)
        self._origin.gives = self.gives  # some sources know it once they are asked what they are

    def for_model(self, model: "keras.Model") -> Source:
        """And its origin, too."""
        made = copy.copy(self)
        made._origin = self._origin.for_model(model)
        made.pixels = made._origin.pixels
        return made

    @property
    def origin(self) -> Source:
        """What was written into the files."""
        return self._origin


def source_of(cell: Cell, data_dir: Path) -> Source:
    """What a cell reads: its data as they are, or from the files that it asks for, which are there.

    Raises HarnessError where there are no such data, or no such files, and Unsupported for what the user's own function
    would have to do itself, or nobody does to examples that the model takes as they are.
    """
    origin, files = load_source(cell.data_set or ""), cell.data_files
    if isinstance(origin, OwnBatches):
        origin.must_not_be_asked(cell)
        origin.are_for(cell)
    source = origin if files is None else WrittenSource(origin, folder_of(origin, data_dir, files))
    _must_be_mapped(source, cell, data_dir)
    return source


def _must_be_mapped(source: Source, cell: Cell, data_dir: Path) -> None:
    """Unsupported where a cell asks how examples are decoded, and none is."""
    others = bool(cell.get("data_service")) or (cell.get("interleave") or 0) > 1  # which may keep no order
    asked = {
        "parallel_calls": bool(cell.get("parallel_calls")),
        "deterministic": cell.get("deterministic") is False and not others,
    }
    if not any(asked.values()):
        return
    source.info(data_dir)  # of some only this tells what they give
    if source.gives == "own" and not source.holds_images:
        key = max(asked, key=asked.__getitem__)
        raise Unsupported(
            f"{key}: '{source.name}' gives examples as the model takes them, and none is decoded: leave {key} out"
        )


def must_be_shared_evenly(source: Source, workers: int) -> None:
    """Unsupported where the files that a source is read from are not as many for each worker: one would train on its
    examples more often."""
    count = len(source.files) if isinstance(source, TfrecordSource) else 0
    if not count or count % workers:
        raise Unsupported(
            f"autoshard: '{source.name}' lies in {plural(count, 'TFRecord file')}, not as many for each of {workers} "
            "workers: prepare it into others, or use --autoshard data"
        )


def make_ready(cell: Cell, data_dir: Path) -> None:
    """Make or download the cell's data, and write the files that it asks for. A second call costs a pass over both.

    Raises UsageError for data that there are not, another HarnessError for what cannot be had or written here, and
    Unsupported where they do not go into such files.
    """
    origin, files = load_source(cell.data_set or ""), cell.data_files
    if isinstance(origin, TfdsSource):
        origin.are_for(cell)
    origin.prepare(data_dir)
    if files is not None:
        _make_files(origin, data_dir, files)


def folder_of(origin: Source, data_dir: Path, files: DataFiles) -> Path:
    """Where the files of a source lie; HarnessError where a run has yet to write them."""
    place = _place(origin, data_dir, files)
    try:
        return place.parent / _newest(place).read_text(encoding="utf-8")
    except OSError:
        raise not_prepared(origin.name, place) from None


def _place(origin: Source, data_dir: Path, files: DataFiles) -> Path:
    """How the folders of the states of a source begin."""
    readable = re.sub(r"\W+", "_", origin.name)[:40]
    return data_dir / FOLDER / f"{readable}-{_short(origin.place)}" / f"{files.shards}-{files.compression}"


def _newest(place: Path) -> Path:
    """The file with the name of the folder of the newest state."""
    return place.with_name(f"{place.name}.txt")


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _make_files(origin: Source, data_dir: Path, files: DataFiles) -> None:
    import tensorflow as tf

    place = _place(origin, data_dir, files)
    name = "-".join((FOLDER, place.parent.name, place.name))
    with locked(data_dir, name), _told(data_dir), tf.device("CPU:0"), origin.reading():
        described = _described(origin, data_dir, files)
        folder = place.with_name(f"{place.name}-{_short(described.state)}")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / READERS).touch()
        for left in unfinished(folder):
            left.unlink()
        _write_missing(origin, data_dir, folder, described, files)
        replace_file(_newest(place), folder.name.encode())
        for other in set(place.parent.glob(f"{place.name}-*")) - {folder}:
            _remove_unread(other)


def _remove_unread(folder: Path) -> None:
    """Remove the files of an earlier state, where no trial reads them."""
    with contextlib.suppress(OSError), (folder / READERS).open("ab") as readers:
        fcntl.flock(readers, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder)


def _write_missing(origin: Source, data_dir: Path, folder: Path, of: Described, files: DataFiles) -> None:
    """Write what of the files is not whole, and say what that took; nothing where all are."""
    began, own = time.monotonic(), time.process_time()
    described = of.features
    plans = shards_of(described, files.shards)
    whole = whole_files(folder, plans, TELL.get())
    missing = [one for one in plans if one.file not in whole]
    if not missing and (folder / FEATURES).is_file():
        return
    write_group(origin, data_dir, folder, described, missing)
    written = [written_file(folder, one.file) for one in missing]
    cost = time.monotonic() - began, time.process_time() - own
    how = preparation_of(origin.name, of.state, written, cost)
    seal(folder, described, {**whole, **{shard.file: shard for shard in written}}, how, plans)
    took = f"{plural(how.written, 'example')}, {how.bytes_in / 1e6:,.1f} MB, in {how.wall_s:.1f} s"
    TELL.get()(f"'{origin.name}' written into {files.words}, {how.bytes_out / 1e6:,.1f} MB: {took}; '{folder}'")


def _described(origin: Source, data_dir: Path, files: DataFiles) -> Described:
    """What the files are to hold; Unsupported where they cannot hold the examples."""
    try:
        described = describe(origin, data_dir)
    except UsageError as error:
        raise Unsupported(f"shards: {str(error).removeprefix('source: ')}") from error
    if files.shards > (most := described.features.examples or 0):
        raise Unsupported(f"shards: given {files.shards}, expected at most {most:,}, one for each example")
    features = described.features.model_copy(update={"compression": files.compression})
    return described.model_copy(update={"features": features})


@contextlib.contextmanager
def _told(data_dir: Path) -> Iterator[None]:
    """What a disk refuses is told of the folder that a person has named, what an example is of the data."""
    try:
        yield
    except StorageError as error:
        told = str(error).removeprefix("target: ")
        raise HarnessError(f"data_dir: {told}; mend that or name another folder") from error
    except OSError as error:
        raise unusable(data_dir, error) from error
    except UsageError as error:
        raise UsageError(f"data: {str(error).removeprefix('source: ').removeprefix('data: ')}") from error
