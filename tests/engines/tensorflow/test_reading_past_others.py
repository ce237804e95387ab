"""A process that writes files of `prepare` reads past the examples of others, and is not taken for one that hangs."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.engines.tensorflow import preparing
from harness.engines.tensorflow.data import DataInfo, Source
from harness.protocol.preparing import ShardPlan
from harness.record.tfrecords import Feature, Features


class Counted(Source):
    """Numbers from 0 on, one after the other."""

    name = summary = "counted"

    def prepare(self, data_dir: Path) -> None:
        pass

    def info(self, data_dir: Path) -> DataInfo:
        return DataInfo((), 0, None)

    def examples(self, data_dir: Path) -> Any:
        return SimpleNamespace(as_numpy_iterator=itertools.count)


def test_who_reads_past_the_examples_of_others_tells_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    written: list[int] = []

    def write(_target: Path, _features: Features, plan: ShardPlan, examples: Iterator[int], _source: Source) -> None:
        written.extend(itertools.islice(examples, plan.examples))

    monkeypatch.setattr(preparing, "sign_of_life", told.append)
    monkeypatch.setattr(preparing, "_write_file", write)
    features = Features(input=Feature(feature="x", encoding="int64"), target=Feature(feature="y", encoding="int64"))
    group = [ShardPlan(file="1", first=3, examples=2), ShardPlan(file="3", first=7, examples=1)]
    preparing.write_group(Counted(), tmp_path, tmp_path, features, group)
    assert written == [3, 4, 7]
    assert told == [1, 2, 3, 6, 7]
