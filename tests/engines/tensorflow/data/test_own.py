"""Examples of the user's own: they are read as they are, and refused in one line where they cannot be."""

import itertools
import os
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.data import DataInfo, load_source
from harness.engines.tensorflow.data.cached_batches import cached_batches
from harness.engines.tensorflow.data.pipeline import batches_ahead, gate_batches, pipeline
from harness.engines.tensorflow.data.stages import held_by, stages_of
from harness.engines.tensorflow.data_for_model import as_given
from harness.engines.tensorflow.structures import as_keras_takes, parts_of, unweighted
from harness.errors import UsageError
from harness.spec import sweep_from
from harness.spec.inputs import UNCOUNTED
from tests.axes import PLAIN, only_cell

MODULE = """
    import collections

    import numpy as np
    import tensorflow as tf

    COUNT = 12
    X, Y = np.arange(COUNT * 3, dtype=np.int64).reshape(COUNT, 3), np.arange(COUNT, dtype=np.uint8) % 5
    PAIR = (tf.TensorSpec((3,), tf.int64), tf.TensorSpec((), tf.uint8))
    from_slices = tf.data.Dataset.from_tensor_slices
    called = 0

    def tokens():
        '''Three tokens, five classes.

        More.'''
        global called
        called += 1
        return from_slices((X, Y))

    def rows():
        return from_slices((X / 7, np.stack([Y / 2, Y / 3], 1)))

    def generated():
        return tf.data.Dataset.from_generator(lambda: zip(X, Y), output_signature=PAIR)

    def counted():
        return generated().apply(tf.data.experimental.assert_cardinality(COUNT))

    def endless():
        return tokens().repeat()

    def once():
        left = iter(list(zip(X, Y)))
        return tf.data.Dataset.from_generator(lambda: left, output_signature=PAIR)

    def raises():
        raise RuntimeError("no such table")

    def wants(batch):
        return tokens()

    def arrays():
        return X, Y

    def weighted_apart():
        return from_slices((X, Y, X))

    def weighted_twice():
        return from_slices((X, Y, (Y, Y)))

    def inputs_only():
        return from_slices(X)

    def named():
        return from_slices(({"left": X, "right": X[:, 0] / 7}, (Y, X)))

    def in_bfloat16():
        return from_slices(({"left": X, "right": tf.cast(X[:, 0] / 7, tf.bfloat16)}, (tf.cast(Y, tf.bfloat16), X)))

    Row = collections.namedtuple("Row", "x y")

    def in_a_named_tuple():
        return from_slices(Row(X, Y))

    def weighted_in_a_named_tuple():
        return from_slices(collections.namedtuple("Weighed", "x y weight")(X, Y, Y))

    def ahead():
        return tokens().prefetch(8).map(lambda x, y: (x, y), num_parallel_calls=3).prefetch(tf.data.AUTOTUNE)

    def in_batches():
        return tokens().batch(4, drop_remainder=True)

    def in_kept_batches():
        return in_batches().cache().take(2).with_options(tf.data.Options())

    def with_options():
        options = tf.data.Options()
        options.deterministic = True
        return tokens().prefetch(8).with_options(options)

    def sequences():
        return in_batches().map(lambda x, y: (x, y))

    def nothing_given():
        return tokens().map(lambda x, y: ((), y))

    def sparse():
        return tokens().map(lambda x, y: ({"row": tf.sparse.from_dense(x), "whole": x}, y))

    def sparse_targets():
        return tokens().map(lambda x, y: (x, tf.sparse.from_dense(x)))

    def optional():
        return tokens().map(lambda x, y: (tf.experimental.Optional.from_value(x), y))

    def batched():
        return tokens().batch(4)

    LONG = [[row] * (row % 4) for row in range(1, COUNT + 1)]

    def ragged():
        return from_slices(({"words": tf.ragged.constant(LONG, dtype=tf.int64), "row": X}, Y))

    def ragged_alone():
        return from_slices((tf.ragged.constant(LONG), Y))

    def of_many_lengths():
        one = (tf.TensorSpec((None,), tf.int64), tf.TensorSpec((), tf.int32))
        return tf.data.Dataset.from_generator(lambda: zip(LONG, Y), output_signature=one)

    def twice_ragged():
        return from_slices((tf.ragged.constant([[[row], [row] * (row % 3)] for row in range(COUNT)]), Y))

    def ragged_targets():
        return from_slices((X, tf.ragged.constant(LONG)))

    def words():
        return from_slices((np.array([["a", "b"], ["c", "d"]]), Y[:2]))

    def empty():
        return tokens().take(0)

    def breaks():
        def made():
            yield from zip(X[:6], Y)
            raise RuntimeError("the disk is gone")
        return tf.data.Dataset.from_generator(made, output_signature=PAIR)

    def other_shape():
        def made():
            yield from zip(X[:6], Y)
            yield from zip(X[6:, :2], Y[6:])
        return tf.data.Dataset.from_generator(made, output_signature=PAIR)

    def lies():
        def two_of(x, y):
            short = tf.numpy_function(lambda x: x[:2] if x[0] >= 18 else x, [x], tf.int64)
            short.set_shape((3,))
            return short, y
        return tokens().map(two_of)
"""


@pytest.fixture
def mine(tf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:  # noqa: ARG001 - sets TensorFlow up
    """The module `own_examples`, as a user has it in the working folder."""
    (tmp_path / "own_examples.py").write_text(textwrap.dedent(MODULE), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    load_source("own_examples:tokens")
    yield sys.modules["own_examples"]
    del sys.modules["own_examples"]


def batches_of(name: str, size: int, count: int, shape: Any = (3,), **more: Any) -> list[tuple[Any, Any]]:
    """The first batches of the pipeline, for a model that takes [3] or another `shape`."""
    import tensorflow as tf

    made = pipeline(load_source(f"own_examples:{name}"), Path(), shape, 0, size, seed=1, **more)
    return [tf.nest.map_structure(lambda part: part.numpy(), batch) for batch in itertools.islice(made, count)]


def test_it_says_of_itself_what_the_data_set_says(mine: Any) -> None:
    source = load_source("own_examples:tokens")
    assert (source.name, source.summary) == ("own_examples:tokens", "Three tokens, five classes.")
    assert source.info(Path()) == DataInfo((3,), 0, mine.COUNT)
    assert [load_source(f"own_examples:{name}").info(Path()).examples for name in ("generated", "endless")] == [
        None
    ] * 2


def test_the_function_is_called_once_a_process_but_anew_where_it_would_be_an_input_of_a_traced_function(
    tf: Any, mine: Any
) -> None:
    source = load_source("own_examples:tokens")
    for _ in range(2):
        source.info(Path())
        source.examples(Path())
    assert mine.called == 1
    made = tf.function(lambda: pipeline(source, Path(), (3,), 0, 4, seed=1), autograph=False)
    assert made.get_concrete_function().graph.captures == []
    assert mine.called == 2


@pytest.mark.parametrize("name", ["tokens", "rows"])
def test_examples_reach_the_model_as_they_are_in_every_pass_each_once(mine: Any, name: str) -> None:
    wanted = {"tokens": (mine.X, mine.Y), "rows": (mine.X / 7, np.stack([mine.Y / 2, mine.Y / 3], 1))}[name]
    orders = []
    for x, y in batches_of(name, mine.COUNT, 2):
        order = np.argsort(x[:, 0])
        for got, given in zip((x, y), wanted, strict=True):
            assert got.dtype == given.dtype
            np.testing.assert_array_equal(got[order], given)
        orders.append(order.tolist())
    assert orders[0] != orders[1]


def test_inputs_alone_are_pairs_with_no_targets(mine: Any) -> None:
    source = load_source("own_examples:inputs_only")
    assert source.info(Path()) == DataInfo((3,), 0, mine.COUNT)
    [(x, y), _] = gate_batches(source, Path(), (3,), 5, 4, 2)
    np.testing.assert_array_equal(x, mine.X[:4])
    assert y == ()
    assert parts_of((x, y)).keys() == {"inputs"}
    assert as_keras_takes(x, y) is x


@pytest.mark.parametrize("name", ["in_a_named_tuple", "weighted_in_a_named_tuple"])
def test_an_example_may_be_a_named_tuple(mine: Any, name: str) -> None:
    [(x, y)] = gate_batches(load_source(f"own_examples:{name}"), Path(), (3,), 5, 4, 1)
    np.testing.assert_array_equal(x, mine.X[:4])
    np.testing.assert_array_equal(unweighted(y), mine.Y[:4])
    assert len(batches_of(name, 4, 2)) == 2


@pytest.mark.usefixtures("mine")
def test_a_last_prefetch_is_left_out_below_options_too_which_stay() -> None:
    made = load_source("own_examples:with_options").examples(Path())
    assert stages_of(made) == ["TensorSlice"]
    assert made.options().deterministic is True


@pytest.mark.parametrize(
    ("stages", "held"),
    [
        (["Range(9)", "Map"], 0),
        (["Range(9)", "Prefetch(5)", "ParallelMap(3)"], 8),
        (["Range(9)", "Prefetch(7)", "Cache", "Map", "Prefetch(5)"], 5),
        (["Range(9)", "Prefetch(7)", "Cache"], 0),
        (["Range(9)", "Prefetch(1)", "Batch(256)", "ParallelMap(8)", "Prefetch(4)", "Unbatch", "Prefetch(2)"], 3075),
        (["Range(9)", "Batch(40)", "Prefetch(4)"], 4),
        (["Range(9)", "Batch(6)", "Batch(5)", "Prefetch(2)", "Unbatch", "Unbatch"], 60),
        (["Range(9)", "ParallelBatch(1024)"], len(os.sched_getaffinity(0))),
        (["Range(9)", "ParallelBatch(10)", "Unbatch"], 10 * len(os.sched_getaffinity(0))),
    ],
)
def test_what_stages_hold_is_counted_behind_the_last_cache_and_by_the_size_of_batches_that_are_taken_apart(
    stages: list[str], held: int
) -> None:
    assert held_by(stages) == held


@pytest.mark.parametrize("cache", ["none", "memory"])
@pytest.mark.usefixtures("mine")
def test_examples_that_the_function_holds_ready_are_counted_unless_they_come_from_a_cache(cache: str) -> None:
    source = load_source("own_examples:ahead")
    cell = only_cell(sweep_from({**PLAIN, "cache": [cache], "parallel_calls": [1]}))
    stages = stages_of(pipeline(source, Path(), (3,), 0, 4, seed=1, cell=cell))
    assert [stage for stage in stages if stage.startswith(("Prefetch", "Parallel"))] == [
        "Prefetch(8)",
        "ParallelMap(3)",
        "Prefetch(2)",
    ], "the function's last is left to the harness"
    held = batches_ahead(source, cell, (3,), stages, 4) - batches_ahead(source, cell, (3,), stages[3:], 4)
    assert held == (2 if cache == "none" else 0), "8 + 3 examples and one in a call are three batches, one alone is one"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("in_batches", "ends in batch\\(\\), expected examples one by one: batch\\(\\) is the harness's; where"),
        ("in_kept_batches", "ends in batch\\(\\), expected examples one by one"),
        ("ragged_alone", "gives inputs of shape \\(None,\\), expected a size that is known: name the model"),
        ("ragged", "gives inputs 'words' of shape \\(None,\\), expected a size"),
    ],
)
@pytest.mark.usefixtures("mine")
def test_what_is_read_for_no_model_is_examples_one_by_one_whose_size_is_known(name: str, said: str) -> None:
    source = load_source(f"own_examples:{name}")
    with pytest.raises(UsageError, match=said):
        as_given(source, source.info(Path()))


@pytest.mark.usefixtures("mine")
def test_what_is_read_for_no_model_is_of_the_shapes_that_the_data_say() -> None:
    for name, shapes in (("tokens", (3,)), ("named", SEVERAL), ("sequences", (4, 3))):
        source = load_source(f"own_examples:{name}")
        assert as_given(source, source.info(Path())) == shapes


def test_each_worker_has_examples_of_its_own(mine: Any) -> None:
    shards = [batches_of("tokens", mine.COUNT // 2, 1, shard=(worker, 2))[0] for worker in range(2)]
    assert sorted(x for of in shards for x in of[0][:, 0]) == mine.X[:, 0].tolist()


@pytest.mark.usefixtures("mine")
def test_the_gate_gets_the_first_ones_in_order_unchanged() -> None:
    given = sys.modules["own_examples"]
    first, second = gate_batches(load_source("own_examples:tokens"), Path(), (3,), 5, 4, 2)
    for (x, y), part in ((first, slice(0, 4)), (second, slice(4, 8))):
        assert (x.dtype, y.dtype) == (np.int64, np.uint8)
        np.testing.assert_array_equal(x, given.X[part])
        np.testing.assert_array_equal(y, given.Y[part])


SEVERAL = {"left": (3,), "right": ()}


def test_of_several_inputs_it_says_the_shape_of_each(mine: Any) -> None:
    source = load_source("own_examples:named")
    assert source.info(Path()) == DataInfo(SEVERAL, 0, mine.COUNT)


def test_several_inputs_and_targets_stay_together_and_come_each_once(mine: Any) -> None:
    for batch in batches_of("named", mine.COUNT, 2, shape=SEVERAL):
        x, (y, again) = batch
        order = np.argsort(x["left"][:, 0])
        wanted = (mine.X, mine.X[:, 0] / 7, mine.Y, mine.X)
        for got, given in zip((x["left"], x["right"], y, again), wanted, strict=True):
            assert got.dtype == given.dtype
            np.testing.assert_array_equal(got[order], given)


@pytest.mark.parametrize("name", ["named", "in_bfloat16"])
def test_the_gate_gets_several_inputs_and_targets_as_they_are_and_the_next_trial_the_same_from_the_cache(
    mine: Any, tmp_path: Path, name: str
) -> None:
    only = SimpleNamespace(data=f"own_examples:{name}", global_batch_size=4)
    request: Any = SimpleNamespace(training=only, data_dir="", scratch=str(tmp_path))
    source = load_source(f"own_examples:{name}")
    wanted = list(itertools.islice(getattr(mine, name)().batch(4).as_numpy_iterator(), 2))
    for _ in range(2):
        batches = cached_batches(request, "batches", source, SEVERAL, 0, 2, None)
        for (x, (y, again)), (given, targets) in zip(batches, wanted, strict=True):
            for got, one in zip((x["left"], x["right"], y, again), (*given.values(), *targets), strict=True):
                assert got.dtype == one.dtype
                np.testing.assert_array_equal(got, one)


def test_inputs_of_varying_length_get_zeros_behind_them_up_to_what_the_model_takes(mine: Any) -> None:
    wanted = np.array([[*row, *[0] * (5 - len(row))] for row in mine.LONG])
    for x, _ in batches_of("ragged", mine.COUNT, 1, shape={"words": (5,), "row": (3,)}):
        assert x["words"].dtype == np.int64
        np.testing.assert_array_equal(x["words"][np.argsort(x["row"][:, 0])], wanted)
    for name in ("ragged_alone", "of_many_lengths"):
        [(first, _)] = gate_batches(load_source(f"own_examples:{name}"), Path(), (5,), 5, mine.COUNT, 1)
        np.testing.assert_array_equal(first, wanted)
    [(twice, _)] = gate_batches(load_source("own_examples:twice_ragged"), Path(), (2, 4), 5, mine.COUNT, 1)
    assert (twice.shape, twice[5].tolist()) == ((mine.COUNT, 2, 4), [[5, 0, 0, 0], [5, 5, 0, 0]])


def test_sparse_inputs_are_dense_wherever_examples_are_read(tf: Any, mine: Any) -> None:
    source, shape = load_source("own_examples:sparse"), {"row": (3,), "whole": (3,)}
    assert source.info(Path()) == DataInfo(shape, 0, mine.COUNT)
    assert {type(spec) for spec in tf.nest.flatten(source.examples(Path()).element_spec)} == {tf.TensorSpec}
    for x, _ in (*gate_batches(source, Path(), shape, 5, 4, 2), *batches_of("sparse", 4, 2, shape)):
        assert x["row"].dtype == np.int64
        np.testing.assert_array_equal(x["row"], x["whole"])


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("tokens", ["Cache", "Shuffle(12)"]),
        ("counted", ["Cache", "Shuffle(12)"]),
        ("generated", [f"Shuffle({UNCOUNTED})"]),
        ("endless", [f"Shuffle({UNCOUNTED})"]),
    ],
)
@pytest.mark.usefixtures("mine")
def test_only_examples_whose_number_is_known_are_kept_in_memory(name: str, kept: list[str]) -> None:
    stages = stages_of(pipeline(load_source(f"own_examples:{name}"), Path(), (3,), 0, 4, seed=1))
    assert [stage for stage in stages if stage.startswith(("Cache", "Shuffle"))] == kept
    assert len(batches_of(name, 8, 4)) == 4


WEIGHTS_EXPECTED = "expected one number an example, or one for each place of its target"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", r"^data: 'own_examples:nothing': module 'own_examples' has no 'nothing'$"),
        (
            "wants",
            r"^data: 'own_examples:wants' wants \(batch\), expected a function without arguments, .* or one of \(ba",
        ),
        ("raises", r"^data: 'own_examples:raises' raised RuntimeError: no such table; expected a tf\.data\.Dataset"),
        ("arrays", r"^data: 'own_examples:arrays' returned builtins\.tuple, expected a tf\.data\.Dataset of \(input"),
        ("weighted_apart", rf"gives weights of the shape \(3,\), {WEIGHTS_EXPECTED}$"),
        ("weighted_twice", rf"gives weights of the shape \(\), \(\), {WEIGHTS_EXPECTED}$"),
        ("named", r"inputs of the shape \{'left': \(3,\), 'right': \(\)\} and the model takes \(3,\), expected"),
        ("nothing_given", r"gives no inputs, expected a tf\.data\.Dataset of \(input, target\)"),
        ("optional", r"gives inputs in a OptionalSpec, expected dense, ragged or sparse tensors, or dicts and tuples"),
        ("sparse_targets", r"gives targets that are sparse, expected dense ones: tf\.sparse\.to_dense makes them so$"),
        ("twice_ragged", r"gives inputs of the shape \(None, None\) and the model takes \(3,\), expected"),
        ("ragged_targets", r"gives targets that are ragged, and padding would count in the loss: to_tensor\(shape="),
        ("batched", r"gives targets of the shape \(None,\), expected a known one .* batch\(\) is the harness's$"),
        ("words", r"gives inputs of string, expected numbers \(words as integer tokens\)$"),
        ("empty", r"has 0 examples, expected at least 8, for 2 batches of 4 in which none comes twice: give more, or"),
        ("breaks", r"'own_examples:breaks': an example cannot be read: .*RuntimeError: the disk is gone"),
        ("other_shape", r"'own_examples:other_shape': an example cannot be read: .*\(2,\).*\(3,\)"),
        ("lies", r"'own_examples:lies': an example cannot be read: .*different shapes"),
    ],
)
@pytest.mark.usefixtures("mine")
def test_what_cannot_be_read_is_refused_in_one_line_before_a_step_is_taken(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        gate_batches(load_source(f"own_examples:{name}"), Path(), (3,), 5, 4, 2)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("mine")
def test_a_ragged_input_that_is_larger_than_the_model_takes_is_told_with_both_shapes() -> None:
    source, shape = load_source("own_examples:ragged"), {"words": (2,), "row": (3,)}
    with pytest.raises(
        UsageError, match=r"the input words, of which the model takes at most \(2,\) .*, is: 3;"
    ) as caught:
        gate_batches(source, Path(), shape, 5, 4, 2)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("mine")
def test_an_input_of_another_shape_than_the_models_is_refused() -> None:
    source = load_source("own_examples:tokens")
    with pytest.raises(UsageError, match=r"gives inputs of the shape \(3,\) and the model takes \(4,\), expected"):
        gate_batches(source, Path(), (4,), 5, 4, 2)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("once", r"^data: 'own_examples:once' ended before its time, expected .* a generator is to be made anew"),
        ("breaks", r"^data: 'own_examples:breaks': an example cannot be read: .*RuntimeError: the disk is gone"),
        ("lies", r"^data: 'own_examples:lies': an example cannot be read: .*shape"),
    ],
)
@pytest.mark.usefixtures("mine")
def test_what_cannot_be_read_on_is_told_of_the_data_while_steps_are_taken(name: str, message: str) -> None:
    source = load_source(f"own_examples:{name}")
    gate_batches(source, Path(), (3,), 5, 2, 2)  # the first four examples are well
    batches = iter(pipeline(source, Path(), (3,), 5, 2, seed=1))
    with pytest.raises(UsageError, match=message) as caught, source.reading():
        _ = [next(batches) for _ in range(100)]
    assert "\n" not in str(caught.value)


def test_a_batch_whose_examples_all_have_another_shape_than_they_say_is_refused(tf: Any, mine: Any) -> None:
    def short(_: Any, y: Any) -> Any:
        x = tf.numpy_function(lambda: mine.X[0, :2], [], tf.int64)
        x.set_shape((3,))
        return x, y

    mine.all_short = lambda: mine.tokens().map(short)
    with pytest.raises(UsageError, match=r"an example cannot be read: .*\[4,2\] is not compatible .*\[\?,3\];"):
        gate_batches(load_source("own_examples:all_short"), Path(), (3,), 5, 2, 2)


@pytest.mark.usefixtures("mine")
def test_what_a_step_raises_besides_is_not_told_of_the_data(tf: Any) -> None:
    source = load_source("own_examples:tokens")
    with pytest.raises(tf.errors.InvalidArgumentError), source.reading():
        tf.constant([1, 2]) + tf.constant([1, 2, 3])
    with pytest.raises(ZeroDivisionError), source.reading():
        raise ZeroDivisionError
