"""The input pipeline and the gate's batches."""

import itertools
import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.data import DataInfo, Source, load_source, service
from harness.engines.tensorflow.data import pipeline as module
from harness.engines.tensorflow.data.pipeline import gate_batches, pipeline, plain_pass
from harness.engines.tensorflow.data.stages import stages_of
from harness.errors import HarnessError, Unsupported, UsageError
from harness.trial.passes import KnownPass, digests_of
from tests.record.examples import cell

SHAPE = (28, 28, 1)


class Numbered(Source):
    """`count` images whose pixels all equal their number, and whose label is their number modulo 3."""

    name = "numbered"
    summary = "for tests"

    def __init__(self, count: int, sizes: tuple[int, ...] = (4,)) -> None:
        self.count, self.sizes, self.taken = count, sizes, 0

    def prepare(self, data_dir: Path) -> None:
        """Nothing to do."""

    def info(self, data_dir: Path) -> DataInfo:
        """Sizes are open where they differ."""
        side = self.sizes[0] if len(self.sizes) == 1 else None
        return DataInfo((side, side, 1), 3, self.count)

    def examples(self, data_dir: Path) -> Any:
        """Images of the sizes in turn; counts how many were asked for."""
        import tensorflow as tf

        side = self.sizes[0] if len(self.sizes) == 1 else None
        signature = (tf.TensorSpec((side, side, 1), tf.uint8), tf.TensorSpec((), tf.int64))
        return tf.data.Dataset.from_generator(self._generate, output_signature=signature)

    def _generate(self) -> Any:
        for number in range(self.count):
            self.taken += 1
            side = self.sizes[number % len(self.sizes)]
            yield np.full((side, side, 1), number, np.uint8), number % 3


def numbers(batch: Any) -> list[int]:
    """Which images of `Numbered` are in a batch."""
    return [round(float(image.mean() * 255)) for image in np.asarray(batch[0])]


def some(dataset: Any, count: int) -> list[tuple[Any, Any]]:
    return [(x.numpy(), y.numpy()) for x, y in itertools.islice(dataset, count)]


@pytest.mark.parametrize("shape", [(28, 28, 1), (32, 32, 3), (8, 8)])
def test_batches_have_a_known_shape_and_values_between_0_and_1(digits_dir: Path, shape: tuple[int, ...]) -> None:
    dataset = pipeline(load_source("digits"), digits_dir, shape, 10, 48, seed=1)
    assert [spec.shape.as_list() for spec in dataset.element_spec] == [[48, *shape], [48]]
    assert [spec.dtype.name for spec in dataset.element_spec] == ["float32", "int32"]
    ((x, y),) = some(dataset, 1)
    assert 0 <= x.min() < 0.01 < 0.9 < x.max() <= 1
    assert set(y) <= set(range(10))


def test_images_keep_their_labels(tf: Any) -> None:  # noqa: ARG001 - sets TensorFlow up
    for batch in some(pipeline(Numbered(20), Path(), (4, 4, 1), 3, 7, seed=1), 10):
        assert [number % 3 for number in numbers(batch)] == batch[1].tolist()


def test_every_pass_gives_each_example_once_in_another_order(tf: Any) -> None:  # noqa: ARG001
    first, second = (numbers(b) for b in some(pipeline(Numbered(20), Path(), (4, 4, 1), 3, 20, seed=1), 2))
    assert sorted(first) == sorted(second) == list(range(20))
    assert first != second
    assert first != sorted(first)


def test_the_whole_data_set_is_shuffled_not_only_what_lies_close_together(tf: Any) -> None:  # noqa: ARG001
    ((x, y),) = some(pipeline(Numbered(200), Path(), (4, 4, 1), 3, 50, seed=1), 1)
    assert max(numbers((x, y))) > 150


def test_a_seed_gives_the_same_batches_and_another_seed_others(digits_dir: Path) -> None:
    def labels(seed: int) -> list[int]:
        batches = some(pipeline(load_source("digits"), digits_dir, (8, 8, 1), 10, 600, seed), 5)
        return [int(label) for _, y in batches for label in y]

    assert labels(1) == labels(1)
    assert labels(1) != labels(2)


def test_a_batch_may_be_larger_than_the_data_set_and_the_pipeline_never_ends(tf: Any) -> None:  # noqa: ARG001
    batches = some(pipeline(Numbered(5), Path(), (4, 4, 1), 3, 12, seed=1), 30)
    assert len(batches) == 30
    assert set(Counter(n for batch in batches for n in numbers(batch)).values()) == {72}


def test_the_source_is_read_once_and_before_the_first_batch_is_given(tf: Any) -> None:  # noqa: ARG001
    source = Numbered(50)
    iterator = iter(pipeline(source, Path(), (4, 4, 1), 3, 10, seed=1))
    next(iterator)
    assert source.taken == 50
    for _ in range(20):
        next(iterator)
    assert source.taken == 50


def test_a_data_set_too_large_for_memory_is_read_in_every_pass(tf: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    monkeypatch.setattr(module, "CACHE_BYTES", 10 * 4 * 4 * 4)
    source = Numbered(50)
    batches = some(pipeline(source, Path(), (4, 4, 1), 3, 50, seed=1), 3)
    assert source.taken >= 150
    assert all(sorted(numbers(batch)) == list(range(50)) for batch in batches)


def test_images_of_different_sizes_are_brought_to_one(tf: Any) -> None:  # noqa: ARG001
    source = Numbered(20, sizes=(3, 4, 5))
    ((x, _),) = some(pipeline(source, Path(), (6, 6, 1), 3, 20, seed=1), 1)
    assert x.shape == (20, 6, 6, 1)
    ((gx, gy),) = gate_batches(source, Path(), (6, 6, 1), 3, 8, 1)
    assert (numbers((gx, gy)), gy.tolist()) == (list(range(8)), [n % 3 for n in range(8)])


def test_synthetic_is_one_batch_repeated_in_the_models_shape(tf: Any) -> None:  # noqa: ARG001
    source = load_source("synthetic")
    dataset = pipeline(source, Path("/nowhere"), (5, 7), 4, 6, seed=3)
    assert [spec.shape.as_list() for spec in dataset.element_spec] == [[6, 5, 7], [6]]
    (first, second) = some(dataset, 2)
    np.testing.assert_array_equal(first[0], second[0])
    assert not np.array_equal(first[0], some(pipeline(source, Path(), (5, 7), 4, 6, seed=4), 1)[0][0])


@pytest.mark.parametrize("make", [pipeline, gate_batches])
def test_a_model_with_too_few_outputs_is_refused(digits_dir: Path, make: Any) -> None:
    with pytest.raises(UsageError, match=r"^data: 'digits' has 10 classes and the model 9 outputs, expected"):
        make(load_source("digits"), digits_dir, SHAPE, 9, 8, 1)


@pytest.mark.parametrize("make", [pipeline, gate_batches])
def test_a_model_that_takes_no_images_is_refused(digits_dir: Path, make: Any) -> None:
    with pytest.raises(UsageError, match=r"^model: takes input of shape \(784,\)"):
        make(load_source("digits"), digits_dir, (784,), 10, 8, 1)


def test_gate_batches_are_the_same_every_time_and_differ_from_one_another(digits_dir: Path) -> None:
    first = gate_batches(load_source("digits"), digits_dir, SHAPE, 10, 16, 3)
    again = gate_batches(load_source("digits"), digits_dir, SHAPE, 10, 16, 3)
    for (x, y), (x2, y2) in zip(first, again, strict=True):
        np.testing.assert_array_equal(x, x2)
        np.testing.assert_array_equal(y, y2)
    assert [(x.shape, x.dtype.name, y.shape, y.dtype.name) for x, y in first] == [
        ((16, *SHAPE), "float32", (16,), "int32")
    ] * 3
    assert not np.array_equal(first[0][0], first[1][0])


def test_gate_batches_have_been_through_the_pipelines_preprocessing(digits_dir: Path) -> None:
    (gate, _), *_ = gate_batches(load_source("digits"), digits_dir, (32, 32, 3), 10, 8, 1)
    ((seen, _),) = some(pipeline(load_source("digits"), digits_dir, (32, 32, 3), 10, 1797, seed=1), 1)
    flat = seen.reshape(len(seen), -1)
    for image in gate.reshape(8, -1):
        assert np.abs(flat - image).max(axis=1).min() < 1e-6


@pytest.mark.parametrize(("source", "batch"), [("digits", 16), ("digits", 1797), ("digits", 2000), ("synthetic", 16)])
def test_no_two_images_of_the_gate_are_the_same(digits_dir: Path, source: str, batch: int) -> None:
    batches = gate_batches(load_source(source), digits_dir, (8, 8, 1), 10, batch, 2)
    images = [image.tobytes() for x, _ in batches for image in x]
    assert len(set(images)) == len(images) == 2 * batch


def test_the_gate_reads_only_what_it_needs(tf: Any) -> None:  # noqa: ARG001
    source = Numbered(200)
    gate_batches(source, Path(), (4, 4, 1), 3, 4, 2)
    assert source.taken < 20


def test_a_source_without_examples_is_an_error(tf: Any) -> None:  # noqa: ARG001
    with pytest.raises(HarnessError, match="'numbered' has no examples"):
        gate_batches(Numbered(0), Path(), (4, 4, 1), 3, 4, 2)


@pytest.mark.parametrize("source", ["digits", "synthetic"])
def test_a_strategy_takes_the_pipeline_and_gives_each_replica_its_share(tf: Any, digits_dir: Path, source: str) -> None:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])
    dataset = pipeline(load_source(source), digits_dir, SHAPE, 10, 12, seed=1)
    x, y = next(iter(strategy.experimental_distribute_dataset(dataset)))
    assert [part.shape.as_list() for part in strategy.experimental_local_results(x)] == [[4, *SHAPE]] * 3
    assert [part.shape.as_list() for part in strategy.experimental_local_results(y)] == [[4]] * 3


def test_a_function_that_makes_the_pipeline_takes_nothing_from_outside(tf: Any, digits_dir: Path) -> None:
    source = load_source("digits")
    gate_batches(source, digits_dir, SHAPE, 10, 4, 1)  # the same data set is in use outside
    made = tf.function(lambda: pipeline(source, digits_dir, SHAPE, 10, 4, seed=1), autograph=False)
    assert made.get_concrete_function().graph.captures == [], "it would be sent to every worker that runs the function"


@pytest.mark.usefixtures("tf")
@pytest.mark.parametrize(("asked", "last"), [(0, "Batch(4)"), (3, "Prefetch(3)")])
def test_as_many_batches_are_made_ahead_as_the_cell_asks_for(asked: int, last: str) -> None:
    of = cell(prefetch=asked)
    made = pipeline(Numbered(20), Path(), (4, 4, 1), 3, 4, seed=1, cell=of)
    assert stages_of(made)[-1] == last
    ((x, _),) = some(made, 1)
    assert len(x) == 4


@pytest.mark.usefixtures("tf")
@pytest.mark.parametrize(("asked", "passes"), [("auto", 1), ("memory", 1), ("file", 1), ("none", 3)])
def test_examples_are_decoded_once_where_they_are_cached_and_in_every_pass_where_they_are_not(
    tmp_path: Path, asked: str, passes: int
) -> None:
    source = Numbered(20)
    made = pipeline(source, Path(), (4, 4, 1), 3, 4, seed=1, cell=cell(cache=asked, prefetch=0), scratch=str(tmp_path))
    assert Counter(n for batch in some(made, 10) for n in numbers(batch)) == Counter([*range(20)] * 2)
    assert 20 * (passes - 1) < source.taken <= 20 * passes
    assert [name for name in stages_of(made) if "Cache" in name] == {"none": [], "file": ["Cache(file)"]}.get(
        asked, ["Cache"]
    )
    assert bool(list(tmp_path.iterdir())) == (asked == "file")


@pytest.mark.usefixtures("tf")
def test_what_is_cached_is_so_before_the_first_batch_however_few_are_shuffled() -> None:
    source = Numbered(20)
    of = cell(cache="memory", shuffle_buffer=1, prefetch=0)
    made = pipeline(source, Path(), (4, 4, 1), 3, 4, seed=1, cell=of)
    assert source.taken == 20
    assert [numbers(batch) for batch in some(made, 5)] == [[*range(i, i + 4)] for i in range(0, 20, 4)]
    assert source.taken == 20


@pytest.mark.usefixtures("tf")
def test_a_file_of_a_process_that_is_gone_is_deleted_and_that_of_one_that_lives_is_not(tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    left, alive = (tmp_path / f"examples-{pid}-0.index" for pid in (gone.pid, os.getppid()))
    for file in (left, alive):
        file.touch()
    pipeline(Numbered(8), Path(), (4, 4, 1), 3, 4, seed=1, cell=cell(cache="file"), scratch=str(tmp_path))
    assert (left.exists(), alive.exists()) == (False, True)


@pytest.mark.usefixtures("tf")
def test_a_cache_of_examples_without_a_known_end_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^cache: 'endless' does not say how many examples it has, .* endless ones"):
        pipeline(Endless(8), Path(), (4, 4, 1), 3, 4, seed=1, cell=cell(cache="memory"))


@pytest.mark.usefixtures("tf")
@pytest.mark.parametrize(("workers", "ordered"), [(1, True), (2, False)])
def test_a_data_service_gives_each_example_once_a_pass_and_one_worker_in_the_sources_order(
    tmp_path: Path, workers: int, ordered: bool
) -> None:
    pictures, of = load_source("photographs:60"), cell(cache="none", deterministic=ordered, data_service=workers)
    pictures.prepare(tmp_path)
    made = pipeline(pictures, tmp_path, SHAPE, 10, 20, 1, cell=of.model_copy(update={"shuffle_buffer": 1}))
    [(images, labels)] = some(plain_pass(pictures, tmp_path, SHAPE, None).batch(60), 1)
    known = KnownPass(digests_of(images, labels))
    batches = some(made, 6)
    for of_pass in (batches[:3], batches[3:]):
        found = [digest for batch in of_pass for digest in digests_of(*batch)]
        assert known.judge(found) is None
        assert not ordered or found == known.digests
    assert "DataService" in stages_of(made)


@pytest.mark.parametrize(
    "part",
    [
        lambda data: data.take(40),
        lambda data: data.skip(5),
        lambda data: data.shard(2, 1),
        lambda data: data.enumerate().map(lambda _, x: x),
        lambda data: data.concatenate(data.take(3)),
        lambda data: data.take_while(lambda x: x < 50),
        lambda data: data.scan(np.int64(0), lambda total, x: (total + x, total + x)),
        lambda data: data.unique(),
    ],
    ids=["take", "skip", "shard", "enumerate", "in one of two", "take_while", "scan", "unique"],
)
def test_what_each_worker_would_do_to_its_share_is_served_by_one_alone(tf: Any, part: Any) -> None:
    data = part(tf.data.Dataset.range(60).map(lambda x: 2 * x))
    assert list(service.through_service(data, 1).as_numpy_iterator()) == list(data.as_numpy_iterator())
    with pytest.raises(Unsupported, match=r"^data_service: .* where several read a source: take one worker"):
        service.through_service(data, 2)


def test_data_that_are_counted_are_served_by_one_worker_alone(digits_dir: Path) -> None:
    digits = load_source("digits")
    made = pipeline(digits, digits_dir, SHAPE, 10, 1797, seed=1, cell=cell(cache="none", data_service=1))
    first, second = (np.bincount(labels).tolist() for _, labels in some(made, 2))
    assert first == second
    with pytest.raises(Unsupported, match=r"^data_service: the number of examples is asserted .* one worker"):
        pipeline(digits, digits_dir, SHAPE, 10, 20, seed=1, cell=cell(cache="none", data_service=2))


class Endless(Numbered):
    """Does not say how many it has."""

    name = "endless"

    def info(self, data_dir: Path) -> DataInfo:
        """Without a number."""
        return DataInfo((4, 4, 1), 3, None)


@pytest.mark.usefixtures("tf")
def test_an_example_is_drawn_from_as_many_as_the_cell_asks_for() -> None:
    made = pipeline(Numbered(200), Path(), (4, 4, 1), 3, 4, seed=1, cell=cell(shuffle_buffer=8))
    assert "Shuffle(8)" in stages_of(made)
    first = [n for batch in some(made, 5) for n in numbers(batch)]
    assert max(first) < 20 + 8
    assert first != sorted(first)


@pytest.mark.usefixtures("tf")
@pytest.mark.parametrize(
    ("keys", "stage"),
    [
        ({}, "ParallelMap"),
        ({"parallel_calls": 2}, "ParallelMap(2)"),
        ({"deterministic": False}, "ParallelMap(any order)"),
        ({"parallel_calls": 3, "deterministic": False}, "ParallelMap(3, any order)"),
    ],
)
def test_parallel_calls_and_their_order_are_as_the_cell_asks_for(keys: dict[str, Any], stage: str) -> None:
    made = pipeline(Numbered(8), Path(), (4, 4, 1), 3, 4, seed=1, cell=cell(**keys))
    assert stage in stages_of(made)
    assert Counter(n for batch in some(made, 2) for n in numbers(batch)) == Counter(range(8))
