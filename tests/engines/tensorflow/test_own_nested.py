"""Inputs and targets of a user's own that are several tensors are proved as one is, under each strategy."""

from typing import Any

import pytest

from harness.run.process.zygote import Zygote
from tests.engines.sweeps import must_have_passed_the_whole_gate, must_know_its_sight
from tests.run.process.clusters import measured

pytestmark = pytest.mark.slow
OWN = "tests.engines.tensorflow.own_nested"
ALONE = {"strategy": "none", "replicas": 1, "batch_size": 12, "global_batch_size": 12}
MIRRORED = {"strategy": "mirrored", "replicas": 2, "batch_size": 12, "global_batch_size": 24}
OF_THREE = {**MIRRORED, "replicas": 3, "global_batch_size": 36}
WORKERS = {**MIRRORED, "strategy": "multi_worker_mirrored", "workers": 2, "replicas": 1}
SERVED = {**ALONE, "strategy": "parameter_server", "workers": 1, "ps": 1}
MESH = {**MIRRORED, "strategy": "dtensor", "mesh": "batch:2"}


def trained(shared_zygote: Zygote, model: str, data: str, **keys: Any) -> Any:
    given = data if data == "synthetic" else f"{OWN}:{data}"
    return measured(shared_zygote, windows=3, model=f"{OWN}:{model}", data=given, optimizer="sgd", **keys)


@pytest.mark.parametrize(
    ("model", "data", "keys"),
    [
        ("model", "examples", MIRRORED),
        ("model", "examples", {**MIRRORED, "strategy": "central_storage"}),
        ("model", "examples", {**WORKERS, "replicas": 2, "global_batch_size": 48}),
        ("model", "examples", {**ALONE, "xla": True}),
        ("plain_model_of_tuples", "examples", MIRRORED),
        ("model_of_texts", "texts", MIRRORED),
        ("plain_model", "weighted", {**MIRRORED, "loop": "fit"}),
        ("plain_model", "weighted_batches", WORKERS),
        ("model_of_own_loss", "weighted", ALONE),
        ("model", "weighted", SERVED),
        ("plain_model", "weighted_apart", MIRRORED),
        ("plain_model", "weighted_apart", MESH),
        ("plain_model_of_tuples", "in_tuples_weighted", {**MIRRORED, "loop": "fit"}),
        ("tagger", "tagged", {**MIRRORED, "loop": "fit"}),
        ("tagger", "tagged", MESH),
        ("labeller", "labelled", MIRRORED),
        ("rebuilder", "inputs_alone", OF_THREE),
        ("rebuilder", "inputs_alone_in_batches", WORKERS),
        ("rebuilder_of_dicts", "inputs_alone_in_dicts", MIRRORED),
        ("rebuilder_of_tuples", "inputs_alone_in_tuples", {**ALONE, "loop": "fit"}),
        ("model_of_tuples", "synthetic", WORKERS),
    ],
)
def test_several_inputs_and_targets_pass_the_whole_gate(
    shared_zygote: Zygote, model: str, data: str, keys: dict[str, Any]
) -> None:
    record = trained(shared_zygote, model, data, **keys)
    must_have_passed_the_whole_gate(record)
    must_know_its_sight(record)


def test_where_keras_builds_a_compiled_loss_with_targets_inputs_alone_are_unsupported(shared_zygote: Zygote) -> None:
    record = trained(shared_zygote, "rebuilder", "inputs_alone", **MIRRORED, loop="fit")
    assert record.status == "unsupported"
    assert "loop 'fit': under a strategy Keras builds a compiled loss with targets, " in str(record.reason)


def test_inputs_alone_are_refused_by_a_model_without_a_step_of_its_own(shared_zygote: Zygote) -> None:
    record = trained(shared_zygote, "without_a_step", "inputs_alone", **ALONE)
    assert record.status == "crashed"
    assert (
        f"data: '{OWN}:inputs_alone' gives examples that are no pairs, expected (input, target): only a model"
        in str(record.reason)
    )


@pytest.mark.parametrize(("model", "keys"), [("left_out_model", MIRRORED), ("left_out_plain_model", WORKERS)])
def test_a_replica_whose_gradient_is_left_out_is_a_wrong_result(
    shared_zygote: Zygote, model: str, keys: dict[str, Any]
) -> None:
    record = trained(shared_zygote, model, "examples", **keys)
    assert record.status == "wrong_result"
    assert record.checks.update is False


def test_an_input_that_another_replica_gets_is_a_wrong_result(shared_zygote: Zygote) -> None:
    record = trained(shared_zygote, "misplaced_model", "examples", **OF_THREE)
    assert record.status == "wrong_result"
    assert record.checks.update is False


def test_a_ragged_input_that_is_longer_than_the_model_takes_ends_the_trial_in_one_line(shared_zygote: Zygote) -> None:
    record = trained(shared_zygote, "model_of_short_texts", "texts", **ALONE)
    assert record.status == "crashed"
    told = "the input words, of which the model takes at most (4,) (cut it in the data)"
    assert f"{told}, is: 5" in str(record.reason)
