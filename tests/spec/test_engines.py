"""A sweep of several engines: each is asked for what it has, and all cells are in one matrix."""

import re
from dataclasses import replace
from typing import Any

import pytest

from harness.errors import UsageError
from harness.spec import (
    Catalogue,
    CrossDeviceOpTraits,
    DeviceTraits,
    Matrix,
    StrategyTraits,
    Sweep,
    expand,
    sweep_from,
)
from harness.spec.axes import TABLE, Axes
from harness.spec.engines import each_engine, lacking, matrix_of, merged
from harness.spec.exclusions import must_have_fitted
from harness.spec.inputs import LeftOut

CATALOGUE = Catalogue(
    devices={"virtual-cpu": DeviceTraits("virtual-cpu", "")},
    strategies={
        "none": StrategyTraits("none", "", max_replicas=1),
        "mirrored": StrategyTraits("mirrored", "", takes_cross_device_op=True),
    },
    cross_device_ops={"auto": CrossDeviceOpTraits("auto", "")},
    models={"mnist_cnn": "", "mlp": ""},
    data={"digits": "", "synthetic": ""},
    optimizers={"adam": "", "sgd": ""},
    loops={"custom": "", "fit": ""},
)
OTHER = replace(
    CATALOGUE,
    strategies={name: StrategyTraits(name, "") for name in ("none", "data_parallel")},
    loops={"ddp": "", "all_reduce": ""},
)


def of_both(**axes: list[Any]) -> Matrix:
    sweep = Sweep(**{"engine": ["tensorflow", "other"], "replicas": [2], **axes})
    return merged([expand(*one) for one in each_engine(sweep, {"tensorflow": CATALOGUE, "other": OTHER})])


def test_of_several_engines_each_is_swept_over_the_names_that_it_has() -> None:
    cells = of_both(strategy=["none", "mirrored", "data_parallel"], loop=["custom", "ddp"]).cells
    assert {(cell.engine, cell.strategy, cell.loop) for cell in cells} == {
        ("tensorflow", "none", "custom"),
        ("tensorflow", "mirrored", "custom"),
        ("other", "none", "ddp"),
        ("other", "data_parallel", "ddp"),
    }


def test_an_engine_that_has_none_of_the_loops_asked_for_is_swept_over_its_own() -> None:
    cells = of_both(strategy=["none", "mirrored"], loop=["fit"]).cells
    assert {cell.loop for cell in cells if cell.engine == "other"} == {"ddp"}
    assert {cell.loop for cell in cells if cell.engine == "tensorflow"} == {"fit"}


def test_a_model_of_ones_own_each_engine_is_asked_for() -> None:
    sweep = Sweep(engine=["tensorflow", "other"], model=["mine:make", "mlp"])
    for own, _ in each_engine(sweep, {"tensorflow": CATALOGUE, "other": replace(OTHER, models={"linear": ""})}):
        assert "mine:make" in own.asked("model")


def test_every_cell_has_the_base_case_of_its_own_engine() -> None:
    matrix = of_both(strategy=["mirrored", "data_parallel"])
    ids = {cell.cell_id for cell in matrix.cells}
    for cell in matrix.cells:
        assert cell.base.engine == cell.engine
        assert cell.base.cell_id in ids
    assert {cell.engine for cell in matrix.cells if cell.cell_id in matrix.added_base} == {"tensorflow", "other"}


def test_a_name_that_none_of_the_engines_has_is_refused_with_the_names_of_all() -> None:
    with pytest.raises(UsageError, match=r"'mirrord' is not one of .*data_parallel.*; did you mean 'mirrored'"):
        of_both(strategy=["mirrord"])


@pytest.mark.parametrize("other", [{"work": "pipeline"}, {"step": "mine:make"}])
def test_only_trainings_and_collectives_are_measured_by_several_engines(other: dict[str, Any]) -> None:
    sweep = Sweep(engine=["tensorflow", "other"], **other)
    with pytest.raises(UsageError, match="engine: given tensorflow, other, expected one"):
        each_engine(sweep, {"tensorflow": CATALOGUE, "other": OTHER})


CARDS = replace(CATALOGUE, devices={**CATALOGUE.devices, "gpu": DeviceTraits("gpu", "")})
MANY = replace(
    OTHER,
    strategies={**OTHER.strategies, "multi_process": StrategyTraits("multi_process", "", multi_worker=True)},
)
WORKERS = replace(CATALOGUE, strategies={"none": StrategyTraits("none", "", multi_worker=True)})


def of_each(catalogues: dict[str, Catalogue], **axes: Any) -> Matrix:
    sweep = sweep_from({"engine": [*catalogues], **axes})
    return matrix_of(each_engine(sweep, catalogues), lacking(sweep, catalogues))


@pytest.mark.parametrize("devices", [["gpu"], ["virtual-cpu", "gpu"]])
def test_an_engine_without_a_device_that_was_asked_for_is_left_out_there_and_runs_on_no_other(
    devices: list[str],
) -> None:
    matrix = of_each({"tensorflow": CARDS, "other": OTHER}, device=devices)
    assert LeftOut("other on gpu", "engine 'other' runs on virtual-cpu only") in matrix.left_out
    placed = {(cell.engine, cell.shape.device) for cell in matrix.cells}
    assert placed == {("tensorflow", device) for device in devices} | {("other", d) for d in devices if d != "gpu"}


NARROW = replace(OTHER, models={"mlp": ""}, data={"digits": ""}, optimizers={"sgd": ""})


def test_an_engine_that_takes_a_name_without_its_parameters_or_nothing_of_ones_own_is_left_out_with_the_reason() -> (
    None
):
    takes = replace(CATALOGUE, optimizer_text=lambda text: text)
    both = {"tensorflow": takes, "other": replace(NARROW, closed=frozenset({"model", "data"}))}
    asked = {"replicas": [1], "strategy": ["none"], "data": ["digits"], "model": ["mlp"]}
    for key, value, words in (
        (
            "optimizer",
            "sgd(learning_rate=0.1)",
            "optimizer: given 'sgd(learning_rate=0.1)', but 'sgd' takes no parameters",
        ),
        ("model", "mine:make", "model 'mine:make' is not one of mlp"),
        ("data", "tfds:mnist", "data 'tfds:mnist' is not one of digits"),
    ):
        matrix = of_each(both, **{"optimizer": ["sgd"], **asked, key: [value]})
        assert matrix.left_out == (LeftOut(f"engine other, {value}", words),)
        assert {(cell.engine, cell.get(key)) for cell in matrix.cells} == {("tensorflow", value)}


@pytest.mark.parametrize(
    ("key", "lacked", "has"),
    [("model", "mnist_cnn", "mlp"), ("data", "synthetic", "digits"), ("optimizer", "adam", "sgd")],
)
def test_no_engine_trains_another_model_data_or_optimizer_than_was_asked_for(key: str, lacked: str, has: str) -> None:
    both = {"tensorflow": CATALOGUE, "other": NARROW}
    reason = LeftOut(f"engine other, {lacked}", f"{key} '{lacked}' is not one of {has}")
    alone = {"model": ["mlp"], "data": ["digits"], "optimizer": ["sgd"], "replicas": [1], "strategy": ["none"]}
    matrix = of_each(both, **{**alone, key: [lacked]})
    assert matrix.left_out == (reason,)
    assert {(cell.engine, cell.get(key)) for cell in matrix.cells} == {("tensorflow", lacked)}
    matrix = of_each(both, **{**alone, key: [lacked, has]})
    assert matrix.left_out == (reason,)
    assert {(cell.engine, cell.get(key)) for cell in matrix.cells} == {
        ("tensorflow", lacked),
        ("tensorflow", has),
        ("other", has),
    }


def test_what_some_engines_leave_out_is_told_with_their_names_for_others_may_run_it() -> None:
    three = {"tensorflow": CATALOGUE, "other": OTHER, "workers": replace(MANY, devices=CATALOGUE.devices)}
    asked = ["none", "mirrored", "data_parallel", "multi_process"]
    matrix = of_each(three, strategy=asked, workers=[1, 2], replicas=[1], exclude="strategy=mirrored workers=1")
    assert set(matrix.left_out) == {
        LeftOut("none, 2 workers", "strategy 'none' runs in one process"),
        LeftOut("tensorflow: mirrored, 2 workers", "strategy 'mirrored' runs in one process"),
        LeftOut("other, workers: data_parallel, 2 workers", "strategy 'data_parallel' runs in one process"),
        LeftOut("strategy=mirrored workers=1", "excluded"),
    }
    assert ("workers", 2) in {(cell.engine, cell.shape.workers) for cell in matrix.cells}


def test_where_each_engine_is_left_out_it_is_bad_usage_that_names_them() -> None:
    with pytest.raises(UsageError, match=r"device: 'gpu' is not one of virtual-cpu \(engine tensorflow, other\)"):
        of_each({"tensorflow": CATALOGUE, "other": OTHER}, device=["gpu"])
    with pytest.raises(UsageError, match=r"^no combination .*other on gpu: .*engine tensorflow: none, 2 workers"):
        of_each({"tensorflow": CARDS, "other": OTHER}, device=["gpu"], strategy=["none"], workers=[2])


def test_an_engine_of_which_nothing_is_left_is_left_out_with_its_reason_and_the_rest_runs() -> None:
    matrix = of_each({"tensorflow": WORKERS, "other": MANY}, workers=[2], replicas=[1], strategy=["none"])
    assert {cell.engine for cell in matrix.cells} == {"tensorflow"}
    reason = "none, 2 workers: strategy 'none' runs in one process; several workers: --strategy multi_process"
    assert LeftOut("engine other", reason) in matrix.left_out


def test_an_excluded_combination_of_an_engine_of_which_nothing_is_left_was_heeded() -> None:
    matrix = of_each({"tensorflow": CATALOGUE, "other": OTHER}, exclude="engine=other")
    must_have_fitted("engine=other", matrix.left_out)
    assert {cell.engine for cell in matrix.cells} == {"tensorflow"}


def test_a_name_that_another_engine_than_the_default_lacks_is_refused_with_the_name_of_the_engine() -> None:
    with pytest.raises(UsageError, match=r"loop: 'fit' is not one of ddp, all_reduce \(engine other\)"):
        expand(Sweep(engine=["other"], loop=["fit"]), OTHER)
    with pytest.raises(UsageError, match=r"loop: 'ddp' is not one of custom, fit$"):
        expand(Sweep(loop=["ddp"]), CATALOGUE)


KINDS = (
    StrategyTraits("plain", ""),
    StrategyTraits("processes", "", multi_worker=True),
    StrategyTraits("served", "", multi_worker=True, parameter_servers=True),
    StrategyTraits("meshed", "", meshes=True),
    StrategyTraits("cycling", "", multi_worker=True, cycles=True),
)
"""Strategies of which each axis has some that take it, and some that do not."""


def having(*kinds: StrategyTraits, **changes: Any) -> Catalogue:
    """With these strategies, beside the one that all are compared with."""
    return replace(
        CATALOGUE, strategies={kind.name: kind for kind in (CATALOGUE.strategies["none"], *kinds)}, **changes
    )


@pytest.mark.parametrize("key", [key for key, axis in TABLE.items() if axis.takers])
def test_an_axis_that_only_one_engines_strategies_take_is_swept_there_and_refused_where_none_takes_it(key: str) -> None:
    axis = TABLE[key]
    assert axis.takers is not None
    able = [kind for kind in KINDS if axis.takers.are(kind)]
    unable = [kind for kind in KINDS if kind not in able]
    beside = {other: [value] for other, value in axis.tried_with.items() if other not in ("engine", "strategy")}
    asked = {"replicas": [1], **beside, key: [axis.tried[1]], "strategy": [kind.name for kind in KINDS]}
    matrix = of_each({"tensorflow": having(*unable), "other": having(*able)}, **asked)
    cells = [cell for cell in matrix.cells if cell.cell_id not in matrix.added_base]
    assert {cell.get(key) for cell in cells if cell.get("engine") == "other"} == {axis.tried[1]}
    elsewhere = {cell.get(key) for cell in cells if cell.get("engine") == "tensorflow"}
    assert elsewhere == ({Axes.model_fields[key].default} if axis.takers.dropped else set())
    assert axis.takers.dropped or "engine tensorflow" in {item.combination for item in matrix.left_out}
    neither = {"tensorflow": having(*unable), "other": having(*unable)}
    with pytest.raises(UsageError, match=f"^{key}: given .*no strategy of this sweep {re.escape(axis.takers.words)}"):
        of_each(neither, **{key: [axis.tried[1]]}, strategy=[kind.name for kind in unable])


def test_the_engine_whose_strategies_take_an_axis_is_left_out_for_what_it_lacks_and_not_denied() -> None:
    able = having(KINDS[-1], models={"mlp": ""})
    asked = {"strategy": ["plain", "cycling"], "replicas": [1], "cycle_time": [5], "model": ["mnist_cnn"]}
    matrix = of_each({"tensorflow": having(KINDS[0]), "other": able}, **asked)
    assert LeftOut("engine other, mnist_cnn", "model 'mnist_cnn' is not one of mlp") in matrix.left_out
    assert {(cell.get("engine"), cell.get("cycle_time")) for cell in matrix.cells} == {("tensorflow", 0)}


def sending(catalogue: Catalogue, **able: StrategyTraits) -> Catalogue:
    """The same with collectives of these strategies."""
    return replace(catalogue, strategies=catalogue.strategies | able)


DEVICES = StrategyTraits("mirrored", "", collectives=True)
PROCESSES = StrategyTraits("many", "", collectives=True, multi_worker=True)
ONE_EACH = StrategyTraits("data_parallel", "", collectives=True, multi_worker=True, replica_a_process=True)
SENDING = {
    "tensorflow": sending(CATALOGUE, mirrored=DEVICES, many=PROCESSES),
    "other": sending(OTHER, data_parallel=ONE_EACH),
}


def sent_by_both(**keys: Any) -> Matrix:
    """Collectives of both engines."""
    sweep = sweep_from({"work": "collective", "engine": [*SENDING], **keys})
    return merged([expand(*one) for one in each_engine(sweep, SENDING)])


def between(matrix: Matrix) -> set[tuple[Any, ...]]:
    placed = ("engine", "strategy", "workers", "replicas")
    return {tuple(cell.get(key) for key in placed) for cell in matrix.cells}


def test_collectives_are_between_the_two_replicas_that_each_engine_has_by_itself() -> None:
    assert between(sent_by_both()) == {("tensorflow", "mirrored", 1, 2), ("other", "data_parallel", 2, 1)}


def test_between_processes_that_are_asked_for_each_takes_its_strategy_of_several() -> None:
    assert between(sent_by_both(workers=[3])) == {("tensorflow", "many", 3, 1), ("other", "data_parallel", 3, 1)}


def test_beside_one_worker_which_is_left_out_several_choose_the_strategy_between_them() -> None:
    matrix = sent_by_both(workers=[1, 2])
    assert between(matrix) == {("tensorflow", "many", 2, 1), ("other", "data_parallel", 2, 1)}
    assert {item.reason for item in matrix.left_out} == {"one replica has nobody to send to"}


def test_a_strategy_that_sends_nothing_between_the_workers_asked_for_is_refused_with_those_that_do() -> None:
    keys = {"work": "collective", "engine": ["tensorflow"], "workers": [1, 2], "strategy": ["mirrored"]}
    with pytest.raises(UsageError, match=r"; several workers: --strategy many$"):
        matrix_of([(sweep_from(keys), SENDING["tensorflow"])])


def test_an_engine_without_the_strategy_that_is_asked_for_takes_its_own() -> None:
    found = between(sent_by_both(strategy=["mirrored"]))
    assert found == {("tensorflow", "mirrored", 1, 2), ("other", "data_parallel", 2, 1)}


def test_collectives_of_several_engines_stand_by_collective_and_size() -> None:
    cells = sent_by_both(collective=["all_reduce", "broadcast"], size=[4, 2**20]).cells
    told = [(cell.subject, cell.get("size")) for cell in cells]
    assert told == sorted(told)
    assert len(told) == 8


def test_an_engine_without_collectives_is_refused_in_one_line() -> None:
    with pytest.raises(UsageError, match="engine: 'plain' has no collectives by themselves; leave it out"):
        expand(sweep_from({"work": "collective", "engine": ["plain"]}), CATALOGUE)


def test_beside_others_an_engine_without_collectives_is_left_out_with_its_reason() -> None:
    matrix = of_each({**SENDING, "plain": OTHER}, work="collective")
    assert {cell.engine for cell in matrix.cells} == {*SENDING}
    assert LeftOut("engine plain", "it has no collectives by themselves") in matrix.left_out


def test_where_none_of_several_engines_has_collectives_it_is_bad_usage_that_names_them() -> None:
    of_both = "no combination .*engine plain: it has no collectives by themselves; engine other: it has no collectives"
    with pytest.raises(UsageError, match=of_both):
        of_each({"plain": CATALOGUE, "other": OTHER}, work="collective")


def test_gradients_of_a_model_that_only_tensorflow_sends_are_refused_in_one_line() -> None:
    with pytest.raises(UsageError, match="model: the gradients of 'mlp' are sent by TensorFlow alone"):
        expand(sweep_from({"work": "collective", "engine": ["other"], "model": ["mlp"]}), SENDING["other"])


def test_beside_an_engine_that_sends_gradients_the_others_send_buffers_alone_or_are_left_out_where_none_are() -> None:
    sends = replace(SENDING["tensorflow"], gradient_bytes=lambda *_: 8)
    asked: dict[str, Any] = {"work": "collective", "model": ["mlp"]}
    both = of_each({**SENDING, "tensorflow": sends}, **asked, size=[4])
    sent = {(cell.engine, cell.get("gradients"), cell.get("size")) for cell in both.cells}
    assert sent == {("tensorflow", "", 4), ("tensorflow", "mlp", 8), ("other", "", 4)}
    assert both.left_out == (LeftOut("other: gradients of models", "TensorFlow alone sends them"),)
    one = of_each({**SENDING, "tensorflow": sends}, **asked)
    assert {cell.engine for cell in one.cells} == {"tensorflow"}
    assert one.left_out == (LeftOut("engine other", "gradients of models: TensorFlow alone sends them"),)
