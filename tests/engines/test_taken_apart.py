"""Instruments of engines beside TensorFlow: which are taken, which refused with what differs, and what is advised."""

from collections import Counter
from dataclasses import replace

import pytest

from harness.analysis.advice import levers_of
from harness.analysis.explain import explanations_of
from harness.record.explain import ALONE, BARRIER, IN_ONE_CALL, NO_REDUCTION, WHOLE
from harness.report.tables.explain import explain_lines
from harness.run.kinds.explain import ExplainSettings, alone_of
from harness.run.request import asked_matrix
from harness.spec import Sweep, sweep_from
from harness.spec.cell import TrainingCell, trained
from harness.trial.engines import catalogue_of
from harness.trial.instruments import Holds
from harness.trial.same_work.instruments import BACKWARD, fault_of
from tests.explained import RATIOS, explain_run

FORWARD = Counter({"addmm": 2, "convolution": 1})
WORK = FORWARD + Counter({f"mm{BACKWARD}": 4, f"convolution_backward{BACKWARD}": 1})
SUMS = Counter({"all-reduce": 2})
STEP = Holds(WORK, SUMS, 6, 400, collectives=3, flops=900, sent_besides=Counter({"broadcast_": 1}))
NOTHING = Holds(Counter(), Counter(), 0)


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("no_input", STEP),
        ("no_reduction", replace(STEP, reductions=Counter(), bytes_added_up=0)),
        ("no_update", replace(STEP, changes=0)),
        ("barrier", replace(STEP, reductions=Counter({"all-reduce": 1}), bytes_added_up=4)),
        ("forward_backward", replace(NOTHING, work=WORK, flops=900)),
        ("forward", replace(NOTHING, work=FORWARD, flops=300)),
        ("empty", NOTHING),
        ("reduction", replace(NOTHING, reductions=SUMS, bytes_added_up=400)),
        ("in_one_call", STEP),
    ],
)
def test_an_instrument_that_lacks_what_its_name_says_is_taken(name: str, holds: Holds) -> None:
    assert fault_of(name, STEP, holds) is None


@pytest.mark.parametrize(
    ("name", "holds", "words"),
    [
        ("no_reduction", replace(STEP, reductions=Counter(), sent_besides=Counter()), "besides sums it sends nothing"),
        ("no_update", replace(STEP, changes=0, bytes_added_up=200), "it adds up 200 bytes where the whole step adds"),
        ("no_update", replace(STEP, changes=0, flops=450), "its products take 450 operations where the whole step's"),
        ("forward_backward", replace(NOTHING, work=FORWARD), "it computes 2 addmm, 1 convolution where the whole step"),
        ("forward", replace(NOTHING, work=Counter({"addmm": 1})), "where the whole step's forward pass computes"),
        ("forward", replace(NOTHING, work=WORK), "it goes backward"),
        ("reduction", replace(NOTHING, reductions=SUMS, bytes_added_up=40), "it adds up 40 bytes"),
        ("empty", replace(NOTHING, work=FORWARD), "it computes 2 addmm"),
        ("in_one_call", replace(STEP, bytes_added_up=800), "it adds up 800 bytes"),
    ],
)
def test_an_instrument_that_lacks_more_or_less_is_refused_with_what_differs(
    name: str, holds: Holds, words: str
) -> None:
    assert words in (fault_of(name, STEP, holds) or "")


def cell_of(**keys: object) -> TrainingCell:
    matrix = asked_matrix(sweep_from({"model": "mlp", **keys}))
    [cell] = [trained(cell) for cell in matrix.cells if cell.cell_id not in matrix.added_base]
    return cell


TORCH = {"engine": "torch", "strategy": "data_parallel", "workers": 2}
HOROVOD = {"engine": "horovod", "strategy": "data_parallel", "workers": 2}
JAX = {"engine": "jax", "strategy": "data_parallel", "replicas": 2}


def arms_of(cell: TrainingCell) -> list[str]:
    [family] = ExplainSettings(Sweep(trials=2, engine=[cell.engine]), [cell]).plan().families
    return family.arms


def test_pytorch_has_every_arm_but_several_steps_in_a_call_and_jax_has_no_barrier() -> None:
    torch, jax = arms_of(cell_of(**TORCH)), arms_of(cell_of(**JAX))
    assert torch[0] == WHOLE
    assert torch[-1] == ALONE
    assert {NO_REDUCTION, BARRIER} <= set(torch)
    assert IN_ONE_CALL not in torch
    assert set(torch) - set(jax) == {BARRIER}


def test_a_replica_that_is_a_process_keeps_its_wrapper_when_it_is_alone() -> None:
    alone = alone_of(cell_of(**TORCH, network="rate=1gbit"))
    assert (alone.strategy, alone.workers, alone.network, alone.global_batch_size) == ("data_parallel", 1, "", 64)
    assert alone_of(cell_of(**JAX)).strategy == "none"


@pytest.mark.parametrize("loop", ["data_parallel", "model_parallel"])
def test_keras_distribution_is_asked_for_every_arm_in_either_loop_but_a_barrier_and_several_steps(loop: str) -> None:
    mesh = {"mesh": "batch:2,model:2"} if loop == "model_parallel" else {}
    keras = cell_of(engine="keras_distribution", strategy="distribution", replicas=2, loop=loop, **mesh)
    assert arms_of(keras) == arms_of(cell_of(**JAX))


def test_horovod_has_every_arm_but_a_barrier_and_under_fit_no_several_steps_in_a_call() -> None:
    tape = set(arms_of(cell_of(**HOROVOD)))
    assert tape == set(arms_of(cell_of(**TORCH))) - {BARRIER} | {IN_ONE_CALL}
    assert set(arms_of(cell_of(**HOROVOD, loop="optimizer"))) == tape
    assert set(arms_of(cell_of(**HOROVOD, loop="fit"))) == tape - {IN_ONE_CALL}


def test_cells_of_several_engines_are_explained_in_one_run() -> None:
    cells = [cell_of(**TORCH), cell_of(**JAX)]
    plan = ExplainSettings(Sweep(trials=2, engine=["torch", "jax"]), cells).plan()
    assert [family.cell_id for family in plan.families] == [cell.cell_id for cell in cells]


LARGER = "a larger --batch-size (as much is added up for more)"


@pytest.mark.parametrize(
    ("keys", "settings", "words"),
    [
        (
            TORCH,
            ["bytes_per_pack=1048576", "batch_size=128"],
            f"Try another --bytes-per-pack or {LARGER}.",
        ),
        ({**TORCH, "loop": "all_reduce"}, ["batch_size=128"], f"Try {LARGER}."),
        (JAX, ["batch_size=128"], f"Try {LARGER}."),
        (
            {**HOROVOD, "cycle_time": 20},
            ["cycle_time=0", "bytes_per_pack=1048576", "batch_size=128"],
            f"Try a shorter --cycle-time, another --bytes-per-pack, or {LARGER}.",
        ),
        (
            HOROVOD,
            ["bytes_per_pack=1048576", "batch_size=128"],
            f"Try another --bytes-per-pack or {LARGER}.",
        ),
    ],
)
def test_what_an_engine_does_not_have_is_neither_advised_nor_tried(
    keys: dict[str, object], settings: list[str], words: str
) -> None:
    [found] = explanations_of(explain_run(RATIOS))
    bound = replace(found, cell=cell_of(**keys))
    assert bound.bound_by == "communication"
    tried = levers_of([bound], lambda cell: catalogue_of(cell.engine))
    assert [lever.setting for lever in tried] == settings
    [line] = explain_lines([bound])
    assert words in line
