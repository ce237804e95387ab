"""Every named model is proved on two replicas by a real trial, on the data that it has by default."""

import pytest

from harness.engines.tensorflow.workloads import load_workload
from harness.run.process.zygote import Zygote
from harness.trial.trial import ONE_BY_ONE
from tests.run.process.clusters import measured

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("model", "data", "optimizer"),
    [
        ("lenet", "synthetic", "sgd"),
        ("alexnet(filters=4,units=16)", "synthetic", "sgd"),
        ("lstm(width=8,tokens=8)", "text", "muon(learning_rate=0.01,decay_steps=1000)"),
        ("gpt(layers=1,width=16,tokens=8)", "text", "sgd"),
        ("bert(layers=1,width=16,tokens=8)", "text", "sgd"),
        ("bert(layers=1,width=16,tokens=8,vocabulary=30522)", "tokens", "sgd"),
        ("recommender", "synthetic", "adam"),
        ("mlp", "breast_cancer", "lamb(clipnorm=1,weight_decay=0.01)"),
        ("mlp", "diabetes", "adamw(warmup_steps=3,decay_steps=10)"),
        ("mlp", "linnerud", "sgd"),
    ],
)
def test_a_named_model_passes_the_gate_on_two_replicas(
    shared_zygote: Zygote, model: str, data: str, optimizer: str
) -> None:
    tokens = load_workload(model).traits.tokens
    keys = {"model": model, "data": data, "optimizer": optimizer, "tokens": tokens}
    record = measured(shared_zygote, windows=2, batch_size=2, global_batch_size=4, **keys)
    assert (record.status, record.reason) == ("ok", None)
    assert record.step_time_s is not None
    assert record.executed is not None
    assert (record.executed.optimizer or "").lower().startswith(optimizer.partition("(")[0])
    assert record.throughput == pytest.approx(4 * (tokens or 1) / record.step_time_s)
    assert min((record.checks.sight or {}).values()) > 10


def test_a_network_that_amplifies_what_rounding_does_passes_and_its_updates_are_held_one_by_one(
    shared_zygote: Zygote,
) -> None:
    keys = {"model": "tests.planted:amplifying_model", "data": "synthetic", "optimizer": "adam"}
    record = measured(shared_zygote, windows=2, batch_size=4, global_batch_size=8, **keys)
    assert (record.status, record.reason) == ("ok", None)
    assert record.checks.detail["update"] == ONE_BY_ONE
    assert set(record.checks.sight or {}) == {"missing", "averaged", "doubled", "delayed"}
