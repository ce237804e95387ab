"""Any source's examples as TFRecord files, by several processes, so that the same bytes come out.

What is whole is never written again: each file has another name until it is on the disk, and then a side file with its
digest. A call that was killed, or met a full disk, goes on where the next one finds it.
"""

import contextlib
import importlib.util
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from harness.errors import HarnessError, Interrupted, StorageError, UsageError, not_one_of
from harness.files import no_folder
from harness.protocol.preparing import Described, ReadingCompared
from harness.protocol.shards import preparation_of, seal, shards_of, unfinished, whole_at, whole_files, written_file
from harness.record.files import FolderLock, replace_file, to_json
from harness.record.tfrecords import FEATURES, Features, Runners, Shard, WrittenShard
from harness.run.interrupts import Interrupts
from harness.run.preparing.asked import NEEDS, AskedFiles, FilesListener
from harness.run.preparing.plan import PLAN, TRIED_IN, PreparePlan, as_read, check_target, one_spelling, plan_for
from harness.run.preparing.processes import Writers
from harness.run.process.scratch import scratch_folder
from harness.spec.axes import PLACES, SO_MANY_PHOTOGRAPHS
from harness.spec.inputs import FILES
from harness.trial.engines import catalogue_of
from harness.visible import quoted


def prepare(asked: AskedFiles, listener: FilesListener) -> tuple[Features, bool]:
    """Write what is missing; what there is then, and whether what it took or how fast it is read was not known before.

    Raises UsageError for what cannot be asked, StorageError where the target takes no files, and Interrupted.
    """
    asked = checked(asked)
    with locked(asked.target), Interrupts() as interrupts, writers(asked, interrupts) as work:
        return _prepare(asked, work, listener)


@contextlib.contextmanager
def writers(asked: AskedFiles, interrupts: Interrupts) -> Iterator[Writers]:
    """Processes for what is asked, and none of them afterwards."""
    with (
        contextlib.closing(scratch_folder()) as scratch,
        contextlib.closing(Writers(asked, scratch.path, interrupts)) as work,
    ):
        yield work


def _prepare(asked: AskedFiles, work: Writers, listener: FilesListener) -> tuple[Features, bool]:
    features, sealed = write(asked, work, listener)
    known = features.preparation is not None and features.preparation.source_read is not None
    if known and not sealed:
        return features, False
    return compared(asked.target, features, contextlib.nullcontext(work), listener), True


def write(asked: AskedFiles, work: Writers, listener: FilesListener) -> tuple[Features, bool]:
    """As `prepare`, without reading source and files in turns afterwards; whether the features.json is of this call."""
    with storage(asked.target):
        check_target(asked.target)
        shutil.rmtree(asked.target / TRIED_IN, ignore_errors=True)
        for left in unfinished(asked.target):
            left.unlink()
    before = whole_at(asked.target / FEATURES, Features)
    began, own = time.monotonic(), time.process_time()
    if before is None:
        work.warm_up()
    described = Described.model_validate_json(work.answer("describe", listener.read))
    plan = plan_for(asked, described)
    shards = shards_of(plan, plan.count)
    whole = whole_files(asked.target, shards, listener.said)
    missing = [one for one in shards if one.file not in whole]
    listener.begun(plan.examples or 0, len(shards), len(whole))
    now = Runners(by=asked.by, processes=asked.processes)
    if not missing:
        if before is not None:
            return before, False
        ended = plan.model_copy(update={"ran": plan.ran or (now,)})  # an earlier version kept nobody
        return _finish(asked.target, ended, None, whole), True
    with storage(asked.target):
        replace_file(asked.target / PLAN, to_json(plan, indent=1))

    def so_far() -> PreparePlan:
        """With what this call has taken, and who ran it, beside those that it goes on with."""
        cpu_s = plan.cpu_s + time.process_time() - own + work.cpu_s()
        wall_s = plan.wall_s + time.monotonic() - began
        return plan.model_copy(update={"wall_s": wall_s, "cpu_s": cpu_s, "ran": plan.ran_by(now)})

    work.write(plan, missing, listener, lambda: _keep(asked.target, so_far()))
    written = {one.file: written_file(asked.target, one.file) for one in missing}
    features = _finish(asked.target, so_far(), before, {**whole, **written})
    if before is not None and before.digest != features.digest:
        listener.said(f"the digest was {before.digest}: the source gives other examples now than when it was prepared")
    return features, True


def checked(asked: AskedFiles) -> AskedFiles:
    """The same with its source in one spelling; UsageError for what cannot be asked."""
    if asked.by in NEEDS and importlib.util.find_spec(NEEDS[asked.by]) is None:
        raise UsageError(f"--with: {asked.by} is not installed here; pip install 'tf-distribute-harness[{asked.by}]'")
    catalogue = catalogue_of()
    if asked.source not in catalogue.data:
        if fault := catalogue.data_fault(asked.source, asked.data_dir):
            raise UsageError(fault.replace("data: ", "source: ", 1))
        if ":" not in asked.source:
            beside = [SO_MANY_PHOTOGRAPHS, "tfds:NAME", "folder:PATH", "package.module:function"]
            raise not_one_of("source", asked.source, [*catalogue.data, *beside])
    if reason := no_folder(asked.target):
        raise UsageError(f"target: given '{asked.target}', expected a folder: {reason}")
    if not re.fullmatch(PLACES, f"{FILES}{asked.target}"):
        raise UsageError(
            f"target: given {quoted(str(asked.target))}, expected a folder that --data can name: without commas and "
            "line breaks"
        )
    return replace(asked, source=one_spelling(asked.source))


@contextlib.contextmanager
def storage(target: Path) -> Iterator[None]:
    """What the system refuses is told of the target."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"target: cannot write to '{target}': {error.strerror or error}") from None


@contextlib.contextmanager
def locked(target: Path) -> Iterator[None]:
    """The target is made, and is this call's alone."""
    with storage(target):
        new = [folder for folder in (target, *target.parents) if not folder.exists()]
        target.mkdir(parents=True, exist_ok=True)
        lock = FolderLock(target)
    try:
        yield
    finally:
        lock.release()
        with contextlib.suppress(OSError):  # it has files now, but after what could not be asked
            for folder in new:
                folder.rmdir()


def _finish(target: Path, plan: PreparePlan, before: Features | None, shards: dict[str, Shard]) -> Features:
    """The features.json of a data set whose files are all there, with what the calls took that wrote those of no
    earlier features.json, and with what the one `before` says of how they are read."""
    written = [shard for shard in shards.values() if isinstance(shard, WrittenShard)]
    with storage(target):
        how = preparation_of(plan.source, plan.state, written, (plan.wall_s, plan.cpu_s), plan.ran)
        known = plan if before is None else as_read(before, plan)
        features = seal(target, known, shards, how, shards_of(plan, plan.count))
        (target / PLAN).unlink(missing_ok=True)
    return features


def _keep(target: Path, so_far: PreparePlan) -> None:
    """For a later call, should this one not come to its end. A full disk is told by who writes files."""
    with contextlib.suppress(OSError):
        replace_file(target / PLAN, to_json(so_far, indent=1))


def compared(
    target: Path, features: Features, of: AbstractContextManager[Writers], listener: FilesListener
) -> Features:
    """The features.json with how fast source and files are read, which the processes `of` measure now.

    What keeps that from being known, or kept, is said, and is no fault of the files. Interrupted says that they are
    whole.
    """
    assert features.preparation is not None
    more, kept = features, target / FEATURES
    try:
        with of as work:
            found = ReadingCompared.model_validate_json(work.answer("compare"))
        read = {"source_read": found.source, "files_read": found.files}
        more = features.model_copy(update={"preparation": features.preparation.model_copy(update=read)})
        with storage(target):
            replace_file(kept, to_json(more, indent=1))
    except (Interrupted, KeyboardInterrupt):
        there = f"every file is whole, and what writing them took is in '{kept}'"
        raise Interrupted(f"interrupted while source and files were compared; {there}") from None
    except HarnessError as error:
        how = "known" if more is features else f"kept in '{kept}'"
        listener.said(f"how fast source and files are read is not {how}: {error}")
    return more
