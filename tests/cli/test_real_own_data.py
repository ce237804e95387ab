"""Sweeps with data of the user's own, by real TensorFlow: what is wrong with them, and batches that they make."""

import re
import textwrap
from pathlib import Path

import pytest

from harness.record import TrialRecord
from tests.cli.owned import ALIKE, ASKED, SPREAD, grouped
from tests.cli.real import only_run, run

pytestmark = pytest.mark.slow

MODULE = """
    import itertools
    import os
    import time

    import keras
    import numpy as np
    import tensorflow as tf

    X, Y = np.arange(80, dtype=np.int32).reshape(40, 2) % 9, np.arange(40, dtype=np.int32) % 3

    def model():
        return keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])

    def frozen():
        built = model()
        built.trainable = False
        return built

    def regression():
        built = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        built.compile(loss="mse")
        return built

    def made_of(x, y):
        return tf.data.Dataset.from_tensor_slices((x, y))

    def classes():
        return made_of(X, Y)

    def wide():
        return made_of(np.tile(X, 2), Y)

    def five_classes():
        return made_of(X, Y + 2)

    def targets():
        return made_of(X, Y / 2)

    def weighed():
        return tf.data.Dataset.from_tensor_slices((X, X / 2, X / 8))

    def raises():
        return made_of(X, Y[:-1])

    def nothing():
        return None

    def inputs_alone():
        return tf.data.Dataset.from_tensor_slices(X)

    def breaks():
        def made():
            yield from zip(X[:32], Y)
            raise OSError("the table is gone")
        return tf.data.Dataset.from_generator(made, output_signature=classes().element_spec)

    def ends():
        left = iter(list(zip(X, Y)))
        return tf.data.Dataset.from_generator(lambda: left, output_signature=classes().element_spec)

    def few():
        return classes().take(15)

    def batches(size, shard):
        index, count = shard
        def read(rows):
            with open(f"rows-{index}-{count}-{size}-{os.getpid()}", "a") as told:
                told.write("".join(f"{row} " for row in rows))
            return X[rows], Y[rows]
        def made(rows):
            x, y = tf.numpy_function(read, [rows], [tf.int32, tf.int32])
            return tf.ensure_shape(x, (size, 2)), tf.ensure_shape(y, (size,))
        return tf.data.Dataset.range(len(X)).shard(count, index).batch(size, drop_remainder=True).map(made)

    def batches_of_whole(size, shard):
        return classes().batch(size, drop_remainder=True)

    def changed(size, shard, change):
        number = itertools.count(1)
        def read(x):
            return change(next(number), x)
        def made(x, y):
            return tf.ensure_shape(tf.numpy_function(read, [x], tf.int32), None), y
        def claimed(x, y):
            x.set_shape((size, 2))
            return x, y
        return batches_of_whole(size, shard).map(made).map(claimed)

    def tenth_is_narrow(size, shard):
        return changed(size, shard, lambda number, x: x[:, :1] if number == 10 else x)

    def tenth_hangs(size, shard):
        return changed(size, shard, lambda number, x: time.sleep(3600) if number == 10 else x)

    def batches_end(size, shard):
        left = iter([(X[:size], Y[:size]), (X[-size:], Y[-size:])])
        return tf.data.Dataset.from_generator(lambda: left, output_signature=batches_of_whole(size, shard).element_spec)

    def one_batch(size, shard):
        return batches_of_whole(size, shard).take(1)

    def never_more_than_four(size, shard):
        return batches_of_whole(min(size, 4), shard)

    def batches_raise(size, shard):
        raise KeyError(shard)

    def with_the_rest(size, shard):
        return classes().batch(size)

    def wants_a_seed(size, shard, seed):
        return batches_of_whole(size, shard)
"""


def with_table(folder: Path) -> Path:
    """A folder with the module `own_table`."""
    (folder / "own_table.py").write_text(textwrap.dedent(MODULE), encoding="utf-8")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder with it."""
    return with_table(tmp_path)


def swept(folder: Path, data: str, model: str = "own_table:model") -> "tuple[int, str]":
    """The exit code of a sweep of one cell, and what it said on standard error."""
    asked = ["--strategy=none", "--replicas=1", "--optimizer=sgd", f"--model={model}", f"--data=own_table:{data}"]
    done = run("sweep", *ASKED, *asked, folder=folder)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ("no_such", "module 'own_table' has no 'no_such'"),
        ("raises", "data: 'own_table:raises' raised "),
        ("nothing", "data: 'own_table:nothing' returned builtins.NoneType, expected a tf.data.Dataset"),
        (
            "inputs_alone",
            "'own_table:inputs_alone' gives examples that are no pairs, expected (input, target): only a ",
        ),
        ("wide", "data: 'own_table:wide' gives inputs of the shape (4,) and the model takes (2,)"),
        ("targets", "has no loss of its own, and a target is float64 of the shape ()"),
        ("batches_raise", "data: 'own_table:batches_raise' raised KeyError: (0, 1); expected a tf.data.Dataset of"),
        ("with_the_rest", "(None, 2), expected 8 in front, the batch size that it was called with: batch(batch_size, "),
        ("never_more_than_four", "gives inputs of the shape (4, 2), expected 8 in front, the batch size that it was"),
        ("wants_a_seed", "wants (size, shard, seed), expected a function without arguments, which gives examples, or"),
    ],
)
def test_data_that_no_step_could_be_taken_on_are_bad_usage_and_nothing_is_written(
    folder: Path, data: str, says: str
) -> None:
    code, said = swept(folder, data)
    assert (code, said.count("\n")) == (2, 1)
    assert says in said
    assert not (folder / "results").exists()


def test_weights_of_places_that_the_loss_has_not_are_bad_usage_and_nothing_is_written(folder: Path) -> None:
    code, said = swept(folder, "weighed", model="own_table:regression")
    assert (code, said.count("\n")) == (2, 1)
    assert "an example has weights of the shape (2,) and a loss of the shape (), expected one number an example" in said
    assert not (folder / "results").exists()


@pytest.mark.parametrize(
    "verb", [["sweep", "--strategy=none,mirrored"], ["explain", "--strategy=mirrored"], ["ab", "--b=seed=2"]]
)
def test_a_model_of_which_nothing_is_trained_is_bad_usage_in_one_line(folder: Path, verb: list[str]) -> None:
    done = run(*verb, "--model=own_table:frozen", "--data=own_table:classes", folder=folder)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "model: 'own_table:frozen' has no weight that is trained, expected at least one" in done.stderr
    assert not (folder / "results").exists()


NESTED = "tests.engines.tensorflow.own_nested"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (
            f"{NESTED}:without_item",
            r"gives inputs of the shape \{'features': \(8,\), 'user': \(\)\} and the model takes \{",
        ),
        (f"{NESTED}:in_tuples", r"gives inputs of the shape \{'0': \(\), '1': \(\), '2': \(8,\)\} and the model takes"),
        (f"{NESTED}:without_liked", "gives 'liked', 'rating', and a target is 'rating', expected one for each output"),
        ("own_table:classes", r"gives inputs of the shape \(2,\) and the model takes \{"),
        (
            "digits",
            r"^harness: data: 'digits' gives one input and one target, and model .* has 3 inputs and 2 outputs; give",
        ),
    ],
)
def test_data_of_another_structure_than_the_models_are_bad_usage_in_one_line(
    folder: Path, data: str, says: str
) -> None:
    asked = ["--strategy=none", "--replicas=1", f"--model={NESTED}:model", f"--data={data}"]
    done = run("sweep", *ASKED, *asked, folder=folder)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert re.search(says, done.stderr), done.stderr
    assert not (folder / "results").exists()


def test_data_of_ones_own_with_a_model_of_the_harness_is_bad_usage(folder: Path) -> None:
    code, said = swept(folder, "classes", model="mlp")
    assert (code, said.count("\n")) == (2, 1)
    assert "mlp on own_table:classes: data of your own go with a model of your own" in said


ENDS, BREAKS, AT_ONCE = ("ends", "batches_end"), ("breaks", "tenth_is_narrow"), ("few", "one_batch", "five_classes")
"""Data that end while they are trained on, or fail, and those of which the gate knows before anybody trains."""


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[TrialRecord]]:
    """Trials that data have stopped, by the data: alone and on two replicas, by a custom loop and, where it may come to
    that, by `fit`, which takes the end of data for the end of an epoch."""
    folder = with_table(tmp_path_factory.mktemp("failed"))
    at_once = ",".join(f"own_table:{name}" for name in AT_ONCE)
    left_out = f"strategy=mirrored replicas=1; data={at_once} loop=fit"
    data = ",".join(f"own_table:{name}" for name in (*ENDS, *BREAKS, *AT_ONCE))
    asked = ["--strategy=none,mirrored", "--replicas=1,2", "--optimizer=sgd", "--loop=custom,fit"]
    asked += ["--model=own_table:model", f"--data={data}", f"--exclude={left_out}"]
    done = run("sweep", *ASKED, *asked, folder=folder)
    assert done.returncode == 1, done.stderr
    return grouped(folder, "data")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ("breaks", r"^data: 'own_table:breaks': an example cannot be read: .*the table is gone"),
        ("ends", r"^data: 'own_table:ends' ended before its time, expected"),
        ("few", r"^data: 'own_table:few' has 15 examples, expected at least (16|32), for 2 batches of"),
        ("tenth_is_narrow", r"^data: 'own_table:tenth_is_narrow': an example cannot be read: .*\[\d+,1\] is not"),
        ("batches_end", r"^data: 'own_table:batches_end' ended before its time, expected a batch of each shard"),
        ("one_batch", r"^data: 'own_table:one_batch' begins with 1 distinct of the 2 batches of (8|16) that the gate"),
        ("five_classes", r"has 3 outputs, and targets are from 2 to 4, expected classes from 0 to 2$"),
    ],
)
def test_what_shows_only_in_a_trial_is_a_record_with_its_reason(
    failed: dict[str, list[TrialRecord]], data: str, says: str
) -> None:
    loops = ("custom",) if data in AT_ONCE else ("custom", "fit")
    assert {(trial.cell.get("strategy"), trial.cell.get("loop")) for trial in failed[f"own_table:{data}"]} == {
        (strategy, loop) for strategy in ("none", "mirrored") for loop in loops
    }
    for trial in failed[f"own_table:{data}"]:
        assert trial.status == "crashed"
        assert re.search(says, trial.reason or ""), trial.reason


def test_numbers_and_a_loss_of_the_models_own_make_a_regression(folder: Path) -> None:
    code, said = swept(folder, "targets", model="own_table:regression")
    assert code == 0, said
    [trial] = {trial.cell_id: trial for trial in only_run(folder / "results").trials}.values()
    assert trial.status == "ok"


BATCHES = ["--model=own_table:model", "--data=own_table:batches"]


@pytest.fixture(scope="module")
def batched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a sweep over batches that a function makes: alone and on two replicas in either loop, and on two
    workers, these also with each axis that such a function decides."""
    folder = with_table(tmp_path_factory.mktemp("batches"))
    left_out = (
        f"{ALIKE}; strategy=multi_worker_mirrored replicas=2; strategy=none,mirrored cache=none; "
        "strategy=none,mirrored shuffle_buffer=8; cache=none shuffle_buffer=8; cache=none autoshard=data; "
        "shuffle_buffer=8 autoshard=data"
    )
    decided = ["--cache=auto,none", "--shuffle-buffer=0,8", "--autoshard=off,data"]
    asked = [*SPREAD, "--replicas=1,2", *decided, f"--exclude={left_out}"]
    assert run("sweep", *ASKED, *BATCHES, *asked, folder=folder).returncode == 0
    return folder


def of_workers(folder: Path, workers: int) -> list[TrialRecord]:
    return [trial for trial in only_run(folder / "results").trials if trial.cell.get("workers") == workers]


def test_batches_of_a_function_are_proved_alone_and_on_two_replicas(batched: Path) -> None:
    trials = [trial for trial in of_workers(batched, 1) if trial.status != "unsupported"]
    assert {(trial.cell.get("replicas"), trial.cell.get("loop")) for trial in trials} == {
        (replicas, loop) for replicas in (1, 2) for loop in ("custom", "fit")
    }
    assert [(trial.status, trial.reason, trial.checks.complete) for trial in trials] == [("ok", None, True)] * len(
        trials
    )
    for trial in trials:
        stages = [stage.partition("(")[0] for stage in trial.executed.input]
        assert stages[:7] == ["Range", "Shard", "Batch", "Map", "Map", "Repeat", "Prefetch"]
    assert {(index, count) for index, count, *_ in rows_read(batched) if count != "2"} == {("0", "1")}


def test_each_of_two_workers_is_timed_on_the_shard_that_is_its_own(batched: Path) -> None:
    [trial] = [trial for trial in of_workers(batched, 2) if trial.status != "unsupported"]
    assert (trial.status, trial.reason, trial.checks.complete) == ("ok", None, True)
    shared = {key: rows for key, rows in rows_read(batched).items() if key[1] == "2"}
    assert {key[:3] for key in shared} == {("0", "2", "8"), ("1", "2", "8")}
    assert len({process for *_, process in shared}) == 2, "nobody else has read of a shard of two"
    for (index, *_), rows in shared.items():
        assert {row % 2 for row in rows} == {int(index)}
        assert len(rows) > 8 * len(trial.windows.seconds)  # of one step at least each


def rows_read(folder: Path) -> dict[tuple[str, ...], list[int]]:
    """The rows that were read, by the shard's index and count, the batch size, and the process."""
    files = folder.glob("rows-*")
    return {tuple(file.name.split("-")[1:]): [int(row) for row in file.read_text().split()] for file in files}


def test_a_function_whose_tenth_batch_never_comes_is_a_timeout_with_its_phase(folder: Path) -> None:
    asked = [*(flag for flag in ASKED if not flag.startswith("--timeout")), "--timeout=20", "--strategy=none"]
    hanging = ["--replicas=1", "--model=own_table:model", "--data=own_table:tenth_hangs"]
    run("sweep", *asked, *hanging, folder=folder)
    trials = only_run(folder / "results").trials
    assert trials
    for trial in trials:
        assert trial.status == "timeout"
        assert trial.phase in ("warmup", "windows")
        assert re.search(
            r"^no sign of life within 20 s during .*: "
            r"the data function 'own_table:tenth_hangs' does not come back from read \(own_table\.py:\d+\)$",
            trial.reason or "",
        )


@pytest.mark.parametrize(("key", "value"), [("cache", "none"), ("shuffle_buffer", 8), ("autoshard", "data")])
def test_what_a_function_that_makes_batches_decides_is_unsupported_with_the_remedy(
    batched: Path, key: str, value: object
) -> None:
    [trial] = [trial for trial in of_workers(batched, 2) if trial.cell.get(key) == value]
    assert trial.status == "unsupported"
    assert re.match(rf"{key}: 'own_table:batches' makes its batches itself: .*, and leave {key} \w+ out$", trial.reason)
