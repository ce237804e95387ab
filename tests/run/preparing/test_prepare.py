"""What `prepare` does with its target before any process writes into it."""

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.errors import HarnessError, UsageError
from harness.protocol.preparing import Described, ReadingCompared, ShardPlan
from harness.record.files import _new_file_beside
from harness.record.tfrecords import FEATURES, Feature, Features, ReadingSpeed, WrittenShard, side_file
from harness.run.preparing.asked import AskedFiles, FilesListener
from harness.run.preparing.plan import PLAN, check_target
from harness.run.preparing.prepare import _locked, _prepare


def test_what_a_call_that_was_killed_has_left_of_its_first_file_is_removed_and_a_users_file_is_not(
    tmp_path: Path,
) -> None:
    _, descriptor = _new_file_beside(tmp_path / PLAN)
    os.close(descriptor)
    with _locked(tmp_path):
        check_target(tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / ".theirs.tmp").touch()
    with _locked(tmp_path), pytest.raises(UsageError, match=r"has files that prepare has not made, .*'\.theirs\.tmp'"):
        check_target(tmp_path)
    assert (tmp_path / ".theirs.tmp").exists()


class Played:
    """Writers without processes, of which one file takes ten seconds of processor time; they break at the `most`th."""

    def __init__(self, target: Path, most: int, state: str = "as ever") -> None:
        self._target, self._most, self._state, self._used = target, most, state, 0.0

    def warm_up(self) -> None:
        pass

    def cpu_s(self) -> float:
        return self._used

    def answer(self, do: str) -> str:
        if do == "compare":
            speed = ReadingSpeed(examples=1, examples_per_s=[1.0])
            return ReadingCompared(source=speed, files=speed).model_dump_json()
        of = Feature(feature="input", encoding="int64", shape=[3])
        features = Features(input=of, target=Feature(feature="y", encoding="int64"), examples=8)
        return Described(features=features, state=self._state).model_dump_json()

    def write(self, _: Any, missing: Sequence[ShardPlan], __: FilesListener, keep_cost: Callable[[], None]) -> None:
        for number, one in enumerate(missing):
            if number == self._most:
                raise HarnessError("broken")
            (self._target / one.file).write_bytes(b"1234")
            self._used += 10.0
            sha256 = hashlib.sha256(b"1234").hexdigest()
            shard = WrittenShard(file=one.file, examples=one.examples, bytes=4, sha256=sha256, bytes_in=7)
            side_file(self._target, one.file).write_text(shard.model_dump_json())
            keep_cost()


def called(target: Path, most: int, state: str = "as ever") -> Features:
    """What a call comes to that writes four files, unless it breaks at the `most`th."""
    played: Any = Played(target, most, state)
    return _prepare(AskedFiles("my:examples", target, target, shards=4), played, FilesListener())[0]


@pytest.mark.parametrize("whole", [2, 4])
def test_files_of_other_examples_than_the_source_gives_now_are_neither_kept_nor_mixed_with_new_ones(
    tmp_path: Path, whole: int
) -> None:
    with contextlib.suppress(HarnessError):
        called(tmp_path, most=whole)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(UsageError) as refused:
        called(tmp_path, most=4, state="changed")
    assert str(refused.value) == (
        f"target: '{tmp_path}' holds another data set: 'my:examples' gave other examples when it was prepared than it "
        "gives now; name a new folder, or remove it"
    )
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    how = called(tmp_path, most=4).preparation
    assert how is not None
    assert how.state == "as ever"


@pytest.mark.parametrize(("whole", "kept"), [(2, PLAN), (4, FEATURES)])
def test_what_an_earlier_version_has_prepared_without_a_state_goes_on_without_one(
    tmp_path: Path, whole: int, kept: str
) -> None:
    with contextlib.suppress(HarnessError):
        called(tmp_path, most=whole)
    there = (tmp_path / kept).read_text()
    (tmp_path / kept).write_text(re.sub(r'"state": *"as ever",', "", there))
    assert (tmp_path / kept).read_text() != there
    (tmp_path / "00003-of-00004.tfrecord").unlink(missing_ok=True)
    how = called(tmp_path, most=4, state="any").preparation
    assert how is not None
    assert how.state == ""


def test_a_preparation_that_went_on_twice_has_cost_what_its_three_calls_have(tmp_path: Path) -> None:
    computed, waited = time.process_time(), time.monotonic()
    for _ in range(2):
        with pytest.raises(HarnessError, match="broken"):
            called(tmp_path, most=1)
    made = called(tmp_path, most=4).preparation
    computed, waited = time.process_time() - computed, time.monotonic() - waited
    assert made is not None
    assert (made.written, made.bytes_in, made.bytes_out) == (8, 4 * 7, 4 * 4)
    assert 40 <= made.cpu_s <= 40 + computed
    assert 0 < made.wall_s <= waited
    assert not (tmp_path / PLAN).exists()
