"""Faults that are planted in a pipeline, between its source and its batches: each is found, by the check for it."""

import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.engines.tensorflow import feed as module
from harness.engines.tensorflow import sharded
from harness.engines.tensorflow.data.digits import Digits
from harness.engines.tensorflow.data.pipeline import pipeline
from harness.engines.tensorflow.devices import Devices
from harness.engines.tensorflow.feed import Feed
from harness.engines.tensorflow.pipelines import PipelineTrial
from harness.engines.tensorflow.sharded import make_ready
from harness.protocol.channel import Channel
from harness.protocol.messages import Turn
from harness.record.checks import Checks
from harness.run.request import request_for
from harness.spec import sweep_from
from harness.spec.pipeline import PipelineCell
from harness.trial.ending import WrongResult, plain_ending

SIZE = 599
"""A third of the digits, so that a pass ends with a batch."""
CELL = PipelineCell(device="virtual-cpu", model="mlp", data="digits", batch_size=SIZE, shuffle_buffer=50)
WRITTEN = CELL.model_copy(update={"shards": 3, "compression": "gzip"})
SWEEP = sweep_from({"work": "pipeline", "window": 0.01})
Fault = Callable[[Any], Any]


def in_64_bits(x: Any, y: Any) -> Any:
    import tensorflow as tf

    return x, tf.cast(y, tf.int64)


def loses_one_late(made: Any) -> Any:
    """Once the first pass is over, in what is timed."""
    return made.unbatch().take(5000).concatenate(made.unbatch().skip(5001)).batch(SIZE)


PLANTED: dict[str, tuple[Fault, str, str]] = {
    "a lost batch": (lambda made: made.skip(1), "examples", "missing"),
    "a batch twice": (lambda made: made.take(1).concatenate(made), "examples", "more often"),
    "changed pixels": (lambda made: made.map(lambda x, y: (x + 1e-6, y)), "examples", "of no example"),
    "labels of others": (lambda made: made.map(lambda x, y: (x, y[::-1])), "examples", "of no example"),
    "another order": (lambda made: made.map(lambda x, y: (x[::-1], y[::-1])), "order", "example 1 of the pass"),
    "small batches": (lambda made: made.unbatch().batch(SIZE - 1), "batches", f"expected [{SIZE}, 28, 28, 1] float32"),
    "another type": (lambda made: made.map(in_64_bits), "batches", f"targets [{SIZE}] int64, expected [{SIZE}] int32"),
    "one lost late": (loses_one_late, "late", "missing"),
}


def proof(data_dir: Path, cell: PipelineCell) -> Checks:
    """What a trial of one window finds, of a feed that is built in this process."""
    source = module.source_of(cell, data_dir)
    devices = Devices(("/device:CPU:0",), 1, False)
    feed = Feed(request_for(cell, SWEEP, data_dir), cell, devices, source, source.info(data_dir), (28, 28, 1), 10, None)
    ours, theirs = map(Channel, socket.socketpair())
    for turn in (Turn(do="pilot"), Turn(do="window"), Turn(do="finish")):
        ours.send(turn)
    trial = PipelineTrial(feed.request, theirs, plain_ending)
    try:
        trial._prove_and_time(feed)
    except WrongResult:
        assert trial._checks.failures
    return trial._checks


@pytest.mark.parametrize("name", PLANTED)
def test_a_fault_that_is_planted_in_the_pipeline_is_found(
    monkeypatch: pytest.MonkeyPatch, digits_dir: Path, name: str
) -> None:
    fault, check, said = PLANTED[name]
    monkeypatch.setattr(module, "pipeline", lambda *given, **keys: fault(pipeline(*given, **keys)))
    found = proof(digits_dir, CELL)
    assert found.failures == (check,)
    assert said in found.detail[check]


@pytest.mark.parametrize("cut", ["", "source", "decode", "cache", "shuffle"])
def test_nothing_is_found_where_nothing_is_planted(digits_dir: Path, cut: Any) -> None:
    found = proof(digits_dir, CELL.cut_behind(cut) if cut else CELL)
    assert (found.failures, found.examples, found.order) == ((), True, True)
    assert found.late is (None if cut else True)


class WithoutTheFirst(Digits):
    """In whose place the last one comes twice."""

    def part(self, data_dir: Path, first: int, count: int) -> Any:
        return self.examples(data_dir).skip(first + 1).take(count).concatenate(self.examples(data_dir).skip(1796))


@pytest.fixture(scope="module")
def written(digits_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with digits that a run has written into files."""
    folder = shutil.copytree(digits_dir, tmp_path_factory.mktemp("written"), dirs_exist_ok=True)
    make_ready(WRITTEN, folder)
    return folder


@pytest.mark.parametrize(("cut", "side_by_side"), [("", 0), ("", 2), ("decode", 2)])
def test_files_that_a_run_has_written_are_held_against_their_source(written: Path, cut: Any, side_by_side: int) -> None:
    cell = WRITTEN.model_copy(update={"interleave": side_by_side})
    found = proof(written, cell.cut_behind(cut) if cut else cell)
    assert (found.failures, found.examples, found.order) == ((), True, True)


def test_an_example_that_was_lost_in_writing_files_is_found(
    digits_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(digits_dir, tmp_path, dirs_exist_ok=True)
    cell, write = CELL.model_copy(update={"shards": 1}), sharded.write_group
    monkeypatch.setattr(sharded, "write_group", lambda _, *given: write(WithoutTheFirst(), *given))
    make_ready(cell, tmp_path)
    found = proof(tmp_path, cell)
    assert found.failures == ("examples",)
    assert "missing" in found.detail["examples"]
