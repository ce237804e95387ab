"""A model that trains by its own train_step or compute_loss is held against the same one by itself: what is right is
proved, what is wrong is found, and of what cannot be known the reason is told."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.analysis.explain import explanations_of
from harness.engines.tensorflow.loops.custom import LossInShares, make_step
from harness.engines.tensorflow.own_training import brought_by, must_have_a_place
from harness.engines.tensorflow.reference import continue_reference, run_reference
from harness.engines.tensorflow.reference.own_update import OwnTrainedDevice
from harness.engines.tensorflow.state import capture
from harness.engines.tensorflow.train_step import GradientsOfTrainStep, begin_loss_anew
from harness.errors import Unprovable, Unsupported, UsageError
from harness.protocol.state import Reference
from harness.trial.judgement import check_mean_losses, check_update
from tests.engines.explaining import one_block
from tests.engines.tensorflow.referenced import BATCH, BATCHES, of_one_process, placed, training
from tests.record.examples import cell


def trained(tf: Any, model: str, layers: str, n: int, **options: Any) -> Any:
    """A training of a kind of model on n devices."""
    own = importlib.import_module("tests.engines.tensorflow.own_trained")  # it imports TensorFlow
    of = of_one_process(training(tf, getattr(own, layers), n, of=getattr(own, model), **options))
    precision = options.get("precision", "float32")
    of.cell = cell(
        strategy="mirrored", replicas=n, batch_size=BATCH // n, global_batch_size=BATCH, optimizer="sgd",
        precision=precision,
    )  # fmt: skip
    return of


def faults(of: Any) -> Iterator[str]:
    """What is wrong with two updates by the custom loop, and then with a late one."""
    step, states, losses = make_step(of), [capture(of.model, of.optimizer)], []
    for x, y in [*BATCHES, BATCHES[0]]:
        begin_loss_anew(of.model)
        losses.append(LossInShares(of, step(*placed(of, x, y))).own())
        states.append(capture(of.model, of.optimizer))

    def judged(reference: Reference, begun: int, end: int) -> Iterator[str]:
        update = check_update(states[begun + 1 : end + 1], states[begun], reference)
        yield from filter(None, [update.evidence, check_mean_losses(losses[begun:end], reference)])

    first = run_reference(of, states[0])
    assert min((first.sight or {}).values()) > 1
    yield from judged(first, 0, 2)
    yield from judged(continue_reference(of, states[2], BATCHES[0], None), 2, 3)


PROVED = {
    ("TrainedByItself", "with_synchronised"): (1, 3),
    ("TrainedByItself", "with_masks"): (2,),
    ("ByContext", "plain"): (2,),
    ("OfAKnownBatch", "with_statistics"): (2,),
    ("PartlyAveraged", "plain"): (1, 2),
    ("Clipping", "with_synchronised"): (2,),
    ("DividingGradients", "plain"): (2,),
    ("MeteredInShares", "with_statistics"): (1, 2),
    ("Extended", "with_statistics"): (2,),
}
"""On how many replicas each kind of step and of layers is tried: what is done with shares tells one from several only,
and a kind's own scale is 1 where there is one. The plain layers of the first kind are those of the optimizers below."""


@pytest.mark.filterwarnings("ignore:Gradients do not exist")
@pytest.mark.parametrize(("kind", "layers", "n"), [(*of, n) for of, counts in PROVED.items() for n in counts])
def test_what_replicas_do_together_as_one_does_by_itself_is_proved(tf: Any, kind: str, layers: str, n: int) -> None:
    assert [*faults(trained(tf, kind, layers, n, momentum=0.9))] == []


@pytest.mark.parametrize(
    ("options", "replicas"),
    [
        ({"kind": "Adam"}, 2),
        ({"clipnorm": 0.01}, 2),
        ({"precision": "mixed_float16"}, 2),
        ({"clipvalue": 0.0003, "precision": "mixed_float16"}, 1),
        ({"clipvalue": 0.0003, "precision": "mixed_float16"}, 2),
    ],
)
def test_it_is_whatever_the_optimizer_does_with_the_gradients(tf: Any, options: dict[str, Any], replicas: int) -> None:
    assert [*faults(trained(tf, "TrainedByItself", "plain", replicas, **options))] == []


@pytest.mark.parametrize(
    ("kind", "layers", "n"),
    [
        ("Unscaled", "plain", 1),
        ("Unscaled", "plain", 3),
        ("UnscaledPenalty", "plain", 2),
        ("Metered", "with_synchronised", 2),
    ],
)
def test_a_step_whose_replicas_each_add_a_whole_gradient_is_found_wherever_there_are_several(
    tf: Any, kind: str, layers: str, n: int
) -> None:
    found = [*faults(trained(tf, kind, layers, n, momentum=0.9))]
    assert bool(found) is (n > 1)
    assert n == 1 or "away from the single-device reference" in found[0]


@pytest.mark.parametrize("kind", ["ClippingUnscaled", "ClippingMultiplied", "Decaying"])
def test_a_clip_of_its_own_does_not_hide_that_gradients_are_whole(tf: Any, kind: str) -> None:
    assert "away from the single-device reference" in next(faults(trained(tf, kind, "plain", 2, momentum=0.9)))


def test_clipping_what_each_replica_has_is_no_other_scale(tf: Any) -> None:
    of = trained(tf, "TrainedByItself", "plain", 2, clipnorm=0.01)
    device = OwnTrainedDevice(of)
    start = [state.copies[0] for state in capture(of.model, of.optimizer)]
    device.settle_scale(start, lambda: start, BATCHES[0], 1e-3)
    assert device._factor == 1
    of = trained(tf, "Unscaled", "plain", 2, clipnorm=0.01)
    device = OwnTrainedDevice(of)
    device.settle_scale(start, lambda: start, BATCHES[0], 1e-3)
    assert device._factor == 0.5


def test_adam_that_hides_how_large_a_gradient_is_does_not_hide_it_from_the_gate(tf: Any) -> None:
    assert "slot" in next(faults(trained(tf, "Unscaled", "plain", 2, kind="Adam")))


@pytest.mark.parametrize(
    ("kind", "layers", "says"),
    [
        ("Idle", "plain", "train_step hands the optimizer no gradients, so that the reference cannot"),
        ("Twice", "plain", "train_step updates weights more than once"),
        ("Clamped", "plain", "train_step changes trained weights after the optimizer has"),
        ("OnlyTheFirst", "plain", "do different things by the model's own train_step, as where it asks which replica"),
        ("OnlySigns", "plain", r"changes gradients before .* clips or normalises them.*\(clipnorm, clipvalue"),
        ("Unscaled", "with_masks", r"2 replicas that get the same examples .* divide its loss by tf\.distribute"),
    ],
)
def test_what_cannot_be_known_is_unprovable_with_the_reason(tf: Any, kind: str, layers: str, says: str) -> None:
    of = trained(tf, kind, layers, 2)
    with pytest.raises(Unprovable, match=says):
        run_reference(of, capture(of.model, of.optimizer))


def test_a_step_that_does_not_tell_its_loss_is_bad_usage(tf: Any) -> None:
    of = trained(tf, "Silent", "plain", 2)
    with pytest.raises(UsageError, match="its train_step returns no 'loss', expected a dict with one"):
        make_step(of)(*placed(of, *BATCHES[0]))


def test_what_xla_compiles_cannot_be_held_against_the_same_uncompiled(tf: Any) -> None:
    of = trained(tf, "TrainedByItself", "plain", 1)
    of.cell = cell(strategy="none", xla=True, loop="fit")
    with pytest.raises(Unprovable, match="does not compile with XLA"):
        run_reference(of, capture(of.model, of.optimizer))


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"strategy": "parameter_server", "workers": 2, "ps": 1}, "^strategy 'parameter_server': .* --strategy"),
        ({"strategy": "dtensor", "mesh": "batch:2"}, "^strategy 'dtensor': .* use --strategy mirrored"),
        ({"xla": True}, "^xla: .*; use --loop fit, or --xla false$"),
    ],
)
def test_where_nothing_calls_it_the_cell_is_unsupported_and_says_what_to_ask_for(
    asked: dict[str, Any], says: str
) -> None:
    request: Any = SimpleNamespace(training=cell(**asked))
    must_have_a_place(request, "")
    with pytest.raises(Unsupported, match=says):
        must_have_a_place(request, "train_step")


@pytest.mark.usefixtures("tf")
def test_a_record_says_what_of_its_training_a_model_brings() -> None:
    import keras

    plain = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    assert brought_by(plain) == []
    plain.compile(optimizer="sgd")
    assert brought_by(plain) == ["optimizer"]
    own = importlib.import_module("benchmarks.own_train_step").make_model()
    assert brought_by(own) == ["optimizer", "train_step"]


@pytest.mark.slow
def test_explain_leaves_out_each_part_of_a_step_of_its_own(tmp_path: Path) -> None:
    between = {"strategy": ["multi_worker_mirrored"], "workers": [2], "replicas": [2]}
    model = "benchmarks.own_train_step:make_model"
    run = one_block(tmp_path, {**between, "model": [model], "batch_size": [8], "optimizer": ["sgd"]})
    [found] = explanations_of(run)
    assert not found.lacking
    assert {part.name for part in found.parts} >= {"input", "communication", "update", "compute"}


@pytest.mark.parametrize(("kind", "says"), [("Twice", "updates weights more than once"), ("Idle", "no gradients")])
def test_what_is_not_known_to_be_taken_apart_is_unsupported(tf: Any, kind: str, says: str) -> None:
    of = trained(tf, kind, "plain", 1)
    make_step(of)  # which compiles the model
    with pytest.raises(Unsupported, match=f"^the model's own train_step .*{says}.*, so that it is not known"):
        GradientsOfTrainStep(of)(*BATCHES[0])
