"""Batches that the user's own function makes of a shard: taken as they are, and refused in one line if they cannot."""

import itertools
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.data import DataInfo, load_source
from harness.engines.tensorflow.data.own_batches import OwnBatches
from harness.engines.tensorflow.data.pipeline import batches_ahead, gate_batches, pipeline
from harness.engines.tensorflow.data.stages import stages_of
from harness.errors import Unsupported, UsageError
from harness.spec import sweep_from
from harness.spec.axes import TABLE
from harness.spec.cell import TrainingCell
from tests.axes import PLAIN, only_cell

MODULE = """
    import functools
    import itertools

    import numpy as np
    import tensorflow as tf

    COUNT = 24
    X, Y = np.arange(COUNT * 3, dtype=np.int64).reshape(COUNT, 3), np.arange(COUNT, dtype=np.uint8) % 5
    from_slices = tf.data.Dataset.from_tensor_slices
    asked = []

    def rows(size, shard):
        '''Three tokens, five classes.'''
        index, count = shard
        asked.append((size, shard))
        return from_slices((X, Y)).shard(count, index).batch(size, drop_remainder=True)

    def named(size, shard):
        return rows(size, shard).map(lambda x, y: ({"left": x, "right": x[:, 0]}, (y, x)))

    def endless(size, shard):
        return from_slices((X, Y)).repeat().batch(size, drop_remainder=True)

    def ahead(size, shard):
        mapped = rows(size, shard).prefetch(5).map(lambda x, y: (x, y), num_parallel_calls=3)
        return mapped.prefetch(tf.data.AUTOTUNE)

    class Table:
        def rows(self, size, shard):
            return rows(size, shard)

    method = Table().rows
    bound = functools.partial(lambda scale, size, shard: rows(size, shard), 2)

    def by_default(size=4, shard=(0, 1)):
        return from_slices((X, Y))

    def one(size):
        return rows(size, (0, 1))

    def three(size, shard, seed):
        return rows(size, shard)

    def by_name(*, batch_size, shard):
        return rows(batch_size, shard)

    def raises(size, shard):
        raise RuntimeError("no such table")

    def nothing(size, shard):
        pass

    def inputs_only(size, shard):
        return rows(size, shard).map(lambda x, y: x)

    def single(size, shard):
        return from_slices((X, Y))

    def with_the_rest(size, shard):
        return from_slices((X, Y)).batch(size)

    def of_five(size, shard):
        return rows(5, shard)

    def ragged(size, shard):
        return from_slices((tf.ragged.constant([[1], [2, 3]] * 12), Y)).batch(size, drop_remainder=True)

    def of_any_length(size, shard):
        varying = lambda x, y: (tf.ensure_shape(tf.numpy_function(abs, [x], x.dtype), (size, None)), y)
        return rows(size, shard).map(varying)

    def words(size, shard):
        return rows(size, shard).map(lambda x, y: (tf.as_string(x), y))

    def few(size, shard):
        return rows(size, shard).take(1)

    def the_same(size, shard):
        return rows(size, shard).take(1).repeat()

    def made(of, size):
        number = itertools.count()
        spec = (tf.TensorSpec((size, 3), tf.int64), tf.TensorSpec((size,), tf.uint8))
        def batches():
            for _ in range(3):
                yield from ((X[at : at + size], Y[at : at + size]) for at in range(0, COUNT, size))
                of(next(number))
        return tf.data.Dataset.from_generator(batches, output_signature=spec)

    def breaks(size, shard):
        def gone(_):
            raise OSError("the disk is gone")
        return made(gone, size)

    def once(size, shard):
        left = iter([(X[at : at + size], Y[at : at + size]) for at in range(0, COUNT, size)])
        spec = (tf.TensorSpec((size, 3), tf.int64), tf.TensorSpec((size,), tf.uint8))
        return tf.data.Dataset.from_generator(lambda: left, output_signature=spec)

    def tenth(size, shard):
        '''Its tenth batch is narrower than it says.'''
        number = itertools.count(1)
        def cut(x):
            return x[:, :2] if next(number) == 10 else x
        def claimed(x, y):
            x = tf.numpy_function(cut, [x], tf.int64)
            x.set_shape((size, 3))
            return x, y
        return rows(size, shard).map(claimed)
"""
CELL = only_cell(sweep_from(PLAIN))


@pytest.fixture(autouse=True)
def mine(tf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:  # noqa: ARG001 - sets TensorFlow up
    """The module `own_rows`, as a user has it in the working folder."""
    (tmp_path / "own_rows.py").write_text(textwrap.dedent(MODULE), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    load_source("own_rows:rows")
    yield sys.modules["own_rows"]
    del sys.modules["own_rows"]


def source_of(name: str) -> OwnBatches:
    source = load_source(f"own_rows:{name}")
    assert isinstance(source, OwnBatches)
    return source


def batches_of(name: str, size: int, count: int, shape: Any = (3,), **more: Any) -> list[tuple[Any, Any]]:
    """The first batches of the pipeline, for a model that takes [3] or another `shape`."""
    import tensorflow as tf

    made = pipeline(source_of(name), Path(), shape, 0, size, seed=1, **more)
    return [tf.nest.map_structure(lambda part: part.numpy(), batch) for batch in itertools.islice(made, count)]


def test_it_says_of_itself_what_an_example_is_and_not_how_many_there_are() -> None:
    source = source_of("rows")
    assert (source.name, source.summary) == ("own_rows:rows", "Three tokens, five classes.")
    assert source.info(Path()) == DataInfo((3,), 0, None)
    assert source_of("named").info(Path()).shape == {"left": (3,), "right": ()}
    assert [spec.shape.as_list() for spec in source.examples(Path()).element_spec] == [[3], []]


def test_batches_of_inputs_alone_have_no_targets(mine: Any) -> None:
    [(x, y)] = batches_of("inputs_only", 8, 1)
    np.testing.assert_array_equal(x, mine.X[:8])
    assert y == ()


def test_a_function_is_given_the_parameters_in_its_name(mine: Any) -> None:
    source = source_of("three(seed=1)")
    assert (source.name, len(source.first(4, 2))) == ("own_rows:three(seed=1)", 2)
    mine.some = lambda count=3: mine.from_slices((mine.X, mine.Y)).take(count)
    assert load_source("own_rows:some(count=5)").info(Path()).examples == 5
    with pytest.raises(UsageError, match=r"^data: given 'own_rows:rows\(of=1\)': .* expected some of size, shard$"):
        load_source("own_rows:rows(of=1)")


def test_batches_are_those_of_the_function_pass_after_pass(mine: Any) -> None:
    for number, (x, y) in enumerate(batches_of("rows", 10, 5)):
        part = slice(0, 10) if number % 2 == 0 else slice(10, 20)
        np.testing.assert_array_equal(x, mine.X[part])
        np.testing.assert_array_equal(y, mine.Y[part])


def test_a_worker_asks_for_its_own_shard_in_batches_of_its_own_size(mine: Any) -> None:
    [(x, _)] = batches_of("rows", 4, 1, shard=(1, 3))
    np.testing.assert_array_equal(x, mine.X[1::3][:4])
    assert mine.asked[-1] == (4, (1, 3))


@pytest.mark.parametrize("name", ["method", "bound", "rows"])
def test_a_method_and_a_function_with_arguments_bound_are_called_with_size_and_shard(mine: Any, name: str) -> None:
    [(x, _)] = batches_of(name, 6, 1)
    np.testing.assert_array_equal(x, mine.X[:6])


def test_a_function_whose_arguments_all_have_defaults_gives_examples() -> None:
    source = load_source("own_rows:by_default")
    assert not isinstance(source, OwnBatches)
    assert source.info(Path()) == DataInfo((3,), 0, 24)


def test_the_pipeline_only_holds_batches_ready() -> None:
    assert stages_of(pipeline(source_of("rows"), Path(), (3,), 0, 4, seed=1, cell=CELL))[-3:] == [
        "Map",
        "Repeat",
        "Prefetch(2)",
    ]


def test_what_the_function_holds_ready_is_counted_but_a_last_prefetch_left_to_the_harness() -> None:
    source = source_of("ahead")
    stages = stages_of(pipeline(source, Path(), (3,), 0, 4, seed=1, cell=CELL))
    assert [stage for stage in stages if stage.startswith(("Prefetch", "Parallel"))] == [
        "Prefetch(5)",
        "ParallelMap(3)",
        "Prefetch(2)",
    ]
    assert batches_ahead(source, CELL, (3,), stages, 4) == 5 + 3 + 2 + 2


def test_a_traced_function_calls_it_anew(tf: Any, mine: Any) -> None:
    source = source_of("rows")
    source.info(Path())
    before = len(mine.asked)
    made = tf.function(lambda: pipeline(source, Path(), (3,), 0, 4, seed=1), autograph=False)
    assert made.get_concrete_function().graph.captures == []
    assert mine.asked[before:] == [(4, (0, 1))]


@pytest.mark.parametrize("name", ["rows", "endless"])
def test_the_gate_gets_the_first_batches_of_everything(mine: Any, name: str) -> None:
    for number, (x, y) in enumerate(gate_batches(source_of(name), Path(), (3,), 5, 8, 2)):
        assert (x.dtype, y.dtype) == (np.int64, np.uint8)
        np.testing.assert_array_equal(x, mine.X[8 * number : 8 * number + 8])
        np.testing.assert_array_equal(y, mine.Y[8 * number : 8 * number + 8])


def test_the_gate_gets_several_inputs_and_targets_in_their_structure(mine: Any) -> None:
    [(x, (y, again))] = gate_batches(source_of("named"), Path(), {"left": (3,), "right": ()}, 0, 4, 1)
    for got, given in zip((x["left"], x["right"], y, again), (mine.X, mine.X[:, 0], mine.Y, mine.X), strict=True):
        np.testing.assert_array_equal(got, given[:4])


WANTS = r"expected a function without arguments, which gives examples, or one of \(batch_size, shard\), which gives bat"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("one", rf"^data: 'own_rows:one' wants \(size\), {WANTS}"),
        ("three", rf"^data: 'own_rows:three' wants \(size, shard, seed\), {WANTS}"),
        ("by_name", rf"^data: 'own_rows:by_name' wants \(batch_size=, shard=\), {WANTS}"),
        (
            "raises",
            r"raised RuntimeError: no such table; expected a tf\.data\.Dataset .* in batches: batch\(batch_size",
        ),
        (
            "nothing",
            r"returned builtins\.NoneType, expected a tf\.data\.Dataset of \(input, target\) in batches: batch\(",
        ),
        (
            "single",
            r"gives inputs of the shape \(3,\), expected 1 in front, the batch size .*: batch\(batch_size, drop_",
        ),
        ("with_the_rest", r"gives inputs of the shape \(None, 3\), expected 1 in front, .* drop_remainder=True\)$"),
        ("of_five", r"gives inputs of the shape \(5, 3\), expected 1 in front, the batch size that it was called with"),
        ("ragged", r"gives inputs in a RaggedTensorSpec, expected dense tensors, .*: padded_batch\(\) pads$"),
        ("of_any_length", r"gives inputs of the shape \(1, None\), expected a known one: padded_batch\(\) pads"),
        ("words", r"gives inputs of string, expected numbers"),
        (
            "named",
            r"gives inputs of the shape \{.*\} and the model takes \(3,\), expected .* in batches: .*, each of the",
        ),
        (
            "few",
            r"begins with 1 distinct of the 2 batches of 8 that the gate takes, expected all: give more, or a small",
        ),
        ("the_same", r"begins with 1 distinct of the 2 batches of 8 that the gate takes, expected all: give more"),
    ],
)
def test_what_no_step_can_be_taken_on_is_refused_in_one_line(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        gate_batches(load_source(f"own_rows:{name}"), Path(), (3,), 5, 8, 2)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("breaks", r"^data: 'own_rows:breaks': an example cannot be read: .*OSError: the disk is gone"),
        ("once", r"^data: 'own_rows:once' ended before its time, expected a batch of each shard .*anew for each pass$"),
        ("tenth", r"^data: 'own_rows:tenth': an example cannot be read: .*\[8,2\] is not compatible .*\[8,3\]"),
    ],
)
def test_what_cannot_be_read_on_is_told_of_the_data_while_steps_are_taken(name: str, message: str) -> None:
    source = source_of(name)
    batches = iter(pipeline(source, Path(), (3,), 5, 8, seed=1))
    next(batches)
    with pytest.raises(UsageError, match=message) as caught, source.reading():
        _ = [next(batches) for _ in range(100)]
    assert "\n" not in str(caught.value)


def test_a_shard_that_has_no_batch_ends_before_its_time() -> None:
    source = source_of("rows")
    with pytest.raises(UsageError, match=r"ended before its time, expected a batch of each shard"), source.reading():
        next(iter(pipeline(source, Path(), (3,), 5, 20, seed=1, shard=(1, 2))))


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (
            {"cache": "memory"},
            "cache: 'own_rows:rows' makes its batches itself: cache them there, and leave cache memory",
        ),
        ({"cache": "none"}, "leave cache none out"),
        ({"shuffle_buffer": 64}, "shuffle_buffer: 'own_rows:rows' makes its batches itself: shuffle them there, and"),
        (
            {"data_service": 2, "cache": "none"},
            "data_service: 'own_rows:rows' makes its batches itself: distribute them",
        ),
        (
            {"autoshard": "data"},
            "autoshard: 'own_rows:rows' makes its batches itself: share them there, and leave auto",
        ),
    ],
)
def test_what_is_asked_of_the_harness_and_the_function_decides_is_unsupported(asked: dict[str, Any], says: str) -> None:
    source = source_of("rows")
    source.must_not_be_asked(CELL)
    with pytest.raises(Unsupported) as caught:
        source.must_not_be_asked(CELL.model_copy(update=asked))
    assert says in str(caught.value)


def of_another_value(key: str) -> TrainingCell:
    return CELL.model_copy(update={key: next(value for value in TABLE[key].tried if value != CELL.get(key))})


@pytest.mark.parametrize("key", [key for key, axis in TABLE.items() if axis.stage not in (None, "batch")])
def test_every_axis_of_the_input_that_comes_before_a_batch_is_the_functions(key: str) -> None:
    with pytest.raises(Unsupported, match=rf"^{key}: 'own_rows:rows' makes its batches itself: .*, and leave {key} "):
        source_of("rows").must_not_be_asked(of_another_value(key))


@pytest.mark.parametrize("key", [key for key, axis in TABLE.items() if axis.stage == "batch"])
def test_what_is_done_to_its_batches_is_the_harnesss(key: str) -> None:
    source_of("rows").must_not_be_asked(of_another_value(key))
