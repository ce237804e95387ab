"""Data that a run writes into TFRecord files because a cell asks: the same examples, written once."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow import sharded
from harness.engines.tensorflow.data import load_source
from harness.engines.tensorflow.data.pipeline import endless_examples, plain_pass
from harness.engines.tensorflow.data.stages import stages_of
from harness.engines.tensorflow.data.store import TELL
from harness.engines.tensorflow.sharded import folder_of, make_ready, source_of
from harness.engines.tensorflow.workloads import Vocabulary
from harness.errors import HarnessError, Unsupported, UsageError
from harness.protocol.shards import kept_at
from harness.record.tfrecords import FEATURES, Features
from harness.spec.pipeline import PipelineCell
from tests.disks import disk_of

CELL = PipelineCell(
    device="virtual-cpu", model="mlp", data="photographs:12", batch_size=4, shards=3, compression="gzip", cache="none"
)
Told = list[str]


@pytest.fixture
def told(tf: Any) -> Iterator[Told]:  # noqa: ARG001
    """What a person is told meanwhile."""
    lines: Told = []
    before = TELL.set(lines.append)
    yield lines
    TELL.reset(before)


def folder_of_cell(data_dir: Path, cell: PipelineCell = CELL) -> Path:
    assert cell.data_files is not None
    return folder_of(load_source(cell.data), data_dir, cell.data_files)


def kept(data_dir: Path, cell: PipelineCell = CELL) -> Features:
    found = kept_at(folder_of_cell(data_dir, cell) / FEATURES, Features)
    assert found is not None
    return found


def written_when(data_dir: Path) -> dict[str, int]:
    return {file.name: file.stat().st_mtime_ns for file in folder_of_cell(data_dir).glob("*.tfrecord.gz")}


@pytest.mark.parametrize(
    ("data", "shape", "vocabulary"),
    [
        ("digits", (8, 8, 1), None),
        ("photographs:12", (32, 32, 3), None),
        ("iris", (4,), None),
        ("text", (16,), Vocabulary(256, next_token=True)),
    ],
)
def test_the_files_give_the_examples_of_the_source_in_its_order(
    told: Told, tmp_path: Path, data: str, shape: Any, vocabulary: Any
) -> None:
    cell = CELL.model_copy(update={"data": data})
    make_ready(cell, tmp_path)
    files, plain = source_of(cell, tmp_path), source_of(cell.model_copy(update={"shards": 0}), tmp_path)
    assert files.info(tmp_path) == plain.info(tmp_path)
    count = plain.info(tmp_path).examples
    assert count is not None
    passes = (plain_pass(of, tmp_path, shape, vocabulary).batch(count) for of in (files, plain))
    (x, y), (a, b) = (next(one.as_numpy_iterator()) for one in passes)
    assert len(y) == count
    np.testing.assert_array_equal(x, a)
    np.testing.assert_array_equal(y, b)
    sizes = [shard.examples for shard in kept(tmp_path, cell).shards]
    assert (len(sizes), sum(sizes), max(sizes) - min(sizes) <= 1) == (3, count, True)
    assert told == [line for line in told if line.startswith(f"'{data}' written into 3 files, gzip, ")] != []


@pytest.mark.parametrize(
    ("asked", "read"),
    [
        ({"shards": 1}, "TFRecord(1 file, gzip)"),
        ({"shards": 3, "compression": "none"}, "TFRecord(3 files)"),
        ({"interleave": 2}, "ParallelInterleave(2, 3 files, gzip)"),
        ({"interleave": 2, "compression": "zlib", "deterministic": False}, "ParallelInterleave(2, 3 files, zlib"),
    ],
)
@pytest.mark.parametrize("traced", [False, True])  # as it is made on a worker that a coordinator sends its steps
@pytest.mark.usefixtures("told")
def test_the_pipeline_itself_tells_how_many_files_it_reads_and_how_they_are_compressed(
    tf: Any, tmp_path: Path, asked: dict[str, Any], read: str, traced: bool
) -> None:
    cell, seen = CELL.model_copy(update=asked), []
    make_ready(cell, tmp_path)

    def make() -> None:
        made = endless_examples(source_of(cell, tmp_path), tmp_path, (8, 8, 3), 2, 1, (0, 1), cell.axes, None, "")
        seen.extend(stages_of(made))

    (tf.function(make) if traced else make)()
    assert seen[1].startswith(read)


def test_what_is_whole_is_not_written_again(told: Told, tmp_path: Path) -> None:
    make_ready(CELL, tmp_path)
    before = written_when(tmp_path)
    make_ready(CELL, tmp_path)
    assert written_when(tmp_path) == before
    assert len(before) == 3
    assert len(told) == 1


def as_if_killed(folder: Path) -> None:
    """One file is whole and told of beside it, the second half-written, and nobody has summed up yet."""
    features = kept_at(folder / FEATURES, Features)
    assert features is not None
    first, second, third = features.shards
    (folder / f".{first.file}.json").write_text(first.model_copy(update={}).model_dump_json()[:-1] + ',"bytes_in":1}')
    (folder / second.file).rename(folder / f".{second.file}.4711.part")
    (folder / third.file).unlink()
    (folder / FEATURES).unlink()


def cut_short(folder: Path) -> None:
    os.truncate(max(folder.glob("*.gz")), 100)


def summed_up_by_a_bad_disk(folder: Path) -> None:
    (folder / FEATURES).write_text('{"kind": "ima')


@pytest.mark.parametrize(("harm", "left"), [(as_if_killed, 1), (cut_short, 2), (summed_up_by_a_bad_disk, 0)])
def test_what_a_kill_or_a_bad_disk_left_is_mended_and_the_rest_kept(
    told: Told, tmp_path: Path, harm: Callable[[Path], None], left: int
) -> None:
    make_ready(CELL, tmp_path)
    digest, before = kept(tmp_path).digest, written_when(tmp_path)
    harm(folder_of_cell(tmp_path))
    make_ready(CELL, tmp_path)
    assert kept(tmp_path).digest == digest
    assert len(set(before.items()) & set(written_when(tmp_path).items())) == left
    assert not list(folder_of_cell(tmp_path).glob(".*"))
    assert len(told) > 1


def test_of_two_runs_at_once_one_writes_and_the_other_waits(
    tf: Any,  # noqa: ARG001
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load_source(CELL.data).prepare(tmp_path)
    calls, write = [], sharded.write_group

    def counted(*given: Any) -> None:
        calls.append(given)
        write(*given)

    monkeypatch.setattr(sharded, "write_group", counted)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: make_ready(CELL, tmp_path), range(2)))
    assert len(calls) == 1
    assert len(kept(tmp_path).shards) == 3


def test_a_folder_whose_images_have_changed_is_written_anew_and_another_of_the_same_name_elsewhere_is_another(
    told: Told, tf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = CELL.model_copy(update={"data": "folder:pictures", "shards": 2})
    for place in ("here", "there"):
        for number in range(4):
            image = tmp_path / place / "pictures" / "ab"[number % 2] / f"{number}.png"
            image.parent.mkdir(parents=True, exist_ok=True)
            image.write_bytes(tf.io.encode_png(np.full((4, 4, 3), number, np.uint8)).numpy())
    monkeypatch.chdir(tmp_path / "there")
    make_ready(cell, tmp_path)
    monkeypatch.chdir(tmp_path / "here")
    make_ready(cell, tmp_path)
    first = kept(tmp_path, cell).digest
    image.with_name("more.png").write_bytes(image.read_bytes())
    (tmp_path / "here" / "pictures" / "b" / "more.png").write_bytes(image.read_bytes())
    make_ready(cell, tmp_path)
    assert kept(tmp_path, cell).digest != first
    assert kept(tmp_path, cell).examples == 5
    assert len(told) == 3


def test_a_full_disk_is_one_line_that_names_the_folder(told: Told, tmp_path: Path) -> None:
    cell = CELL.model_copy(update={"data": "photographs:40"})
    with (
        disk_of("900k", tmp_path) as data_dir,
        pytest.raises(
            HarnessError, match=r"^data_dir: cannot write to '.*': No space left on device; mend that or name"
        ),
    ):
        make_ready(cell, data_dir)
    assert told == []


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"data": "photographs:2"}, "shards: given 3, expected at most 2, one for each example"),
        ({"data": "synthetic"}, "shards: 'synthetic' has no examples of its own"),
    ],
)
@pytest.mark.usefixtures("told")
def test_what_cannot_be_written_is_unsupported_with_the_reason(
    tmp_path: Path, asked: dict[str, Any], reason: str
) -> None:
    with pytest.raises(Unsupported, match=f"^{reason}"):
        make_ready(CELL.model_copy(update=asked), tmp_path)


@pytest.mark.usefixtures("told")
def test_an_image_that_is_none_is_the_datas_fault_and_named(tmp_path: Path) -> None:
    bad = tmp_path / "pictures" / "cats" / "1.png"
    bad.parent.mkdir(parents=True)
    bad.write_bytes(b"no picture")
    cell = CELL.model_copy(update={"data": f"folder:{tmp_path / 'pictures'}", "shards": 1})
    with pytest.raises(UsageError, match=r"^data: example 0 \('.*1.png'\) is no JPEG or PNG; mend or remove it$"):
        make_ready(cell, tmp_path)


def test_reading_files_that_no_run_has_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"^data: 'photographs:12' is not prepared under"):
        source_of(CELL, tmp_path)
