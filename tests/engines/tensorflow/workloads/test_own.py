"""A user's own model by `package.module:function`."""

import json
import socket
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.engines.tensorflow.tasks import TASKS
from harness.engines.tensorflow.workloads import inputs_for, load_workload, shapes_of
from harness.errors import Unsupported, UsageError
from harness.protocol.channel import Channel
from harness.protocol.messages import Request
from tests.record.examples import cell

MODULE = """
    def make():
        '''A tiny model.

        More about it.'''
        import keras
        return keras.Sequential([keras.Input((4, 4)), keras.layers.Flatten(), keras.layers.Dense(3)])

    def text():
        return "not a model"

    def wants(size):
        return size

    def may_take(size=3):
        return make()

    def sized(units=3, *, tokens: int = 4):
        '''A model of a size.'''
        import keras
        return keras.Sequential([keras.Input((tokens,)), keras.layers.Dense(units)])

    def of_any(**sizes):
        return sized(**sizes)

    def subclassed(built=True):
        import keras

        class Mine(keras.Model):
            def __init__(self):
                super().__init__()
                self.flat, self.dense = keras.layers.Flatten(), keras.layers.Dense(3)

            def call(self, x):
                return self.dense(self.flat(x))

        model = Mine()
        if built:
            model(keras.ops.zeros((1, 4, 4)))
        return model

    def unbuilt():
        return subclassed(built=False)

    def two_inputs():
        import keras
        left, right = keras.Input((4,), name="left"), keras.Input((4,), name="right")
        return keras.Model([left, right], keras.layers.Add()([left, right]))

    def one_in_a_dict():
        import keras
        given = keras.Input((4,), name="only")
        return keras.Model({"only": given}, keras.layers.Dense(3)(given))

    def nested():
        import keras
        a, b = keras.Input((), name="a"), [keras.Input((size,)) for size in (2, 3)]
        return keras.Model({"a": a, "b": b}, keras.layers.Concatenate()(b))

    def in_a_dict():
        import keras

        class Mine(keras.Model):
            def __init__(self):
                super().__init__()
                self.flat, self.dense = keras.layers.Flatten(), keras.layers.Dense(3)

            def call(self, x):
                return self.dense(x["left"] + self.flat(x["right"])[:, :4])

        model = Mine()
        model({"left": keras.ops.zeros((1, 4)), "right": keras.ops.zeros((1, 4, 2))})
        return model

    def two_arguments():
        import keras

        class Mine(keras.Model):
            def __init__(self):
                super().__init__()
                self.dense = keras.layers.Dense(3)

            def build(self, left_shape, right_shape):
                self.dense.build(left_shape)

            def call(self, left, right):
                return self.dense(left + right)

        model = Mine()
        model(keras.ops.zeros((1, 4)), keras.ops.zeros((1, 4)))
        return model

    def two_outputs():
        import keras
        given = keras.Input((4,))
        return keras.Model(given, {"a": keras.layers.Dense(3)(given), "b": keras.layers.Dense(2)(given)})

    def two_given_back():
        import keras

        class Mine(keras.Model):
            def __init__(self):
                super().__init__()
                self.dense = keras.layers.Dense(3)

            def call(self, x):
                return self.dense(x), x

        model = Mine()
        model(keras.ops.zeros((1, 4)))
        return model

    def any_size():
        import keras
        return keras.Sequential([keras.Input((None, None, 3)), keras.layers.GlobalMaxPooling2D()])

    number = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder with a module `mine`, as a user has it."""
    (tmp_path / "mine.py").write_text(textwrap.dedent(MODULE), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    yield tmp_path
    for name in ("mine", "broken", "lacking"):
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("folder")
def test_a_function_in_the_working_folder_is_found_and_described_by_its_docstring() -> None:
    workload = load_workload("mine:make")
    assert (workload.name, workload.summary) == ("mine:make", "A tiny model.")
    assert workload.input_shape is None


@pytest.mark.usefixtures("folder", "tf")
def test_its_model_is_built_as_it_is_whatever_shape_and_classes_are_given() -> None:
    for name in ("mine:make", "mine:may_take"):
        model = load_workload(name).build((), 10)
        assert (model.input_shape, model.output_shape) == ((None, 4, 4), (None, 3))


@pytest.mark.usefixtures("folder", "tf")
@pytest.mark.parametrize("text", ["mine:sized(units=5,tokens=2)", "mine:of_any(tokens=2,units=5)"])
def test_parameters_are_given_to_the_function_by_name(text: str) -> None:
    workload = load_workload(text)
    model = workload.build((), 10)
    assert (workload.name, model.input_shape, model.output_shape) == (text, (None, 2), (None, 5))
    assert load_workload("mine:sized(units=5)").summary == "A model of a size."


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere_at_all:make", r"model: 'nowhere_at_all:make': cannot import 'nowhere_at_all'"),
        ("mine:missing", r"model: 'mine:missing': module 'mine' has no 'missing'"),
        ("mine:number", r"model: 'mine:number' is not a function"),
        ("mine:wants", r"'mine:wants': expected a function without arguments, but it has a required argument: 'size'$"),
        (
            "mine:sized(unit=5)",
            r"^model: given 'mine:sized\(unit=5\)': 'mine:sized' has no parameter 'unit', expected some of units=3, "
            r"tokens=4; did you mean 'units'\?$",
        ),
        ("mine:wants(layers=2)", r"'mine:wants' has no parameter 'layers', expected some of size$"),
        ("mine:make(layers=2)", r"^model: given 'mine:make\(layers=2\)': 'mine:make' takes no parameters$"),
        (":make", r"model: given ':make', expected package\.module:function"),
        ("mine:", r"model: given 'mine:', expected package\.module:function"),
        ("mine.py:make", r"model: 'mine.py:make': cannot import 'mine.py'"),
        ("a/b:make", r"model: given 'a/b:make', expected package\.module:function"),
    ],
)
def test_what_is_wrong_with_a_path_is_said_in_one_line(path: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        load_workload(path)
    assert "\n" not in str(caught.value)


def test_a_syntax_error_names_file_and_line(folder: Path) -> None:
    (folder / "broken.py").write_text("x = 1\ndef make(:\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"model: 'broken:make': .*broken\.py, line 2: invalid syntax"):
        load_workload("broken:make")


def test_a_package_that_the_users_module_lacks_is_named(folder: Path) -> None:
    (folder / "lacking.py").write_text("import no_such_package\n", encoding="utf-8")
    with pytest.raises(UsageError, match="cannot import 'lacking': No module named 'no_such_package'"):
        load_workload("lacking:make")


@pytest.mark.usefixtures("folder", "tf")
def test_what_is_not_a_keras_model_is_refused_when_it_is_built() -> None:
    workload = load_workload("mine:text")
    with pytest.raises(UsageError, match=r"model: 'mine:text' returned builtins\.str, expected a Keras model"):
        workload.build((), 10)


@pytest.mark.usefixtures("folder", "tf")
@pytest.mark.parametrize(("model", "phases"), [("mine:text", ["build"]), ("mine:nothing", [])])
def test_whether_a_name_or_what_it_builds_is_wrong_is_told_when_it_is_tried_beforehand(
    model: str, phases: list[str]
) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        request = Request(
            cell=cell(model=model), seed=1, data_dir="", window_s=0.1, intra_op_threads=1, inter_op_threads=1
        )
        outcome = TASKS["preflight"](request, Channel(theirs))
        theirs.close()
        told = [json.loads(line)["phase"] for line in ours.makefile()]
    assert (outcome.status, told) == ("crashed", phases)


def test_the_example_under_benchmarks_builds_with_its_own_loss_and_optimizer(tf: Any) -> None:
    import keras

    from harness.engines.tensorflow.workloads import loss_of, optimizer_of

    model = load_workload("benchmarks.own_workload:make_model").build((), 10)
    loss = loss_of(model)(tf.constant([3, 1]), model(tf.zeros((2, 32, 32, 3))))
    assert loss.shape == (2,)
    assert isinstance(optimizer_of(model, "sgd"), keras.optimizers.AdamW)


@pytest.mark.usefixtures("folder", "tf")
def test_a_subclassed_model_that_was_called_with_an_example_is_a_model_as_any() -> None:
    model = load_workload("mine:subclassed").build((), 10)
    assert shapes_of(model) == ((4, 4), (3,))


@pytest.mark.usefixtures("folder", "tf")
def test_a_model_that_no_batch_can_be_made_for_is_bad_usage() -> None:
    with pytest.raises(UsageError, match="is not built"):
        load_workload("mine:unbuilt").build((), 10)


@pytest.mark.usefixtures("folder", "tf")
def test_sizes_that_a_model_leaves_open_are_those_of_the_data_if_these_tell_them() -> None:
    model = load_workload("mine:any_size").build((), 10)
    taken, given = shapes_of(model)
    assert (taken, given) == ((None, None, 3), (3,))
    assert inputs_for(model, taken, (8, 6, 1)) == (8, 6, 3)
    for unknown in ((None, None, 3), (8, 6), {"x": (8, 6, 3)}):
        with pytest.raises(
            UsageError, match=r"takes inputs of shape \(None, None, None, 3\), and the data are of shape"
        ):
            inputs_for(model, taken, unknown)


@pytest.mark.usefixtures("folder", "tf")
@pytest.mark.parametrize(
    ("name", "inputs", "outputs"),
    [
        ("two_inputs", {"0": (4,), "1": (4,)}, (4,)),
        ("two_outputs", (4,), {"a": (3,), "b": (2,)}),
        ("two_given_back", (4,), {"0": (3,), "1": (4,)}),
        ("in_a_dict", {"left": (4,), "right": (4, 2)}, (3,)),
        ("nested", {"a": (), "b/0": (2,), "b/1": (3,)}, (5,)),
    ],
)
def test_of_several_inputs_or_outputs_the_shape_of_each_is_known_by_its_place(
    name: str, inputs: Any, outputs: Any
) -> None:
    assert shapes_of(load_workload(f"mine:{name}").build((), 10)) == (inputs, outputs)


@pytest.mark.usefixtures("folder", "tf")
def test_a_model_that_is_called_with_two_arguments_is_built_and_its_trials_are_unsupported() -> None:
    model = load_workload("mine:two_arguments").build((), 10)
    with pytest.raises(Unsupported, match=r"is built for 2 arguments \(.*\), and a trial calls it with one: take"):
        shapes_of(model)


@pytest.mark.usefixtures("folder", "tf")
def test_data_may_name_the_inputs_of_a_list_and_give_the_only_one_of_a_dict_by_itself() -> None:
    two, one = (load_workload(f"mine:{name}").build((), 10) for name in ("two_inputs", "one_in_a_dict"))
    listed, alone = shapes_of(two)[0], shapes_of(one)[0]
    assert inputs_for(two, listed, {"left": (4,), "right": (4,)}) == {"left": (4,), "right": (4,)}
    assert inputs_for(two, listed, {"left": (4,), "wrong": (4,)}) == listed
    assert (inputs_for(one, alone, (4,)), inputs_for(one, alone, {"only": (4,)})) == ((4,), {"only": (4,)})
