"""What engines take of a spec: what their trials would refuse is left out, or refused, before anything runs."""

from typing import Any

import pytest

from harness.errors import UsageError
from harness.run.request import asked_matrix
from harness.spec import Matrix, sweep_from
from harness.spec.axes import ENGINE, TABLE, Axes
from harness.spec.engines import each_engine
from harness.spec.inputs import LeftOut
from harness.spec.settings import Settings
from harness.spec.work import TRAINING
from harness.trial.engines import catalogue_of
from tests.axes import asked

OTHERS = ("horovod", "jax", "keras_distribution", "torch")
UNTAKEN = [(engine, key) for engine in OTHERS for key in TABLE if not catalogue_of(engine).takes(TRAINING, key)]


def matrix_from(**keys: Any) -> Matrix:
    return asked_matrix(sweep_from(keys))


def another_value(key: str) -> Any:
    """One that is neither a cell's default nor a spec's."""
    return next(value for value in TABLE[key].tried if value not in (Axes.model_fields[key].default, *TABLE[key].asked))


def refusal(**keys: Any) -> str:
    with pytest.raises(UsageError) as caught:
        matrix_from(**keys)
    return str(caught.value)


def test_what_tensorflow_alone_has_of_an_input_and_of_a_step_no_other_engine_takes() -> None:
    keys = {key for _, key in UNTAKEN}
    assert keys >= {key for key, axis in TABLE.items() if axis.stage} - {"prefetch"}
    assert keys >= {"precision", "xla", "steps_per_execution", "micro_batches", "autoshard"}


@pytest.mark.parametrize(("engine", "key"), UNTAKEN)
def test_what_every_trial_of_an_engine_would_refuse_is_refused_before_any_runs(engine: str, key: str) -> None:
    said = refusal(engine=engine, **{key: another_value(key)})
    assert said.startswith(f"{key}: given ")
    assert f"but engine {engine} takes " in said
    assert said.endswith(" alone; leave it out")


@pytest.mark.parametrize(("engine", "key"), UNTAKEN)
def test_beside_tensorflow_what_an_engine_does_not_take_is_left_out_and_tensorflows_cells_stay(
    engine: str, key: str
) -> None:
    usual, other = Axes.model_fields[key].default, another_value(key)
    beside: dict[str, Any] = {}
    for one, value in TABLE[key].tried_with.items():
        beside |= asked(one, value)
    values = [other] if key == "ps" else [usual, other]  # none is 0, which nobody can ask for
    both = matrix_from(engine=[ENGINE, engine], **{"replicas": 1, **beside, key: values})
    assert {cell.get("engine") for cell in both.cells if cell.get(key) == other} == {ENGINE}
    told = [item for item in both.left_out if engine in f"{item.combination}: {item.reason}"]
    assert told or TABLE[key].takers, "what no strategy of the engine takes is at its default there"


def test_an_engine_of_which_nothing_is_left_says_what_it_does_not_take() -> None:
    both = matrix_from(engine=[ENGINE, "torch"], strategy="none", replicas=1, shards=2, shuffle_buffer=64)
    assert {cell.get("engine") for cell in both.cells} == {ENGINE}
    of_each = [f"{told}: engine 'torch' takes 0 alone" for told in ("shuffle_buffer 64", "shards 2")]
    assert LeftOut("engine torch", "; ".join(of_each)) in both.left_out


def test_a_data_service_is_not_denied_for_the_data_that_another_engine_trains_on() -> None:
    said = refusal(engine="torch", data="digits", cache="none", data_service=1)
    assert "stays on the device" not in said


def test_batches_ahead_are_an_axis_of_every_engine_but_the_one_that_places_them_within_the_step() -> None:
    assert [engine for engine, key in UNTAKEN if key == "prefetch"] == ["keras_distribution"]


@pytest.mark.parametrize("engine", [engine for engine in OTHERS if (engine, "prefetch") not in UNTAKEN])
def test_batches_ahead_are_no_axis_of_data_that_stay_on_the_devices_of_another_engine(engine: str) -> None:
    planned = matrix_from(engine=engine, strategy="none", replicas=1, data=["digits", "synthetic"], prefetch=[2, 4])
    assert {(cell.get("data"), cell.get("prefetch")) for cell in planned.cells} == {
        ("digits", 2),
        ("digits", 4),
        ("synthetic", 2),
    }
    assert [item.combination for item in planned.left_out] == ["synthetic, prefetch 4"]


@pytest.mark.parametrize("engine", ["torch", "horovod"])
def test_collectives_of_other_engines_have_no_ops_and_no_packing(engine: str) -> None:
    of_it = {"work": "collective", "engine": engine, "size": 4}
    assert (
        refusal(**of_it, bytes_per_pack=0) == f"bytes_per_pack: given 0, but engine {engine} takes none; leave it out"
    )
    assert f"cross_device_op: given fp16_compress, but engine {engine} takes auto alone" in refusal(
        **of_it, cross_device_op="fp16_compress"
    )
    both = matrix_from(**{**of_it, "engine": [ENGINE, engine], "bytes_per_pack": 0})
    packings = {(cell.get("engine"), cell.get("packing")) for cell in both.cells}
    assert packings == {(ENGINE, "bytes_per_pack=0"), (engine, "default")}
    assert f"engine '{engine}' takes no bytes_per_pack" in {item.reason for item in both.left_out}


SETTING = {"inter_op_threads": 2, "trace": True, "step": "mine:make", "gpu_memory_mb": 1000, "tpu": "mine"}


@pytest.mark.parametrize(
    ("engine", "key"), [(engine, key) for engine in OTHERS for key in catalogue_of(engine).refuses]
)
def test_a_setting_that_every_trial_of_an_engine_would_refuse_is_refused_before_any_runs(engine: str, key: str) -> None:
    sweep = sweep_from({"engine": engine, key: SETTING[key]})
    assert getattr(sweep, key) != Settings.model_fields[key].default
    with pytest.raises(UsageError, match=f"^{key}: given .*, but "):
        asked_matrix(sweep)


def test_beside_others_an_engine_that_refuses_a_setting_is_left_out_with_the_reason() -> None:
    both = matrix_from(engine=[ENGINE, "horovod", "torch", "jax"], strategy="none", replicas=1, inter_op_threads=2)
    assert {cell.get("engine") for cell in both.cells} == {ENGINE, "horovod"}
    reason = "JAX has one pool of threads; give --intra-op-threads"
    assert LeftOut("engine jax, inter_op_threads 2", reason) in both.left_out
    reason = "PyTorch's steps run one op after another; give --intra-op-threads"
    assert LeftOut("engine torch, inter_op_threads 2", reason) in both.left_out


@pytest.mark.parametrize(("key", "device"), [("gpu_memory_mb", "virtual-gpu"), ("tpu", "tpu")])
def test_a_setting_that_trials_on_one_device_alone_read_is_refused_where_no_engine_has_a_cell_there(
    key: str, device: str
) -> None:
    given = {"strategy": "none", "replicas": 1, key: SETTING[key]}
    value, why = SETTING[key], f"but only trials on {device} read it; leave it out"
    for engines in ([ENGINE], *([engine] for engine in OTHERS), [ENGINE, *OTHERS]):
        assert refusal(**given, engine=engines) == f"{key}: given {value}, {why}"
    assert refusal(**given, engine=["jax", "torch"], device=["virtual-cpu", device]).startswith(f"{key}: given {value}")
    misspelt = refusal(**given, engine=[ENGINE, *OTHERS], device=f"{device}u")
    assert f"did you mean '{device}'?" in misspelt
    both = matrix_from(**given, engine=[ENGINE, "torch"], device=["virtual-cpu", device])
    placed = {(cell.get("engine"), cell.shape.device) for cell in both.cells}
    assert placed == {(ENGINE, "virtual-cpu"), (ENGINE, device), ("torch", "virtual-cpu")}


def test_all_that_an_engine_does_not_take_is_named_at_once() -> None:
    keys = {"engine": "torch", "strategy": "none", "replicas": 1, "cache": "none", "shuffle_buffer": [0, 64]}
    axes = [
        "cache: given none, but engine torch takes auto alone; leave it out",
        "shuffle_buffer: given 0,64, but engine torch takes 0 alone; leave it out",
    ]
    assert refusal(**keys) == "; ".join(axes)
    trace = "trace: given true, but TensorFlow's profiler alone is asked; leave the flag out"
    assert refusal(**keys, trace=True) == "; ".join([trace, *axes])
    packs = "bytes_per_pack: given 4096, but no strategy of this sweep packs by it: data_parallel"
    assert refusal(**keys, bytes_per_pack=4096) == "; ".join([*axes, packs])
    both = matrix_from(**{**keys, "engine": [ENGINE, "torch"], "cache": ["auto", "none"]})
    told = {item.combination: item.reason for item in both.left_out}
    assert told["torch: cache none"] == "engine 'torch' takes auto alone"
    assert told["torch: shuffle_buffer 64"] == "engine 'torch' takes 0 alone"


@pytest.mark.parametrize("kind", ["num_packs", "bytes_per_pack"])
def test_packing_that_no_strategy_of_a_sweep_does_is_refused_and_not_dropped(kind: str) -> None:
    said = refusal(engine="jax", strategy="data_parallel", replicas=2, **{kind: 4096})
    assert said == f"{kind}: given 4096, but no strategy of this sweep packs by it"


def test_packing_that_one_of_two_engines_does_is_told_of_the_other() -> None:
    both = matrix_from(
        engine=[ENGINE, "jax"], strategy=["mirrored", "data_parallel"], replicas=2, bytes_per_pack=[0, 4096]
    )
    assert {cell.get("packing") for cell in both.cells if cell.get("engine") == "jax"} == {"default"}
    told = {item.reason for item in both.left_out}
    assert told == {"strategy 'data_parallel' takes no bytes_per_pack"}


@pytest.mark.parametrize("engine", OTHERS)
def test_ops_of_ones_own_are_offered_by_none_but_engines_that_take_them(engine: str) -> None:
    for op in ("rong", "my.ops:ring"):
        said = refusal(engine=engine, cross_device_op=op)
        assert said.startswith(f"cross_device_op: '{op}' is not one of auto")
        assert "package.module:function" not in said
    assert "package.module:function" in refusal(engine=[ENGINE, engine], cross_device_op="rong")


def test_each_engine_is_still_asked_for_what_it_takes() -> None:
    sweep = sweep_from({"engine": ["tensorflow", "torch"], "prefetch": [0, 2], "intra_op_threads": [1]})
    parts = each_engine(sweep, {name: catalogue_of(name) for name in ("tensorflow", "torch")})
    assert [own.asked("prefetch") for own, _ in parts] == [[0, 2], [0, 2]]
