"""Which examples go into which TFRecord file, which files are whole, and the digest of all of them.

Whoever writes a data set's files into a folder, `prepare` or a run for its trials, has them by this.
"""

import datetime
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from harness.errors import StorageError
from harness.files import read_whole
from harness.protocol.preparing import ShardPlan
from harness.record.files import UNFINISHED, replace_file, to_json
from harness.record.tfrecords import FEATURES, Features, Preparation, Runners, Shard, WrittenShard, side_file
from harness.version import __version__

LARGEST = 2**24
HALF = re.compile(r"\.\d{5}-of-\d{5}\.tfrecord(\.gz|\.zlib)?\.\d+\.part")
"""The name of a file that a process is writing."""

_Kept = TypeVar("_Kept", bound=BaseModel)


def shards_of(features: Features, count: int) -> list[ShardPlan]:
    """Which examples are in which of so many files: as equally many in each as can be, in their order."""
    total = features.examples or 0
    ending = {"none": "", "gzip": ".gz", "zlib": ".zlib"}[features.compression]
    bounds = [total * number // count for number in range(count + 1)]
    return [
        ShardPlan(
            file=f"{number:05}-of-{count:05}.tfrecord{ending}",
            first=bounds[number],
            examples=bounds[number + 1] - bounds[number],
        )
        for number in range(count)
    ]


def whole_files(target: Path, shards: Sequence[ShardPlan], said: Callable[[str], None]) -> dict[str, Shard]:
    """The files that are there, each as it was written; of one that is not, it is said."""
    known = whole_at(target / FEATURES, Features)
    listed = {shard.file: shard for shard in known.shards} if known is not None else {}
    found: dict[str, Shard] = {}
    for one in shards:
        shard = listed.get(one.file) or whole_at(side_file(target, one.file), WrittenShard)
        if shard is None:
            continue
        if shard.examples == one.examples and _digest(target / one.file) == shard.sha256:
            found[one.file] = shard
        else:
            said(f"'{target / one.file}' is damaged or missing, and is written again")
            side_file(target, one.file).unlink(missing_ok=True)
    return found


def _digest(file: Path) -> str | None:
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None


def unfinished(target: Path) -> list[Path]:
    """The files that processes which were killed have left half-written, by the names that they give them."""
    named = (path for path in target.iterdir() if HALF.fullmatch(path.name) or fnmatch(path.name, UNFINISHED))
    return [path for path in named if path.is_file() and not path.is_symlink()]


def written_file(target: Path, file: str) -> WrittenShard:
    """What the side file of a file says that was written just now; StorageError where it is gone."""
    shard = whole_at(side_file(target, file), WrittenShard)
    if shard is None:
        raise StorageError(f"target: '{side_file(target, file)}' is gone; run the same command again")
    return shard


def whole_at(path: Path, model: type[_Kept]) -> _Kept | None:
    """What lies at `path`; None where there is nothing, or nothing whole."""
    try:
        return model.model_validate_json(read_whole(path, LARGEST))
    except (OSError, ValidationError):
        return None


def seal(
    target: Path, features: Features, whole: Mapping[str, Shard], how: Preparation, shards: Sequence[ShardPlan]
) -> Features:
    """Write the features.json of a data set whose files are all there: `features` with their digest, and how they were
    made. Side files have done their service. Raises OSError."""
    every = [Shard(**whole[one.file].model_dump(include=set(Shard.model_fields))) for one in shards]
    listing = "".join(f"{shard.sha256}  {shard.file}\n" for shard in every)
    known = features.model_dump(include=set(Features.model_fields))
    digest = hashlib.sha256(listing.encode()).hexdigest()
    made = Features(**{**known, "digest": digest, "shards": every, "preparation": how})
    replace_file(target / FEATURES, to_json(made, indent=1))
    for one in every:
        side_file(target, one.file).unlink(missing_ok=True)
    return made


def preparation_of(
    source: str,
    state: str,
    written: Sequence[WrittenShard],
    cost: tuple[float, float],
    ran: Sequence[Runners] = (),
) -> Preparation:
    """How files of a source in this state were written, which took so many wall and processor seconds; by one process,
    or those that `ran` one call after the other."""
    *earlier, last = ran or [Runners(by="local", processes=1)]
    return Preparation(
        source=source,
        state=state,
        harness_version=__version__,
        by=last.by,
        processes=last.processes,
        earlier=earlier,
        created_utc=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        written=sum(shard.examples for shard in written),
        wall_s=cost[0],
        cpu_s=cost[1],
        bytes_in=sum(shard.bytes_in for shard in written),
        bytes_out=sum(shard.bytes for shard in written),
    )
