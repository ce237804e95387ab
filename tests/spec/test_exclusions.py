"""Combinations that a sweep leaves out: by the values of any axis, and none in silence."""

import pytest

from harness.errors import UsageError
from harness.run.request import asked_matrix
from harness.spec import Matrix, sweep_from

PRODUCT = {"strategy": ["none", "mirrored"], "replicas": [1, 2, 3], "batch_size": 12, "batch_scope": "global"}


def matrix(**keys: object) -> Matrix:
    return asked_matrix(sweep_from({**PRODUCT, **keys}))


def cells(found: Matrix) -> set[tuple[str, int]]:
    return {(cell.strategy, cell.shape.replicas) for cell in found.cells}


def test_every_cell_that_has_all_values_of_a_combination_is_left_out_and_told() -> None:
    found = matrix(exclude="strategy=mirrored replicas=1; replicas=3")
    assert cells(found) == {("none", 1), ("mirrored", 2)}
    told = {item.combination: item.reason for item in found.left_out}
    assert told["strategy=mirrored replicas=1"] == told["replicas=3"] == "excluded"


def test_a_base_case_of_other_cells_is_measured_though_its_combination_is_left_out() -> None:
    found = matrix(exclude="strategy=none")
    assert ("none", 1) in cells(found)
    assert {cell.strategy for cell in found.cells if cell.cell_id not in found.added_base} == {"mirrored"}


@pytest.mark.parametrize(
    ("asked", "excluded", "left"),
    [
        ({"xla": [False, True], "replicas": [2]}, "xla=true", {"xla": {False}}),
        ({"num_packs": [1, 2], "cross_device_op": "nccl"}, "num_packs=2", {"packing": {"default", "num_packs=1"}}),
        (
            {"optimizer": ["sgd", "adam(learning_rate=0.1)"]},
            "optimizer='sgd'",
            {"optimizer": {"adam(learning_rate=0.1)"}},
        ),
        (
            {"strategy": "multi_worker_mirrored", "workers": 2, "network": ["", "rate=1gbit,delay=1ms"]},
            "network=rate=1gbit,delay=1ms",
            {"network": {""}},
        ),
        (
            {"model": ["transformer", "transformer(layers=4)"]},
            "model='transformer(layers=2)'",
            {"model": {"transformer(layers=4)"}},
        ),
        (
            {"optimizer": ["adam", "sgd"]},
            "optimizer='adam( learning_rate=1e-3 )'",
            {"optimizer": {"sgd"}},
        ),
        (
            {"model": "my:model", "data": ["my:rows(a=1,b=2)", "my:rows(a=2)"]},
            "data='my:rows(b=2, a=1)'",
            {"data": {"my:rows(a=2)"}},
        ),
        (
            {"strategy": "multi_worker_mirrored", "workers": 2, "network": ["", "rate=1gbit"]},
            "network=rate=1000mbit",
            {"network": {""}},
        ),
        (
            {"work": "collective", "strategy": "mirrored", "replicas": [2, 4], "size": [4, 1024]}
            | {"batch_size": None, "batch_scope": None},
            "size=4 replicas=4; size=1024 replicas=2; size=1KiB replicas=4",
            {"size": {4}},
        ),
    ],
)
def test_a_combination_is_of_any_axis_as_flags_spell_it(asked: dict, excluded: str, left: dict) -> None:
    keys = {key: value for key, value in {**PRODUCT, **asked}.items() if value is not None}
    found = asked_matrix(sweep_from({**keys, "exclude": excluded}))
    assert {key: {cell.get(key) for cell in found.cells} for key in left} == left


@pytest.mark.parametrize(
    ("excluded", "told"),
    [
        ("replica=2", "exclude: 'replica' is no axis of a sweep; did you mean 'replicas'?"),
        ("trials=2", "exclude: 'trials' is no axis of a sweep"),
        ("mirrored", "exclude: given 'mirrored', expected KEY=VALUE"),
        ("replicas=", "exclude: given 'replicas=', expected KEY=VALUE"),
        ("replicas=two", "exclude: replicas: given 'two', expected a whole number"),
        ("model='mlp", 'exclude: given "model=\'mlp": No closing quotation'),
        ("model='mnist_cnn(layers=3)'", "exclude: no cell has \"model='mnist_cnn(layers=3)'\""),
        ("strategy=mirrored replicas=4", "exclude: no cell has 'strategy=mirrored replicas=4'"),
        ("strategy=none; strategy=mirrored", "no combination is left to run"),
    ],
)
def test_what_leaves_nothing_out_or_nothing_over_is_refused_in_one_line(excluded: str, told: str) -> None:
    with pytest.raises(UsageError) as refused:
        matrix(exclude=excluded)
    assert str(refused.value).startswith(told)
    assert "\n" not in str(refused.value)
