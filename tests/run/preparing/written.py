"""What `prepare` writes, without processes."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.errors import HarnessError
from harness.protocol.preparing import Described, ReadingCompared, ShardPlan
from harness.record.tfrecords import FEATURES, Feature, Features, ReadingSpeed, WrittenShard, side_file
from harness.run.preparing.asked import AskedFiles, FilesListener
from harness.run.preparing.prepare import _prepare
from harness.spec.values import RunBy


class Played:
    """Writers without processes, of which one file takes ten seconds of processor time; they break at the `most`th, and
    `stops` ends the reading of source and files in turns."""

    def __init__(
        self,
        target: Path,
        most: int,
        state: str = "as ever",
        content: bytes = b"1234",
        stops: BaseException | None = None,
    ) -> None:
        self._target, self._most, self._state, self._content, self._used = target, most, state, content, 0.0
        self._stops = stops

    def warm_up(self) -> None:
        pass

    def close(self) -> None:
        pass

    def cpu_s(self) -> float:
        return self._used

    def answer(self, do: str, _: Any = None) -> str:
        if do == "compare":
            if self._stops is not None:
                raise self._stops
            speed = ReadingSpeed(examples=1, examples_per_s=[1.0])
            return ReadingCompared(source=speed, files=speed).model_dump_json()
        of = Feature(feature="input", encoding="int64", shape=[3])
        features = Features(input=of, target=Feature(feature="y", encoding="int64"), examples=8)
        return Described(features=features, state=self._state).model_dump_json()

    def write(
        self, plan: Features, missing: Sequence[ShardPlan], __: FilesListener, keep_cost: Callable[[], None]
    ) -> None:
        assert plan.target is not None  # which every example has, whatever a features.json leaves out
        for number, one in enumerate(missing):
            if number == self._most:
                raise HarnessError("broken")
            (self._target / one.file).write_bytes(self._content)
            self._used += 10.0
            sha256, size = hashlib.sha256(self._content).hexdigest(), len(self._content)
            shard = WrittenShard(file=one.file, examples=one.examples, bytes=size, sha256=sha256, bytes_in=7)
            side_file(self._target, one.file).write_text(shard.model_dump_json())
            keep_cost()


def called(
    target: Path,
    most: int,
    state: str = "as ever",
    source: str = "my:examples",
    by: RunBy = "local",
    processes: int = 1,
) -> Features:
    """What a call comes to that writes four files, unless it breaks at the `most`th."""
    played: Any = Played(target, most, state)
    asked = AskedFiles(source, target, target, shards=4, by=by, processes=processes)
    return _prepare(asked, played, FilesListener())[0]


def kept_in(files: Path) -> Features:
    """The features.json of a folder that has nothing else but its four files."""
    kept = Features.model_validate_json((files / FEATURES).read_text())
    assert {path.name for path in files.iterdir()} == {FEATURES, *(shard.file for shard in kept.shards)}
    assert len(kept.shards) == 4
    return kept
