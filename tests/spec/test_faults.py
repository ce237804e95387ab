"""The spec of `faults`: what is refused says which key, what was given and what was expected."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UsageError
from harness.spec.catalogue import StrategyTraits
from harness.spec.faults import FAULT_NAMES, HELP_OF_FAULTS, Faults, faults_from, strategies_of
from harness.spec.sweep import HELP as HELP_OF_SWEEP
from harness.spec.text import value_from
from harness.trial.engines import catalogue_of

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"fault": ["kill_wroker"]}, r"fault: given 'kill_wroker'.*did you mean 'kill_worker'"),
        ({"falt": ["restart"]}, "unknown key 'falt'; did you mean 'fault'"),
        ({"checkpoint_every": [200]}, r"checkpoint_every: given 200, expected less than steps \(100\)"),
        ({"checkpoint_every": [5, 5]}, "checkpoint_every: .*listed twice"),
        ({"fault": []}, "fault: .*at least one value"),
        ({"workers": 1}, "workers: given 1"),
        ({"stall": -1.0}, "stall: given -1.0"),
    ],
)
def test_a_wrong_value_is_refused_by_its_key(values: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        faults_from(values)


def strategies(values: dict[str, Any]) -> dict[str, list[str]]:
    """Those of each engine's jobs."""
    settings = faults_from(values)
    return strategies_of(settings, {engine: catalogue_of(engine).strategies for engine in settings.engine})


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"strategy": "miror"}, "strategy: 'miror' is not one of central_storage, .*did you mean 'mirrored'"),
        ({"strategy": "tpu"}, "strategy: 'tpu' is not one of .*: a TPU host is taken away"),
        ({"strategy": ["mirrored", "none"]}, "strategy: 'none' is not one of .*: it is one process with one replica"),
        ({"strategy": ["mirrored"], "ps": 2}, "ps: given 2, but no strategy of this run has servers: parameter_server"),
        ({"engine": "torch", "strategy": "mirrored"}, "strategy: 'mirrored' is not one of none, data_parallel"),
        ({"engine": ["torch", "jax"], "strategy": "mirrored"}, "'mirrored' is not one of none, data_parallel, multi"),
        ({"engine": "torch", "ps": 2}, "ps: given 2, but no strategy of this run has servers: none of its engines'"),
    ],
)
def test_a_strategy_that_nothing_can_be_done_to_is_refused_with_the_reason(values: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        strategies(values)


def test_an_engine_whose_strategies_are_all_spared_is_refused_with_the_reason() -> None:
    spared = {"none": StrategyTraits("none", ""), "lonely": StrategyTraits("lonely", "", no_faults="nobody asked")}
    with pytest.raises(UsageError, match="engine: 'mine' has no strategy that faults are done to: nobody asked"):
        strategies_of(faults_from({"engine": "mine"}), {"mine": spared})


def test_a_strategy_of_a_sweep_is_offered_unless_its_traits_say_why_not() -> None:
    found = catalogue_of().strategies
    able = [name for name, traits in found.items() if not traits.no_faults]
    assert strategies({"strategy": able}) == {"tensorflow": able}
    assert {*found} - {*able} == {"none", "tpu"}


def test_each_engine_takes_the_strategies_that_it_has_and_all_of_its_own_where_it_has_none_of_them() -> None:
    assert strategies({"engine": ["tensorflow", "jax", "torch"]}) == {
        "tensorflow": ["mirrored", "multi_worker_mirrored", "parameter_server"],
        "jax": ["data_parallel", "multi_process"],
        "torch": ["data_parallel"],
    }
    asked = ["mirrored", "multi_process"]
    assert strategies({"engine": ["tensorflow", "jax", "torch"], "strategy": asked}) == {
        "tensorflow": ["mirrored"],
        "jax": ["multi_process"],
        "torch": ["data_parallel"],
    }


def test_a_strategy_that_one_of_two_engines_does_something_to_is_left_out_of_the_other() -> None:
    asked = {"engine": ["tensorflow", "torch"], "strategy": ["none", "mirrored", "data_parallel"]}
    assert strategies(asked) == {"tensorflow": ["mirrored"], "torch": ["none", "data_parallel"]}
    with pytest.raises(
        UsageError, match=r"^engine: 'tensorflow' has only 'none' of these strategies: .*; leave it out$"
    ):
        strategies({**asked, "strategy": ["none", "data_parallel"]})
    with pytest.raises(UsageError, match=r"strategy: 'tpu' is not one of .*: a TPU host is taken away"):
        strategies({**asked, "strategy": ["tpu", "data_parallel"]})


def test_one_value_stands_for_a_list_of_one() -> None:
    assert faults_from({"fault": "restart"}).fault == ["restart"]


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("fault", "restart, sigterm", ["restart", "sigterm"]),
        ("checkpoint_every", "0,5", [0, 5]),
        ("stall", "2", 2.0),
        ("repeats", "4", 4),
        ("model", "mnist_cnn", "mnist_cnn"),
    ],
)
def test_a_flag_means_what_the_key_means(key: str, text: str, value: Any) -> None:
    assert value_from(key, text, Faults) == value


def test_a_flag_that_is_no_number_names_its_key() -> None:
    with pytest.raises(UsageError, match="repeats: given 'many', expected a whole number"):
        value_from("repeats", "many", Faults)


def test_the_spec_in_benchmarks_is_the_default_in_full() -> None:
    text = (ROOT / "benchmarks" / "faults.toml").read_text(encoding="utf-8")
    values = tomllib.loads(text)
    assert faults_from(values) == Faults()
    assert set(values) == set(Faults.model_fields) - {"data_dir", "engine_python"}
    assert values["fault"] == list(FAULT_NAMES)


def test_every_key_has_the_help_of_its_flag_which_is_a_sweeps_where_nothing_else_is_said() -> None:
    assert set(HELP_OF_FAULTS) == set(Faults.model_fields)
    assert all(HELP_OF_FAULTS.values())
    same = {key for key in HELP_OF_FAULTS if HELP_OF_FAULTS[key] == HELP_OF_SWEEP.get(key)}
    assert same == {"model", "data", "optimizer", "data_dir", "engine_python"}


def test_more_jobs_than_anybody_runs_are_refused_before_any_is_planned() -> None:
    with pytest.raises(UsageError) as caught:
        faults_from({"fault": "kill_worker", "checkpoint_every": list(range(2000)), "steps": 3000, "repeats": 1000})
    assert str(caught.value) == (
        "spec: strategy, checkpoint_every, repeats: given 6,000,000 jobs (3 × 2,000 × 1,000), expected at most 100,000"
    )


def test_a_text_with_a_nul_is_no_value() -> None:
    with pytest.raises(UsageError, match=r"data_dir: given .* expected a text without NUL characters"):
        faults_from({"data_dir": "a\0b"})
