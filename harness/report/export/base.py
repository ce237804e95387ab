"""What an exporter is, and writing its output whole or not at all."""

import contextlib
import errno
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from harness.analysis import CellSummary, RunSummary
from harness.errors import HarnessError, StorageError, UsageError
from harness.files import hold_folder, no_folder
from harness.record.files import OF_KERNEL, is_setting, replace_file
from harness.record.own_files import is_own_file
from harness.record.reading import Run
from harness.record.trial import TrialRecord

PATIENCE_S = 10.0
"""How long another export to one folder is waited for."""


class Exporter(Protocol):
    """One format."""

    @property
    def name(self) -> str:
        """What `--format` takes."""

    @property
    def summary(self) -> str:
        """One line for `--help`."""

    @property
    def suffix(self) -> str:
        """The usual end of the file's name."""

    def export(self, run: Run, target: Path | None) -> str | None:
        """Write `target`, or return the text when it is None. Raises HarnessError with the remedy."""


def measured_cells(summary: RunSummary, name: str) -> list[CellSummary]:
    """The cells with a throughput, in the run's order, for a format that has no place for the others.

    HarnessError when there is none: an empty file would read as a benchmark that passed.
    """
    cells = [cell for cell in summary.cells if cell.measured is not None]
    if not cells:
        raise HarnessError(f"format {name}: no cell of {summary.run_id} has a throughput; --format csv says why")
    return cells


def by_cell(trials: Iterable[TrialRecord]) -> defaultdict[str, list[TrialRecord]]:
    """The trials of each cell by its id, in order."""
    found: defaultdict[str, list[TrialRecord]] = defaultdict(list)
    for trial in trials:
        found[trial.cell_id].append(trial)
    return found


def write_folder(target: Path, files: Mapping[str, bytes]) -> None:
    """Write `files`, by path relative to `target`, each whole or not at all; others there stay. Raises StorageError."""
    _refuse_no_folder(target)
    for name in files:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise StorageError(f"cannot write '{name}' in '{target}': the name leads out of that folder")
    for name, data in files.items():
        write(target / name, data, "DIR")


@contextlib.contextmanager
def alone_in(target: Path) -> Iterator[None]:
    """The folder is there, and of two exports that add to it the second sees what the first has written. Raises what
    `write_folder` does."""
    _refuse_no_folder(target)
    with contextlib.ExitStack() as held:
        with _told(target, "DIR"):
            target.mkdir(parents=True, exist_ok=True)
            free = held.enter_context(hold_folder(target, PATIENCE_S))
        if not free:
            raise StorageError(f"'{target}' is being written by another export for {PATIENCE_S:g} s; wait for its end")
        yield


def _refuse_no_folder(target: Path) -> None:
    refuse_place(target, "DIR")
    with _told(target, "DIR"):
        if reason := no_folder(target):
            raise StorageError(f"cannot write '{target}': {reason}; name a folder with --output DIR")


def deliver(content: str, target: Path | None) -> str | None:
    """Return `content`, or write it to `target` and return None."""
    if target is None:
        return content
    write(target, content.encode("utf-8", "replace"))
    return None


def refuse_place(target: Path, example: str) -> None:
    """UsageError for a file that a run keeps, StorageError for one of the kernel and for a name that leads nowhere.

    Who takes long to make what is written asks before that; `example` is what the remedy says to name.
    """
    with _told(target, example):
        if is_own_file(target):
            raise UsageError(f"--output: '{target}' is a file that a run keeps; name another with --output {example}")
        if is_setting(target):
            raise OSError(errno.EINVAL, OF_KERNEL)


def write(target: Path, data: bytes, example: str = "FILE") -> None:
    """Write `data` whole or not at all: what every verb that writes a file of one's choice ends with.

    Raises what `refuse_place` does, and StorageError.
    """
    refuse_place(target, example)
    with _told(target, example):
        if target.is_dir():
            raise StorageError(f"cannot write '{target}': it is a folder; name a file with --output {example}")
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, data)


@contextlib.contextmanager
def _told(target: Path, example: str) -> Iterator[None]:
    """What the system says against writing `target`, as a StorageError with another place for its remedy."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno == errno.ENXIO:  # nobody is waited for
            reason = "it is a pipe that nothing reads"
        elif isinstance(error, (FileExistsError, NotADirectoryError)):
            reason = no_folder(target.parent) or reason
        raise StorageError(f"cannot write '{target}': {reason}; choose another place with --output {example}") from None
