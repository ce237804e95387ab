"""A sweep of several engines: each is asked for what it has, and all cells are in one matrix."""

from dataclasses import replace
from typing import Any

import pytest

from harness.errors import UsageError
from harness.spec import Catalogue, CrossDeviceOpTraits, DeviceTraits, Matrix, StrategyTraits, Sweep, expand
from harness.spec.bases import base_of
from harness.spec.engines import each_engine, merged

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


def test_an_engine_that_has_none_of_the_names_asked_for_is_swept_over_its_own() -> None:
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
        assert base_of(cell).engine == cell.engine
        assert base_of(cell).cell_id in ids
    assert {cell.engine for cell in matrix.cells if cell.cell_id in matrix.added_base} == {"tensorflow", "other"}


def test_a_name_that_none_of_the_engines_has_is_refused_with_the_names_of_all() -> None:
    with pytest.raises(UsageError, match=r"'mirrord' is not one of .*data_parallel.*; did you mean 'mirrored'"):
        of_both(strategy=["mirrord"])


@pytest.mark.parametrize("other", [{"work": "collective"}, {"step": "mine:make"}])
def test_only_trainings_are_measured_by_several_engines(other: dict[str, Any]) -> None:
    sweep = Sweep(engine=["tensorflow", "other"], **other)
    with pytest.raises(UsageError, match="engine: given tensorflow, other, expected one"):
        each_engine(sweep, {"tensorflow": CATALOGUE, "other": OTHER})
