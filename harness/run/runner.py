"""The one life cycle of a run: begin, prepare, execute, end; go on later; take back what never began.

What differs between kinds of runs is a `LiveRun` each (`harness.run.kinds`).
"""

import contextlib
import datetime
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from harness.environment import facts, other_machine, warnings
from harness.environment.commits import telling_unignored
from harness.environment.limits import usable_cores
from harness.errors import HarnessError, Interrupted, StorageError, UsageError
from harness.record.manifest import DeviceRecord, LeftOutRecord, Machine, RunManifest
from harness.record.reading import MANIFEST_NAME, load_manifest
from harness.record.store import RunStore, new_run_id
from harness.run.data import DataKey, data_key, may_refuse_data, preparation, preparation_limit_s
from harness.run.kinds.base import Arm, LiveRun
from harness.run.launchers import launchers, open_launchers
from harness.run.process.preflight import preflight
from harness.run.progress import Listener, say_line
from harness.run.request import data_dir_of
from harness.run.turns.live import LiveTrial
from harness.run.turns.single import single
from harness.spec.inputs import LeftOut
from harness.spec.sweep import Sweep
from harness.spec.work import Cell
from harness.trial.engines import devices_of
from harness.version import __version__
from harness.visible import words_without_secrets

PREFLIGHT_S = 300.0
REVISION = "git.revision"
OF_TIME = len("20261121T012345Z")
"""Characters that a run's id begins with, its time."""
_NAMED_BY_TIME = re.compile(r"[0-9]{8}T[0-9]{6}Z-")
BEHIND_S = 60.0
"""Runs that begin at once have ids some seconds apart, in either order: only what is further ahead tells of a clock."""

_Listener = TypeVar("_Listener", bound=Listener)


def new_manifest(
    name: str,
    command: Sequence[str],
    sweep: Sweep,
    cells: Sequence[Cell] = (),
    left_out: Sequence[LeftOut] = (),
    **rest: Any,
) -> RunManifest:
    """The manifest of a run that begins now, on this machine; `rest` is what else it sets out to do."""
    found = facts()
    made = RunManifest(
        run_id=new_run_id(name),
        created_utc=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        command=words_without_secrets(command),
        harness_version=__version__,
        sweep=sweep,
        cells=list(cells),
        left_out=[LeftOutRecord(combination=item.combination, reason=item.reason) for item in left_out],
        machine=Machine(facts=found, warnings=warnings(found)),
        **rest,
    )
    return made.model_copy(update={"devices": _devices_of(made)})


def _devices_of(manifest: RunManifest) -> dict[str, DeviceRecord]:
    """What the device kinds of its cells are, as their engines say."""
    known = devices_of(dict.fromkeys(map(manifest.engine_of, manifest.cells)))
    kinds = {kind: known[kind] for kind in sorted({cell.shape.device for cell in manifest.cells} & known.keys())}
    return {kind: DeviceRecord(on_processors=of.on_processors, virtual=of.virtual) for kind, of in kinds.items()}


def begin(
    make: Callable[[RunStore, _Listener], LiveRun[_Listener]], results: Path, manifest: RunManifest, listener: _Listener
) -> Path:
    """Measure a new run; its folder under `results`.

    Raises HarnessError: StorageError when `results` cannot be used, UsageError when a user's own model cannot be
    loaded, Interrupted when the person asked to stop. A run in which nothing was measured for any reason but
    the last leaves nothing behind; of every other the error says how to go on.
    """
    data_dir_of(manifest.sweep)  # a home that nobody knows is told before anything is written or imported
    with telling_unignored(results):
        store = RunStore.create(results, manifest)
    with store:
        _say_if_behind(results, manifest.run_id)
        carry_out(make(store, listener), new=True)
    return store.path


def _say_if_behind(results: Path, run_id: str) -> None:
    """Say where a run beside this one has a later time for a name, since a clock was set back: that one stays `latest`,
    and no file tells which of the two was made last, since all have their times from that clock."""
    with contextlib.suppress(OSError):
        names = [path.parent.name for path in results.glob(f"*/{MANIFEST_NAME}")]
        later = max(names, key=_time_of, default="")
        if _time_of(later) - _time_of(run_id) > BEHIND_S:
            words = f"the clock is behind that of '{later}', which stays 'latest'; call this run by its id, {run_id}"
            say_line(f"harness: {words}", sys.stderr)


def _time_of(run_id: str) -> float:
    """When a run was named, in seconds since 1970; 0 of a name that begins with no time."""
    with contextlib.suppress(ValueError):  # of what looks like one, such as the 99th of a month
        if _NAMED_BY_TIME.match(run_id):
            return datetime.datetime.strptime(f"{run_id[:OF_TIME]}+0000", "%Y%m%dT%H%M%SZ%z").timestamp()
    return 0.0


def resume_as(kind: type[LiveRun[_Listener]], path: Path, listener: _Listener, retry: bool = False) -> None:
    """Do what the run at `path` still misses, with `retry` also what failed in it and may do better on another try;
    nothing when that is nothing. Raises what `begin` does.

    UsageError when it is no run of `kind`: the verb that goes on with it is named.
    """
    manifest = load_manifest(path)
    _check_kind(manifest, path, kind.name)
    if manifest.status == "finished" and not kind.may_reopen:
        return
    with RunStore.open_for_resume(path) as store:
        run = kind(store, listener)
        run.retry = retry
        if not run.complete:
            _check_machine(store.manifest)
            run.check()
            run.check_versions()
            carry_out(run, new=False)
        elif store.manifest.status != "finished":
            store.end("finished")


def carry_out(run: LiveRun[_Listener], new: bool) -> None:
    """Do what is missing of `run`, whose store is open, and record how it ended. Raises what `begin` does."""
    with _end_recorded(run, new), run.environments() as run.zygotes:
        arms = run.arms()
        places = [[arm for arm in arms if arm.zygote is zygote] for zygote in dict.fromkeys(a.zygote for a in arms)]
        for here in places if new else ():
            limit_s = min(PREFLIGHT_S, here[0].timeout_s)
            preflight(here[0].zygote, [arm.request for arm in here], limit_s, run.goes_on_without_some)
        run.ready()
        for here in places:
            open_launchers([arm.request for arm in here], here[0].zygote)
        run.announce()
        try:
            with run.interrupts:
                _prepare(run, arms)
                run.execute()
        finally:
            with contextlib.suppress(StorageError, OSError):  # which the end, or what ended the run, tells
                run.look_at_sources()
            run.over()


def _prepare(run: LiveRun[_Listener], arms: Sequence[Arm]) -> None:
    """Make each data set ready once in each place, and then the files that cells ask for of it, a process a core at a
    time; the run says what becomes of what has none.

    A launcher with hosts of its own does that on them: nothing is trained here, so nothing need be here.
    """
    wanted: dict[tuple[DataKey, int], Arm] = {}
    for arm in sorted(arms, key=lambda arm: may_refuse_data(arm.request)):
        if arm.request.cell.data_set is not None and not launchers()[arm.request.launcher].elsewhere:
            wanted.setdefault((data_key(arm.request), id(arm.zygote)), arm)
    first: dict[tuple[str | None, str, int], Arm] = {}
    rest, cores = [], usable_cores()
    for ((data_set, _, folder), place), arm in wanted.items():
        if first.setdefault((data_set, folder, place), arm) is not arm:  # which makes what the others read
            rest.append(arm)
    side_by_side = [rest[at : at + cores] for at in range(0, len(rest), cores)]
    for some in [*([arm] for arm in first.values()), *side_by_side]:
        tasks = [_begun(run, arm) for arm in some]
        for arm, task in zip(some, tasks, strict=True):
            task.finish_task()
            if task.status != "ok":
                run.without_data(arm, task)


def _begun(run: LiveRun[_Listener], arm: Arm) -> LiveTrial:
    """The process that makes an arm's data ready."""
    request, run_id = preparation(arm.request), run.store.manifest.run_id
    task = single("prepare", arm.zygote, request, preparation_limit_s(request), run.interrupts, run_id)
    task.start()
    return task


@contextlib.contextmanager
def _end_recorded(run: LiveRun[_Listener], new: bool) -> Iterator[None]:
    """The manifest says how the run ended, whatever happened inside; a new run without a record is taken back."""
    try:
        yield
        run.store.end("interrupted" if run.gave_up else "finished")
    except (Interrupted, KeyboardInterrupt):
        _interrupted(run.store)
        raise Interrupted(f"interrupted; {run.go_on}") from None
    except HarnessError as error:
        if new and not run.recorded:
            run.store.discard()
            if isinstance(error, StorageError):
                error.run = None  # it is no more
                error.args = (f"{error}; nothing was measured yet, so no run is kept",)
            raise
        _interrupted(run.store)
        if "--resume" not in str(error):
            error.args = (f"{error}; {run.go_on}",)
        raise
    except BaseException:
        _interrupted(run.store)
        raise


def _interrupted(store: RunStore) -> None:
    """Nobody works on it any more, so it must not read as under way; a full disk may refuse even that. A run that was
    finished stays so: it has all that was planned, and what was tried again is gone on with all the same."""
    with contextlib.suppress(StorageError):
        if store.manifest.status != "finished":
            store.end("interrupted")


def _check_kind(manifest: RunManifest, path: Path, name: str) -> None:
    """UsageError, with the verb that goes on with it, where the run is not of the kind `name`."""
    kind = manifest.what.kind
    if kind.name == name:
        return
    if not kind.measured:
        raise UsageError(f"--resume: '{path.name}' was imported: there is nothing to measure")
    way = f"python -m harness {kind.verb} --resume {shlex.quote(str(path))}"
    raise UsageError(f"--resume: '{path.name}' is a run of {kind.verb}; go on with: {way}")


def _check_machine(manifest: RunManifest) -> None:
    """UsageError where a run that is to be gone on with was begun on another machine, or on this one in another state:
    its trials would be of two. Another commit, whose code may measure the same, is said on standard error.

    Sides would still have taken turns, but what was planned from the first blocks would not hold for the rest.
    """
    now = facts()
    if changes := other_machine(manifest.facts, now):
        raise UsageError(
            f"--resume: '{manifest.run_id}' was begun on another machine or in another state "
            f"({'; '.join(map(str, changes[:3]))}); begin a new run"
        )
    before, after = manifest.facts.get(REVISION), now.get(REVISION)
    if before is not None and after is not None and before != after:
        words = f"this run was begun at git revision {before}, and goes on at {after}"
        say_line(f"harness: {words}; begin a new run where that changes what is measured", sys.stderr)
