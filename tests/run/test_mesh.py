"""Real trials on meshes: the gate proves them as it proves every strategy, and what is wrong there is found."""

import functools
from collections.abc import Callable
from typing import Any

import pytest

from harness.record.trial import TrialRecord
from harness.run.process.zygote import Zygote
from harness.spec.mesh import Mesh
from tests.record.examples import cell
from tests.run.process.clusters import live, take_turns

pytestmark = pytest.mark.slow
Trained = Callable[[str, str, str], TrialRecord]


@pytest.fixture(scope="module")
def trained(shared_zygote: Zygote) -> Trained:
    """The record of a model with an optimizer on a mesh: a trial is run once, however many look at it."""

    @functools.cache
    def record(mesh: str, model: str, optimizer: str) -> TrialRecord:
        return measured(shared_zygote, mesh, model, optimizer=optimizer)

    return record


def measured(shared_zygote: Zygote, mesh: str, model: str = "mlp", **keys: Any) -> TrialRecord:
    """The record of a short trial on a mesh, with gradient descent where no optimizer is given."""
    from harness.run.turns.live import Ended

    replicas = Mesh.parse(mesh).batch
    plain = {"batch_size": 8, "global_batch_size": 8 * replicas, "data": "synthetic", "optimizer": "sgd"}
    of = cell(strategy="dtensor", mesh=mesh, replicas=replicas, model=model, **{**plain, **keys})
    trial = live(shared_zygote, of)
    try:
        trial.start()
        trial.set_up()
        trial.measure_from(0)
        take_turns(trial, 2)
        trial.finish()
    except Ended:
        pass
    return trial.record()


@pytest.mark.parametrize("mesh", ["batch:2", "model:2", "batch:2,model:2"])
@pytest.mark.parametrize(
    ("model", "optimizer"), [("mlp", "adam"), ("mnist_cnn", "sgd"), ("transformer(layers=1,width=16,tokens=16)", "sgd")]
)
def test_every_division_of_a_model_passes_the_gate(trained: Trained, model: str, optimizer: str, mesh: str) -> None:
    record = trained(mesh, model, optimizer)
    assert (record.status, record.reason) == ("ok", None)
    assert len(record.resources.logical_devices) == Mesh.parse(mesh).devices


@pytest.mark.parametrize("optimizer", ["adam", "momentum"])
def test_slots_lie_as_their_weights_do(trained: Trained, optimizer: str) -> None:
    assert trained("model:2", "mlp", optimizer).status == "ok"


def test_the_record_says_how_variables_lie_and_which_sums_ran(trained: Trained) -> None:
    data, model = (trained(mesh, "mlp", "adam").executed for mesh in ("batch:2", "model:2"))
    assert set(data.layouts.values()) == {"whole", "whole,whole"}
    assert (data.packs, data.operations) == (1, {"CollectiveReduceV2": 2})
    assert data.pack_bytes[0] >= 4 * 669_706
    assert [layout for layout in model.layouts.values() if "model" in layout] == ["whole,model", "model", "model,whole"]
    assert model.packs == 1
    assert model.pack_bytes == [4 * 8 * 512]


def test_a_gradient_that_one_shard_of_the_batch_did_not_give_is_a_wrong_result(shared_zygote: Zygote) -> None:
    right = measured(shared_zygote, "batch:2", "tests.engines.tensorflow.planted_mesh:right_model")
    wrong = measured(shared_zygote, "batch:2", "tests.engines.tensorflow.planted_mesh:dropped_shard_model")
    assert (right.status, right.reason) == ("ok", None)
    assert wrong.status == "wrong_result"
    assert wrong.checks.reduction is True
    assert wrong.checks.failures == ("update", "loss")
    assert wrong.throughput_examples_per_s is None


@pytest.mark.parametrize(
    ("mesh", "keys", "says"),
    [
        ("batch:2", {"model": "resnet20"}, "keeps state beside its weights"),
        (
            "model:2",
            {"model": "tests.engines.tensorflow.planted_mesh:right_model"},
            "has no layout that cuts it over 'model'",
        ),
        ("model:3", {}, "3 devices do not divide dimension 1"),
        ("batch:2", {"xla": True}, "does not run with --xla true"),
        ("batch:2", {"loop": "fit"}, "Model.fit does not train on a DTensor mesh"),
        ("batch:2", {"precision": "mixed_float16"}, "mixed_float16 scales the loss"),
    ],
)
def test_what_has_no_layout_is_unsupported_with_the_reason(
    shared_zygote: Zygote, mesh: str, keys: dict[str, Any], says: str
) -> None:
    record = measured(shared_zygote, mesh, **keys)
    assert record.status == "unsupported"
    assert says in str(record.reason)


def test_mixed_bfloat16_runs_on_a_mesh(shared_zygote: Zygote) -> None:
    record = measured(shared_zygote, "batch:2,model:2", precision="mixed_bfloat16")
    assert (record.status, record.reason) == ("ok", None)
