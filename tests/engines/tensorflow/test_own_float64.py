"""Models of float64 are proved as those of float32 are; gradients of two types by what a cell without it is told."""

from typing import Any

import pytest

from harness.run.process.zygote import Zygote
from tests.engines.sweeps import must_have_passed_the_whole_gate, must_know_its_sight
from tests.run.process.clusters import measured

pytestmark = pytest.mark.slow
OWN = "tests.engines.tensorflow.own_float64"
ALONE = {"strategy": "none", "replicas": 1, "batch_size": 16, "global_batch_size": 16}
MIRRORED = {"strategy": "mirrored", "replicas": 2, "batch_size": 16, "global_batch_size": 32}
WORKERS = {**MIRRORED, "strategy": "multi_worker_mirrored", "workers": 2, "replicas": 1}
SERVED = {**ALONE, "strategy": "parameter_server", "workers": 1, "ps": 1}
EACH_BY_ITSELF = {"packing": "bytes_per_pack=1"}


@pytest.mark.parametrize(
    ("model", "keys"),
    [
        ("model", MIRRORED),
        ("model", WORKERS),
        ("model_with_its_own_step", {**MIRRORED, "replicas": 3, "global_batch_size": 48}),
        ("model_of_two_types", ALONE),
        ("model_of_two_types", {**MIRRORED, **EACH_BY_ITSELF}),
        ("model_of_two_types", {**MIRRORED, "cross_device_op": "reduction_to_one_device"}),
        ("model_of_two_types", {**WORKERS, **EACH_BY_ITSELF}),
        ("model_of_two_types", SERVED),
    ],
)
def test_layers_of_float64_pass_the_whole_gate(shared_zygote: Zygote, model: str, keys: dict[str, Any]) -> None:
    record = measured(shared_zygote, model=f"{OWN}:{model}", data="synthetic", optimizer="sgd", **keys)
    must_have_passed_the_whole_gate(record)
    must_know_its_sight(record)


@pytest.mark.parametrize("keys", [MIRRORED, WORKERS])
def test_gradients_of_two_types_in_one_pack_are_unsupported_and_the_reason_says_what_to_do(
    shared_zygote: Zygote, keys: dict[str, Any]
) -> None:
    record = measured(shared_zygote, model=f"{OWN}:model_of_two_types", data="synthetic", optimizer="sgd", **keys)
    assert record.status == "unsupported"
    assert "--bytes-per-pack 1 takes each by itself" in str(record.reason)
