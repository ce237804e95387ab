"""Data that a run writes into TFRecord files because a cell asks: the same examples, written once."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow import sharded
from harness.engines.tensorflow.data import load_source
from harness.engines.tensorflow.data.pipeline import endless_examples, plain_pass
from harness.engines.tensorflow.data.stages import stages_of
from harness.engines.tensorflow.data.store import TELL
from harness.engines.tensorflow.devices import Devices
from harness.engines.tensorflow.sharded import folder_of, make_ready, must_be_shared_evenly, source_of
from harness.engines.tensorflow.training import Training
from harness.engines.tensorflow.workloads import Vocabulary
from harness.errors import HarnessError, Unsupported, UsageError
from harness.protocol.shards import whole_at
from harness.record.tfrecords import FEATURES, Features
from harness.spec.pipeline import PipelineCell
from harness.spec.values import AutoShard
from tests.disks import disk_of
from tests.record.examples import cell as training_cell

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
    found = whole_at(folder_of_cell(data_dir, cell) / FEATURES, Features)
    assert found is not None
    return found


def written_when(data_dir: Path) -> dict[str, int]:
    return {file.name: file.stat().st_mtime_ns for file in folder_of_cell(data_dir).glob("*.tfrecord.gz")}


@pytest.mark.usefixtures("few_pieces")
@pytest.mark.parametrize(
    ("data", "shape", "vocabulary"),
    [
        ("digits", (8, 8, 1), None),
        ("photographs:12", (32, 32, 3), None),
        ("iris", (4,), None),
        ("text", (16,), Vocabulary(256, next_token=True)),
        ("tokens", (16,), Vocabulary(50_257, next_token=True)),
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


@pytest.mark.usefixtures("told")
def test_a_model_of_whole_numbers_has_them_from_what_was_written_of_a_set_of_tensorflow_datasets(
    tmp_path: Path,
) -> None:
    from tests.engines.tensorflow.own_kinds import model_of_pixels

    load_source("digits").prepare(tmp_path)
    cell = CELL.model_copy(update={"data": "tfds:sklearn_digits"})
    make_ready(cell, tmp_path)
    files = source_of(cell, tmp_path).for_model(model_of_pixels())
    for source in (files, files.origin):
        x, _ = next(plain_pass(source, tmp_path, (8, 8, 1), None).batch(4).as_numpy_iterator())
        assert (x.dtype, x.max()) == (np.uint8, 255)


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
    features = whole_at(folder / FEATURES, Features)
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


def test_files_of_an_earlier_state_of_the_source_stay_until_no_trial_reads_them(
    told: Told, tf: Any, tmp_path: Path
) -> None:
    picture = tmp_path / "pictures" / "a" / "0.png"
    picture.parent.mkdir(parents=True)
    cell = CELL.model_copy(update={"data": f"folder:{tmp_path / 'pictures'}", "shards": 1})

    def ready(shade: int) -> tuple[Path, int]:
        picture.write_bytes(tf.io.encode_png(np.full((4, 4, 3), shade, np.uint8)).numpy())
        os.utime(picture, ns=(shade, shade))
        make_ready(cell, tmp_path)
        return folder_of_cell(tmp_path, cell), shade_read(source_of(cell, tmp_path))

    def shade_read(source: Any) -> int:
        [(x, _)] = source.examples(tmp_path).as_numpy_iterator()
        return int(source.decoded(x).numpy().max())

    first, read = ready(1)
    assert read == 1
    trial = source_of(cell, tmp_path)
    second, read = ready(2)
    assert (read, shade_read(trial)) == (2, 1)
    assert first.is_dir()
    del trial
    third, read = ready(3)
    assert read == 3
    assert {path for path in third.parent.iterdir() if path.is_dir()} == {third}
    assert len({first, second, third}) == len(told) == 3


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


WORKERS, STEPS = 2, 3


def strategy_of_worker(tf: Any, index: int, replicas: int) -> Any:
    """By which `tf.distribute` gives one of two workers its input, as MultiWorkerMirroredStrategy does."""
    from tensorflow.python.distribute import input_lib

    def distribute(dataset: Any) -> Any:
        in_sync = WORKERS * replicas
        context = tf.distribute.InputContext(WORKERS, index, in_sync)
        place = input_lib.InputWorkers([("/device:CPU:0", ["/device:CPU:0"] * replicas)])
        alone = tf.distribute.OneDeviceStrategy("/device:CPU:0")
        return input_lib.DistributedDataset(place, alone, dataset, num_replicas_in_sync=in_sync, input_context=context)

    return SimpleNamespace(experimental_distribute_dataset=distribute)


def worker_of(tf: Any, index: int, data_dir: Path, autoshard: AutoShard, replicas: int) -> Training:
    """One of two workers that train on 24 photographs in four files, in three steps a pass."""
    batch = 24 // (STEPS * WORKERS * replicas)
    keys = {"data": "photographs:24", "shards": 4, "cache": "none", "autoshard": autoshard, "batch_size": batch}
    several = {"strategy": "multi_worker_mirrored", "workers": WORKERS, "replicas": replicas}
    asked = training_cell(**keys, **several, global_batch_size=24 // STEPS)
    make_ready(asked, data_dir)
    member = SimpleNamespace(index=index)
    request: Any = SimpleNamespace(training=asked, member=member, data_dir=str(data_dir), seed=1, scratch="")
    gate = [(np.full((24 // STEPS, 8, 8, 3), number, np.float32), np.zeros(24 // STEPS, np.int32)) for number in (7, 9)]
    strategy, unused = strategy_of_worker(tf, index, replicas), None
    devices, source = Devices(("/device:CPU:0",), 1, False), source_of(asked, data_dir)
    built: Any = (request, devices, strategy, *[unused] * 4, source, (8, 8, 3), 2, gate)
    return Training(*built)


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("autoshard", ["off", "data", "file"])
@pytest.mark.usefixtures("told")
def test_workers_have_the_gates_batches_and_then_each_example_of_a_pass_once_whoever_shares_it(
    tf: Any, tmp_path: Path, autoshard: AutoShard, replicas: int
) -> None:
    seen: list[bytes] = []
    for index in range(WORKERS):
        of = worker_of(tf, index, tmp_path, autoshard, replicas)
        images = [x for x, _ in of.own_dataset().take((2 + STEPS) * replicas).as_numpy_iterator()]
        assert {image.shape for image in images} == {(24 // (STEPS * WORKERS * replicas), 8, 8, 3)}
        assert [float(image.mean()) for image in images[: 2 * replicas]] == [7.0] * replicas + [9.0] * replicas
        seen += [one.tobytes() for image in images[2 * replicas :] for one in image]
        shared = [stage for stage in of.input if stage.startswith(("Shard", "AutoShard"))]
        assert shared == (["Shard(2)"] if autoshard == "off" else [f"AutoShard({autoshard}, 2 workers)"])
    every = plain_pass(of.source, tmp_path, (8, 8, 3), None).as_numpy_iterator()
    assert Counter(seen) == Counter(x.tobytes() for x, _ in every)
    assert len(set(seen)) == 24


def test_a_policy_is_told_only_where_the_graph_has_its_cut(tf: Any, tmp_path: Path) -> None:
    of = worker_of(tf, 0, tmp_path, "data", 1)
    whole = of.endless(8)
    shared = of.strategy.experimental_distribute_dataset(whole)._cloned_datasets[0]
    assert stages_of(shared)[-1] == "AutoShard(file, 2 workers)", "nobody has asked: TensorFlow takes the files"


@pytest.mark.usefixtures("told")
def test_files_that_are_not_as_many_for_each_worker_are_not_shared(tmp_path: Path) -> None:
    make_ready(CELL, tmp_path)
    mine = load_source(f"tfrecord:{folder_of_cell(tmp_path)}")
    must_be_shared_evenly(mine, 3)
    with pytest.raises(Unsupported, match=r"^autoshard: 'tfrecord:.*' lies in 3 TFRecord files, not as many for each"):
        must_be_shared_evenly(mine, 2)
