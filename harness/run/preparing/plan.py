"""Which examples go into which file, and which files are whole: of a call that was killed the next one goes on."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from harness.errors import StorageError, UsageError
from harness.files import read_whole
from harness.protocol.preparing import ShardPlan
from harness.record.files import LOCK_NAME
from harness.record.tfrecords import FEATURES, Features, Shard, WrittenShard, side_file
from harness.run.preparing.asked import AskedFiles, FilesListener

SHARDS = 16
"""Files where nobody says how many, or one an example where there are fewer."""
PLAN = ".plan.json"
"""What is being prepared here, until it is done: its features.json without what is not known yet."""
LARGEST = 2**24

_Kept = TypeVar("_Kept", bound=BaseModel)


class PreparePlan(Features):
    """What files are to hold before any is there. What a begun preparation was asked is compared with it."""

    source: str
    count: int
    """Of files."""


def plan_for(asked: AskedFiles, described: Features) -> PreparePlan:
    """UsageError where the target holds something else, or the beginning of it."""
    known = kept_at(asked.target / FEATURES, Features)
    begun = kept_at(asked.target / PLAN, PreparePlan)
    there = len(known.shards) if known is not None else begun.count if begun is not None else None
    examples = described.examples or 0
    count = asked.shards or there or min(SHARDS, examples)
    if count > examples:
        raise UsageError(f"--shards: given {count}, expected at most {examples:,}, one for each example")
    asked_for = {"source": asked.source, "count": count, "compression": asked.compression}
    plan = PreparePlan(**{**described.model_dump(exclude={"digest", "shards", "preparation"}), **asked_for})
    if known is not None and known.preparation is not None:
        keys = known.model_dump(exclude={"digest", "shards", "preparation"})
        begun = PreparePlan(**keys, source=known.preparation.source, count=len(known.shards))
    if begun is not None and (differs := _difference(begun, plan)):
        raise UsageError(f"target: '{asked.target}' holds another data set: {differs}; name a new folder, or remove it")
    return plan


def check_target(target: Path) -> None:
    """UsageError where it has files, and they are nobody's that prepare has begun."""
    known = kept_at(target / FEATURES, Features)
    if (target / PLAN).exists() or (known is not None and known.preparation is not None):
        return
    if others := [path.name for path in target.iterdir() if path.name != LOCK_NAME]:
        raise UsageError(
            f"target: '{target}' has files that prepare has not made, such as '{min(others)}'; name a new folder"
        )


def _difference(there: PreparePlan, asked: PreparePlan) -> str:
    """The first key in which two plans differ, and how."""
    names = {"count": "shards"}
    for key in ("source", "count", *Features.model_fields):
        one, other = getattr(there, key), getattr(asked, key)
        if one != other:
            one, other = (v.model_dump_json() if isinstance(v, BaseModel) else v for v in (one, other))
            return f"its {names.get(key, key)} is {one}, and {other} is asked for"
    return ""


def shards_of(plan: PreparePlan) -> list[ShardPlan]:
    """Which examples are in which file: as equally many in each as can be, in their order."""
    total, count = plan.examples or 0, plan.count
    ending = {"none": "", "gzip": ".gz", "zlib": ".zlib"}[plan.compression]
    bounds = [total * number // count for number in range(count + 1)]
    return [
        ShardPlan(
            file=f"{number:05}-of-{count:05}.tfrecord{ending}",
            first=bounds[number],
            examples=bounds[number + 1] - bounds[number],
        )
        for number in range(count)
    ]


def whole_files(asked: AskedFiles, shards: Sequence[ShardPlan], listener: FilesListener) -> dict[str, Shard]:
    """The files that are there, each as it was written; of one that is not, it is said."""
    known = kept_at(asked.target / FEATURES, Features)
    listed = {shard.file: shard for shard in known.shards} if known is not None else {}
    found: dict[str, Shard] = {}
    for one in shards:
        shard = listed.get(one.file) or kept_at(side_file(asked.target, one.file), WrittenShard)
        if shard is None:
            continue
        if shard.examples == one.examples and _digest(asked.target / one.file) == shard.sha256:
            found[one.file] = shard
        else:
            listener.said(f"'{asked.target / one.file}' is damaged or missing, and is written again")
            side_file(asked.target, one.file).unlink(missing_ok=True)
    return found


def _digest(file: Path) -> str | None:
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None


def written_file(target: Path, file: str) -> WrittenShard:
    shard = kept_at(side_file(target, file), WrittenShard)
    if shard is None:
        raise StorageError(f"target: '{side_file(target, file)}' is gone; run the same command again")
    return shard


def kept_at(path: Path, model: type[_Kept]) -> _Kept | None:
    """What is kept at `path`; None where there is nothing, or nothing whole."""
    try:
        return model.model_validate_json(read_whole(path, LARGEST))
    except (OSError, ValidationError):
        return None
