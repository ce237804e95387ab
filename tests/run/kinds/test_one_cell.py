"""From the keys of both sides and those of one alone to exactly one cell a side."""

from typing import Any

import pytest

from harness.errors import UsageError
from harness.run.kinds.one_cell import check_turns, differing, given_for, one_cell, variable_words, words_of
from harness.spec import Cell, Sweep

MIRRORED = {"strategy": ["mirrored"], "replicas": [2]}


def side(base: dict[str, Any], *texts: str) -> tuple[Sweep, Cell]:
    return one_cell("a", base, given_for("a", texts).settings)


def said(base: dict[str, Any], *texts: str) -> str:
    with pytest.raises(UsageError) as caught:
        side(base, *texts)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_an_axis_that_nobody_gave_takes_the_first_of_its_defaults() -> None:
    sweep, cell = side({})
    assert (cell.strategy, cell.replicas) == ("none", 1)
    assert (sweep.strategy, sweep.replicas) == (["none"], [1])


def test_data_that_nobody_gave_are_the_models_own() -> None:
    assert side({"model": ["gpt"]})[1].get("data") == "text"
    assert "gpt on digits: it takes text" in said({"model": ["gpt"], "data": ["digits"]})


def test_the_base_case_that_a_sweep_would_add_is_not_a_cell_of_the_side() -> None:
    _, cell = side(MIRRORED)
    assert (cell.strategy, cell.replicas) == ("mirrored", 2)


def test_a_key_of_one_side_is_laid_over_what_both_have() -> None:
    sweep, cell = side({**MIRRORED, "window": 0.1}, "replicas=4", "window=0.5", "intra-op-threads=2", "xla=true")
    assert (cell.replicas, cell.xla, sweep.window, sweep.intra_op_threads) == (4, True, 0.5, [2])


def test_environment_variables_are_told_from_keys() -> None:
    given = given_for("b", ["env.TF_X=a=b", "env.EMPTY=", "optimizer=sgd"])
    assert given.environment == {"TF_X": "a=b", "EMPTY": ""}
    assert given.settings == {"optimizer": "sgd"}


@pytest.mark.parametrize(
    ("base", "texts", "message"),
    [
        ({}, ["replicas=1,2"], "side a: replicas: given 1,2, expected one value"),
        ({"strategy": ["none", "mirrored"]}, [], "side a: strategy: given none,mirrored, expected one value"),
        ({}, ["replicas=two"], "side a: replicas: given 'two', expected a whole number"),
        ({}, ["replicas=0"], "side a: replicas: given 0, expected greater than or equal to 1"),
        ({}, ["strategy=miror"], "side a: strategy: 'miror' is not one of"),
        ({"colour": 1}, [], "side a: unknown key 'colour'"),
        ({}, ["replica=2"], "--a: unknown key 'replica'; did you mean 'replicas'?"),
        ({}, ["replicas"], "--a: given 'replicas', expected KEY=VALUE"),
        ({}, ["=2"], "--a: given '=2', expected KEY=VALUE"),
        ({}, ["seed=1", "seed=2"], "--a: seed: given '1' and '2', expected one value"),
        ({}, ["env.=1"], "--a: given 'env.', expected env.NAME=VALUE"),
        ({}, ["env.A B=1"], "--a: given 'env.A B', expected env.NAME=VALUE"),
        ({}, ["replicas=2"], "side a: no combination is left to run (none × 2 replicas"),
        (
            {"work": "collective", "replicas": [2], "size": [4096]},
            ["model=mnist_cnn"],
            "side a: that is 2 cells (all_reduce 4 KiB mirrored ×2, all_reduce gradients of mnist_cnn mirrored ×2), "
            "expected one; leave out size or model",
        ),
        (MIRRORED, ["num_packs=2"], "side a: mirrored with auto, num_packs=2: auto takes no num_packs"),
        ({}, ["trials=9"], "--a: trials: both sides have one trial a block; for the most blocks give --max-blocks"),
        ({}, ["half-width=0.1"], "--a: half_width: a comparison has looks instead of stages"),
        ({}, ["max_trials=9"], "--a: max_trials: both sides have one trial a block"),
        ({}, ["live_trials=1"], "--a: live_trials: both sides are always alive at once"),
    ],
)
def test_what_does_not_come_to_one_cell_is_answered_in_one_line(
    base: dict[str, Any], texts: list[str], message: str
) -> None:
    assert said(base, *texts).startswith(message)


def test_a_packing_that_only_the_other_op_takes_is_let_be_when_both_sides_have_it() -> None:
    base = {**MIRRORED, "num_packs": [2]}
    assert side(base)[1].packing == "default"
    assert side(base, "cross_device_op=hierarchical_copy")[1].packing == "num_packs=2"


def test_how_often_a_spec_repeats_its_cells_plays_no_part() -> None:
    repeated = {"trials": 9, "max_trials": 10, "half_width": 0.01, "live_trials": 1}
    assert side({**MIRRORED, **repeated}) == side(MIRRORED)


@pytest.mark.parametrize("key", ["windows", "max_warmup"])
def test_sides_that_could_not_take_turns_are_refused(key: str) -> None:
    one, two = Sweep(), Sweep(**{key: 50})
    check_turns(two, two)
    with pytest.raises(UsageError, match=f"{key}: given {getattr(one, key)} for side a and 50 for side b"):
        check_turns(one, two)


def test_what_sets_sides_apart_is_named_in_the_order_of_the_spec() -> None:
    one = Sweep(name="x", trials=3, cross_device_op=["nccl"], xla=[False], num_packs=[])
    two = Sweep(name="y", trials=4, cross_device_op=["auto"], xla=[True], num_packs=[2])
    keys = differing(one, two)
    assert keys == ["cross_device_op", "num_packs", "xla"]
    assert words_of(one, keys) == ["cross_device_op=nccl", "num_packs=default", "xla=false"]
    assert words_of(two, keys) == ["cross_device_op=auto", "num_packs=2", "xla=true"]


def test_a_variable_is_compared_with_what_the_other_side_inherits() -> None:
    assert variable_words({"A": "1"}, {}, {}) == ["A=1"]
    assert variable_words({}, {"A": "1"}, {}) == ["A not set"]
    assert variable_words({}, {"A": "1"}, {"A": "0"}) == ["A=0"]
    assert variable_words({"A": "1"}, {}, {"A": "1"}) == []


def test_a_variable_that_could_be_a_secret_sets_sides_apart_without_its_value() -> None:
    a, b = {"HF_TOKEN": "hush"}, {"HF_TOKEN": "still"}
    assert variable_words(a, {}, {}) == ["HF_TOKEN set"]
    assert variable_words({}, a, {}) == ["HF_TOKEN not set"]
    assert [variable_words(a, b, {}), variable_words(b, a, {})] == [
        ["HF_TOKEN set to one value"],
        ["HF_TOKEN set to another"],
    ]
    assert variable_words({}, b, a) == ["HF_TOKEN set to one value"]
    assert variable_words({"TOKENIZERS_PARALLELISM": "false"}, {}, {}) == ["TOKENIZERS_PARALLELISM=false"]


def test_what_a_step_of_its_own_is_given_as_a_secret_is_no_word_of_its_side() -> None:
    one = Sweep(step="train.py --api-key hush --epochs 3")
    assert words_of(one, ["step"]) == ["step=train.py --api-key (set) --epochs 3"]
