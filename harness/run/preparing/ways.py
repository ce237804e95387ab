"""`prepare` by several ways: each writes all files in turns, and the answer says which takes the least time."""

import shutil
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.errors import UsageError
from harness.record.files import LOCK_NAME, replace_file, to_json
from harness.record.tfrecords import FEATURES, Features, Preparation, WayCost
from harness.run.interrupts import Interrupts
from harness.run.preparing.asked import AskedFiles, FilesListener
from harness.run.preparing.plan import PLAN, TRIED_IN, plan_of
from harness.run.preparing.prepare import checked, compared, locked, storage, write, writers
from harness.spec.values import RunBy

TURNS_EACH = 4
"""Of each way. Were two the same, all turns of one would take less than all of the other once in 35 times."""


def prepare_by_each(asked: AskedFiles, ways: Sequence[RunBy], listener: FilesListener) -> Features:
    """Write everything by each way in turns; what there is then, with what each has cost.

    Raises what `prepare` raises, and UsageError where the target has files, or two ways write other bytes.
    """
    each = [checked(replace(asked, by=way)) for way in ways]
    with locked(asked.target), Interrupts() as interrupts:
        _must_be_new(asked.target)
        try:
            taken = _tried(
                [replace(one, target=asked.target / TRIED_IN, timed=True) for one in each], interrupts, listener
            )
            features = _settled(asked.target, taken)
        finally:
            shutil.rmtree(asked.target / TRIED_IN, ignore_errors=True)
        return compared(asked.target, features, writers(each[0], interrupts), listener)


def _must_be_new(target: Path) -> None:
    with storage(target):
        held = [path.name for path in target.iterdir() if path.name not in (LOCK_NAME, TRIED_IN)]
    if held:
        raise UsageError(
            f"target: '{target}' has files, such as '{min(held)}', and several ways of --with are timed by writing all "
            "of them; name a new folder"
        )
    with storage(target):
        shutil.rmtree(target / TRIED_IN, ignore_errors=True)  # of a call that was killed


def _tried(each: Sequence[AskedFiles], interrupts: Interrupts, listener: FilesListener) -> dict[RunBy, list[Features]]:
    """What each has written in its turns. The files of the last turn stay.

    The first way writes once before, which does not count: it may find the source on a slow disk, and all others in
    memory.
    """
    taken: dict[RunBy, list[Features]] = {one.by: [] for one in each}
    first = _written(each[0], interrupts, listener, "before the first turn, which does not count")
    for turn in range(TURNS_EACH):
        for one in each if turn % 2 == 0 else reversed(each):
            made = _written(one, interrupts, listener, f"turn {turn + 1} of {TURNS_EACH}")
            if made.digest != first.digest:
                raise UsageError(
                    f"source: files of '{one.source}' by {one.by} have the digest {made.digest}, and by {each[0].by} "
                    f"before they had {first.digest}: it has to give the same examples in each process; seed what is "
                    "random"
                )
            taken[one.by].append(made)
    return taken


def _written(asked: AskedFiles, interrupts: Interrupts, listener: FilesListener, turn: str) -> Features:
    listener.said(f"{asked.by}, {turn}")
    shutil.rmtree(asked.target, ignore_errors=True)
    with locked(asked.target), writers(asked, interrupts) as work:
        return write(asked, work, listener)[0]


def _settled(target: Path, taken: dict[RunBy, list[Features]]) -> Features:
    """The files of the last turn in their place, with a features.json that says what each way has cost.

    `prepare` by one way goes on where that is cut off.
    """
    costs = {way: [_how(made) for made in turns] for way, turns in taken.items()}
    ways = {
        way: WayCost(wall_s=[how.wall_s for how in turns], cpu_s=[how.cpu_s for how in turns])
        for way, turns in costs.items()
    }
    cheapest = min(ways, key=lambda way: statistics.median(ways[way].wall_s))
    how = sorted(costs[cheapest], key=lambda one: one.wall_s)[(TURNS_EACH - 1) // 2]
    features = taken[cheapest][0].model_copy(update={"preparation": how.model_copy(update={"ways": ways})})
    with storage(target):
        replace_file(target / PLAN, to_json(plan_of(features, how), indent=1))
        for shard in features.shards:
            (target / TRIED_IN / shard.file).replace(target / shard.file)
        replace_file(target / FEATURES, to_json(features, indent=1))  # which says that all are there
        (target / PLAN).unlink(missing_ok=True)
    return features


def _how(made: Features) -> Preparation:
    assert made.preparation is not None
    return made.preparation
