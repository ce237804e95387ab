"""Read runs back: whole runs, listings, and the run that a person means by a name."""

import contextlib
import fnmatch
import gc
import json
import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from harness.errors import NothingMeasured, StorageError, UsageError, nearest
from harness.files import LARGEST_RECORDS, read_whole
from harness.record.belonging import REMEDY, Belonging
from harness.record.files import LOCK_NAME, UNFINISHED, is_locked, reading, storage_error
from harness.record.kind import TRIALS_NAME
from harness.record.manifest import SCHEMA_VERSION, RunManifest
from harness.record.packed import PACKED, opened_records, records_file
from harness.record.trial import TrialRecord
from harness.spec.reading import PATTERNS
from harness.spec.work import Cell
from harness.visible import one_line

MANIFEST_NAME = "run.json"
OF_RESULTS = (f"*/{MANIFEST_NAME}", "proof-*.json", "limits-*.json")
"""What folders of results have in them."""
_SHOWN_RUNS = 5
_UNPROVED = b'"status":"unproved"'
_LATEST = re.compile(r"latest(~(?P<before>[0-9]{1,6}))?")
_Model = TypeVar("_Model", bound=BaseModel)


@dataclass(frozen=True)
class Run:
    """A run as it is on disk. `torn`: the last line was cut off by a kill and is left out.

    `live`: another process, or this one, is still writing it.
    """

    path: Path
    manifest: RunManifest
    trials: list[TrialRecord]
    torn: bool
    live: bool
    rank_unproved: bool = False
    """Whether rankings take in cells that are unproved: the reader's choice, no part of the records."""
    results: Path | None = None
    """The folder to look in for what lies beside runs, as the reader chose it too; None is the one that it is in."""

    @property
    def unmeasured(self) -> NothingMeasured | None:
        """What is to be said of a finished run of which no trial has a figure; None of every other."""
        if self.manifest.status != "finished" or any(trial.step_time_s is not None for trial in self.trials):
            return None
        return NothingMeasured.of(f"{trial.status.replace('_', ' ')}: {trial.reason}" for trial in self.trials)

    def of_side(self, side: str, cell_ids: Collection[str]) -> "Run":
        """What the trials of one side alone, or of one arm of these cells, would be as a run."""
        plans = [
            plan.model_copy(
                update={"blocks": [[[one for one in group if one == side] for group in block] for block in plan.blocks]}
            )
            for plan in self.manifest.plans
        ]
        cells = [cell for cell in self.manifest.cells if cell.cell_id in cell_ids]
        trials = [trial for trial in self.trials if trial.side == side]
        manifest = self.manifest.model_copy(update={"cells": cells, "plans": plans})
        return replace(self, manifest=manifest, trials=trials)


@dataclass(frozen=True)
class RunListing:
    """One row of `list`. A run that cannot be read has a `problem` and None for what is unknown."""

    path: Path
    run_id: str
    problem: str | None = None
    name: str | None = None
    kind: str | None = None
    status: str | None = None
    created_utc: str | None = None
    finished_utc: str | None = None
    cells: int | None = None
    planned: int | None = None
    """Trials that the sealed plans hold."""
    trials: int | None = None
    """Lines of the file of its records; more than `planned` when trials were attempted again."""
    unproved: int = 0
    """Of these, those that the gate left unproved."""
    unit: str = "trials"
    live: bool = False


def load_run(path: Path) -> Run:
    """Read one run folder whole.

    Raises StorageError that names the file, and for a bad record its line and key.
    """
    manifest = load_manifest(path)
    trials, torn = load_trials(path / TRIALS_NAME, manifest.run_id, manifest.cells)
    return Run(path=path, manifest=manifest, trials=trials, torn=torn, live=is_locked(path))


def load_manifest(path: Path) -> RunManifest:
    """Read `run.json` of the run folder `path`. Raises StorageError."""
    file = path / MANIFEST_NAME
    with reading(file):
        try:
            return validated(RunManifest, read_whole(file, LARGEST_RECORDS), str(file))
        except (FileNotFoundError, NotADirectoryError):
            there = path.exists()
    if not there:
        raise StorageError(f"there is no run at '{path}'; `python -m harness list` shows what there is")
    with reading(path):
        only_begun = _only_begun(path)
    if only_begun:
        raise StorageError(f"'{path}' was begun and killed before it held anything; rm -r {shlex.quote(str(path))}")
    raise StorageError(
        f"'{path}' is not a run: it has no {MANIFEST_NAME}; `python -m harness list` shows the runs there are"
    )


def _only_begun(path: Path) -> bool:
    """Whether a folder has nothing but what a process that begins a run makes first, and no process does."""
    names = {entry.name for entry in path.iterdir()} if path.is_dir() else set()
    mine = {name for name in names if name == LOCK_NAME or fnmatch.fnmatchcase(name, UNFINISHED)}
    return LOCK_NAME in names and names == mine and not is_locked(path)


def load_trials(file: Path, run_id: str, cells: Iterable[Cell] = ()) -> tuple[list[TrialRecord], bool]:
    """The records of `trials.jsonl`, compressed or not, and whether a torn last line was left out.

    A file that does not exist yet holds no trials: a run may be killed before its first one.
    Raises StorageError that names the line and the key of a record that is not valid, or that is none of the run
    (`Belonging`); with `cells`, those of the manifest, one of another cell too.
    """
    trials: list[TrialRecord] = []
    of_run = Belonging(run_id, cells)
    file = records_file(file)
    with reading(file):
        try:
            # A line at a time: the whole file beside its records would double what a large run needs.
            with opened_records(file) as stream, _without_collector():
                for number, line, last in _numbered_lines(stream):
                    if last and not _is_json(line):
                        return trials, True
                    of_run.check(record := validated(TrialRecord, line, f"{file}:{number}"), file, number)
                    trials.append(record)
        except FileNotFoundError:
            return [], False
    return trials, False


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Records hold no cycles, and the collector would walk through all of them again and again: a fifth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def whole_length(data: bytes) -> int:
    """How many bytes of a `trials.jsonl` are whole lines; the rest is a tail torn by a kill.

    A last line that only lacks its newline is whole (no proper beginning of a JSON object is JSON). A
    last line that ends in a newline but is no JSON is torn: after a power cut some file systems
    leave blocks of zeros inside it.
    """
    start = data.rstrip(b"\n").rfind(b"\n") + 1
    return len(data) if _is_json(data[start:]) else start


def list_runs(results: Path) -> list[RunListing]:
    """Every run in `results`, the oldest first; those that cannot be read are listed with the reason.

    Cheap: reads manifests and counts lines. A `results` that does not exist holds no runs.
    Raises StorageError when `results` itself cannot be read.
    """
    return _listings(results, counted=True)


def list_manifests(results: Path) -> list[RunListing]:
    """The same without a look at records: nothing is counted, and a run has no problem yet of which they alone cannot
    be read (`has_whole_records`). For who wants a few of many runs."""
    return _listings(results, counted=False)


def has_whole_records(row: RunListing) -> bool:
    """Whether `list_runs` would have no problem with the run of a row of `list_manifests`."""
    return row.problem is None and _listing(row.path, counted=True).problem is None


def _listings(results: Path, counted: bool) -> list[RunListing]:
    rows = [row for entry in _entries(results) if (row := _listing_of(entry, counted)) is not None]
    return sorted(rows, key=lambda row: (row.created_utc or "", row.run_id))


def resolve_run(text: str, results: Path) -> Path:
    """The run folder meant by `text`: a path, the name of a folder, a run id, the unique beginning of either, the name
    that only one run's spec has, `latest`, or `latest~N`, the Nth run before that.

    A folder has the run's id for a name unless somebody has renamed it; both are names of it.
    Raises UsageError that names the runs there are and the nearest one.
    """
    try:
        return _meant(text, results)
    except OSError as error:
        raise UsageError(f"RUN: '{text}' names no run: {error.strerror or error}") from None


def _meant(text: str, results: Path) -> Path:
    given = Path(text)
    if (given / MANIFEST_NAME).is_file():
        return given
    if given.name in (MANIFEST_NAME, TRIALS_NAME, TRIALS_NAME + PACKED) and given.is_file():
        return given.parent
    rows = list_manifests(results)
    if (back := _LATEST.fullmatch(text)) and (latest := _latest(text, int(back["before"] or 0), rows, results)):
        return latest
    if (results / text).is_dir() and text not in ("", ".", ".."):
        return results / text
    named = [row for row in rows if row.run_id == text and has_whole_records(row)]
    called = [] if named else [row for row in rows if row.name == text and has_whole_records(row)]
    meant = named or (called if len(called) == 1 else [])
    begun = [row for row in rows if text and (row.path.name.startswith(text) or row.run_id.startswith(text))]
    meant = meant or [row for row in rows if row in called or (row in begun and has_whole_records(row))]
    if len(meant) == 1:
        return meant[0].path
    if len(meant) > 1:
        what = "the id" if named else "the name" if called else "the beginning"
        raise UsageError(f"RUN: '{text}' is {what} of several runs: {_some(row.path.name for row in meant)}")
    if given.is_dir():
        return given  # a folder that is no run: reading it says so, and why
    if not (runs := [row for row in rows if has_whole_records(row)]):
        raise UsageError(
            f"RUN: no run '{text}': there are no runs in '{results}' yet; `python -m harness sweep` makes one"
        )
    names = dict.fromkeys(name for row in runs for name in (row.path.name, row.run_id))
    there = _some(row.path.name for row in runs)
    raise UsageError(f"RUN: no run '{text}' in '{results}'; there are {there}{nearest(text, names)}")


def _latest(text: str, before: int, rows: Sequence[RunListing], results: Path) -> Path | None:
    """The run so many before the newest; None where there is none at all. UsageError where there are fewer."""
    # a table that was imported is no run that one has just made, unless there is no other
    imported = [row for row in rows if row.status == "imported"]
    made: list[RunListing] = []
    for kind in ([row for row in rows if row.status != "imported"], imported):
        for row in filter(has_whole_records, reversed(kind)):  # the records of older ones are not looked at
            made.append(row)
            if len(made) > before:
                return row.path
        if made:
            there = _some(row.path.name for row in reversed(made))
            raise UsageError(f"RUN: no run '{text}' in '{results}'; there are {there}")
    return None


def _some(given: Iterable[str]) -> str:
    names = list(given)
    newest = names[: -_SHOWN_RUNS - 1 : -1]
    more = len(names) - len(newest)
    return ", ".join(newest) + (f" and {more} more" if more else "")


def _entries(results: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(results) as entries:
            return [entry for entry in entries if not entry.name.startswith(".")]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise storage_error("read", results, error) from None


def _listing_of(entry: os.DirEntry[str], counted: bool) -> RunListing | None:
    """None for what is no run: a file, and a folder that is none but has some, or sheets of machines, in it, which is a
    `results` of its own."""
    path = Path(entry.path)
    try:
        if not entry.is_dir() or (not (path / MANIFEST_NAME).exists() and _holds_results(path)):
            return None
    except OSError as error:  # such as another user's: the rest can be listed all the same
        return RunListing(path=path, run_id=path.name, problem=str(storage_error("read", path, error)))
    return _listing(path, counted)


def _holds_results(folder: Path) -> bool:
    return any(found for pattern in OF_RESULTS for found in folder.glob(pattern))


def _listing(folder: Path, counted: bool) -> RunListing:
    try:
        manifest = load_manifest(folder)
        what = manifest.what
        trials, unproved = _counted(folder / what.kind.log) if counted else (None, 0)
    except StorageError as error:
        return RunListing(path=folder, run_id=folder.name, problem=str(error), live=is_locked(folder))
    return RunListing(
        path=folder,
        run_id=manifest.run_id,
        name=manifest.sweep.name,
        kind=what.kind.name,
        status=manifest.status if what.kind.measured else "imported",
        created_utc=manifest.created_utc,
        finished_utc=manifest.finished_utc,
        cells=what.counted(len(manifest.cells)),
        planned=sum(len(group) for plan in manifest.plans for block in plan.blocks for group in block),
        trials=trials,
        unproved=unproved,
        unit=what.kind.unit,
        live=is_locked(folder),
    )


def _counted(file: Path) -> tuple[int, int]:
    """Lines, and those of unproved trials: within a text of the record its quotes would be escaped."""
    file = records_file(file)
    lines = unproved = 0
    with reading(file):
        try:
            with opened_records(file) as stream:
                before = b""
                for chunk in iter(lambda: stream.read(1 << 20), b""):
                    lines += chunk.count(b"\n")
                    unproved += (before + chunk).count(_UNPROVED)
                    before = (before + chunk)[1 - len(_UNPROVED) :]
        except FileNotFoundError:
            return 0, 0
    return lines, unproved


def _numbered_lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes, bool]]:
    """(number, line, whether it is the last) of the lines that are not empty."""
    waiting: tuple[int, bytes] | None = None
    for number, line in enumerate(stream, start=1):
        if line != b"\n":
            if waiting is not None and waiting[1].strip():
                yield *waiting, False
            waiting = number, line
    if waiting is not None:
        yield *waiting, True


def _is_json(line: bytes) -> bool:
    """Whether `line` is whole JSON. What is nested too deeply to tell, or has a number of too many digits, is left for
    validation to refuse: it must not pass for a tail that a kill tore."""
    try:
        json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError):
        return False
    except (RecursionError, ValueError):
        return True
    return True


def validated(model: type[_Model], data: bytes, where: str, remedy: str = f": {REMEDY}") -> _Model:
    """`data` as a record of that kind. StorageError of one line that names `where`, the key and, but for a record of a
    newer version, the remedy."""
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        problem = _version_problem(data) or _first_problem(error.errors()[0]) + remedy
        raise StorageError(f"{where}: {problem}") from None
    except UsageError as error:  # of a spec that the record holds
        raise StorageError(f"{where}: sweep.{_excerpt(str(error))}{remedy}") from None


def _version_problem(data: bytes) -> str | None:
    """A record of a newer version is full of unknown keys; the version is the thing to say first."""
    try:
        raw = json.loads(data)
    except (ValueError, RecursionError):
        return None
    version = raw.get("schema_version", SCHEMA_VERSION) if isinstance(raw, dict) else SCHEMA_VERSION
    if isinstance(version, int) and version > SCHEMA_VERSION:
        return (
            f"schema_version: {version} was written by a newer version of the harness "
            f"(this one reads {SCHEMA_VERSION}): update the harness to read it"
        )
    return None


def _first_problem(error: ErrorDetails) -> str:
    if error["type"] == "json_invalid":
        return f"not valid JSON ({error['ctx']['error']})"
    key = _excerpt(".".join(str(part) for part in error["loc"]) or "record")
    if error["type"] == "missing":
        return f"{key}: missing"
    if error["type"] == "extra_forbidden":
        return f"{key}: unknown key"
    expected = error["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    last = next((part for part in reversed(error["loc"]) if isinstance(part, str)), "")  # behind it is a list's number
    if error["type"] == "value_error":
        return f"{key}: {_excerpt(expected.removeprefix(f'{last}: '))}"
    if error["type"] == "string_pattern_mismatch":
        expected = PATTERNS.get(last, expected)
    return f"{key}: given {_excerpt(repr(error['input']), 60)}, expected {expected}"


def _excerpt(text: str, most: int = 200) -> str:
    """At most `most` characters, none of which disturbs a terminal: a record may hold any text."""
    return one_line(text if len(text) <= most else text[: most - 3] + "...")
