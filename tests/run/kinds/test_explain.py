"""`explain`: the whole step and its instruments in one group, block after block, on stand-ins."""

from pathlib import Path

import pytest

from harness.analysis.explain import explanations_of
from harness.errors import HarnessError, Interrupted, UsageError
from harness.protocol.messages import Outcome, Request
from harness.record.explain import (
    ALONE,
    BARRIER,
    INSTRUMENTS,
    NO_PULL,
    NO_PUSH,
    NO_REDUCTION,
    OF_SERVERS,
    ONLY_INPUT,
    REDUCTION,
    WHOLE,
    ExplainPlan,
)
from harness.record.reading import load_run
from harness.run.kinds.explain import ExplainSettings, alone_of, pipeline_of
from harness.run.kinds.explain_settings import settings_asked
from harness.run.resume import resume
from harness.spec import Sweep
from harness.spec.cell import TrainingCell, trained
from harness.spec.inputs import LeftOut
from tests.record.examples import cell
from tests.run.benches import ExplainBench
from tests.run.fakes import Play

TWO = trained(cell())
IN_ONE_PROCESS = [name for name in INSTRUMENTS if name not in (BARRIER, NO_PULL, NO_PUSH)]
SERVED = trained(cell(strategy="parameter_server", workers=2, ps=1, replicas=1, global_batch_size=32))


def asked(*cells: TrainingCell, **settings: object) -> ExplainSettings:
    return ExplainSettings(Sweep(**{"trials": 2, **settings}), cells or (TWO,))  # type: ignore[arg-type]


def instrument_of(request: Request) -> str:
    return request.instrument or (WHOLE if request.task == "trial" else request.task)


def test_every_arm_has_a_trial_in_each_block_and_all_of_a_block_take_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = ExplainBench(tmp_path, monkeypatch)
    run = load_run(bench.begin())
    for block in range(2):
        trials = [trial for trial in run.trials if trial.block == block]
        assert sorted(trial.side or "" for trial in trials) == sorted([WHOLE, *IN_ONE_PROCESS, ALONE, ONLY_INPUT])
        assert len({trial.group for trial in trials}) == 1
    assert {instrument_of(request) for request in bench.zygote.spawned} >= {WHOLE, *IN_ONE_PROCESS}


def test_one_replica_has_nothing_to_reduce_and_nobody_beside_it() -> None:
    [family] = asked(alone_of(TWO)).plan().families
    arms = [name for name in IN_ONE_PROCESS if name not in (NO_REDUCTION, REDUCTION)]
    assert family.arms == [WHOLE, *arms, ONLY_INPUT]
    assert family.alone is None


def test_two_workers_of_one_replica_have_one_by_itself_to_be_held_against() -> None:
    cell_of_two = trained(cell(strategy="multi_worker_mirrored", workers=2, replicas=1))
    [family] = asked(cell_of_two).plan().families
    assert family.arms == [WHOLE, *(name for name in INSTRUMENTS if name not in (NO_PULL, NO_PUSH)), ALONE]
    assert family.alone == alone_of(cell_of_two).cell_id


def test_workers_of_servers_pull_and_push_and_are_held_against_one_of_them_by_itself() -> None:
    [family] = asked(SERVED).plan().families
    assert family.arms == [WHOLE, *OF_SERVERS, ALONE]
    assert (family.at_once, family.alone) == (2, alone_of(SERVED).cell_id)
    assert (alone_of(SERVED).workers, alone_of(SERVED).global_batch_size) == (1, SERVED.global_batch_size)


def test_one_worker_of_servers_has_nobody_beside_it() -> None:
    [family] = asked(alone_of(SERVED)).plan().families
    assert (family.arms, family.at_once, family.alone) == ([WHOLE, *OF_SERVERS], 1, None)


def test_the_replica_by_itself_has_one_replicas_share_of_the_batch() -> None:
    alone = alone_of(trained(cell(batch_scope="global", batch_size=64, global_batch_size=64)))
    assert (alone.replicas, alone.global_batch_size, alone.strategy) == (1, 32, "none")


def test_one_process_reads_the_batches_of_all_its_replicas_in_one_pipeline() -> None:
    [family], pipeline = asked(TWO).plan().families, pipeline_of(TWO, "tensorflow")
    assert pipeline is not None
    assert (family.pipeline, family.cell_of(ONLY_INPUT)) == (pipeline.cell_id, pipeline.cell_id)
    assert (pipeline.batch_size, pipeline.data, pipeline.prefetch) == (TWO.global_batch_size, "digits", TWO.prefetch)


@pytest.mark.parametrize(
    "own",
    [
        {"strategy": "multi_worker_mirrored", "workers": 2, "replicas": 1},
        {"strategy": "parameter_server", "workers": 1, "ps": 1, "replicas": 1, "global_batch_size": 32},
        {"data": "synthetic"},
        {"data_service": 1, "cache": "none"},
        {"device": "gpu"},
    ],
)
def test_the_rate_of_a_pipeline_is_asked_only_where_one_process_has_one(own: dict[str, object]) -> None:
    [family] = asked(trained(cell(**own))).plan().families
    assert ONLY_INPUT not in family.arms
    assert family.pipeline is None


def test_families_take_blocks_in_turn() -> None:
    plan = asked(TWO, alone_of(TWO)).plan()
    assert [plan.family(block).cell_id for block in range(4)] == [TWO.cell_id, alone_of(TWO).cell_id] * 2


def test_combinations_of_a_spec_that_make_no_sense_are_recorded_with_their_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = ExplainBench(tmp_path, monkeypatch)
    bench.left_out = [LeftOut("global batch 33 over 2 replicas", "2 replicas do not divide a global batch of 33")]
    [item] = load_run(bench.begin()).manifest.left_out
    assert LeftOut(item.combination, item.reason) == bench.left_out[0]


def test_cells_of_a_spec_whose_steps_cannot_be_taken_apart_are_left_out_beside_those_that_can(tmp_path: Path) -> None:
    two = {"strategy": "mirrored", "replicas": 2, "batch_size": 32}
    settings, _ = settings_asked(None, {**two, "steps_per_execution": [1, 10], "loop": ["custom", "fit"]}, tmp_path)
    assert [(cell.loop, cell.steps_per_execution) for cell in settings.cells] == [("custom", 1)]
    assert {item.reason.partition(":")[0] for item in settings.left_out} == {"loop", "steps_per_execution"}
    assert len(settings.left_out) == 3
    with pytest.raises(UsageError, match="loop: 'fit' has no instruments; expected custom"):
        settings_asked(None, {**two, "loop": ["fit"]}, tmp_path)


class Refusing(ExplainBench):
    """Its `arm` lacks more than its name says."""

    arm = ""
    outcome: Outcome | None = None

    def _plays(self, request: Request) -> Play:
        if instrument_of(request) == self.arm:
            lacks = Outcome(status="unsupported", reason=f"instrument '{self.arm}': it lacks more")
            return Play(outcome=self.outcome or lacks)
        return super()._plays(request)


def test_an_instrument_that_is_refused_is_tried_once_and_the_rest_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Refusing(tmp_path, monkeypatch)
    bench.arm = "empty"
    run = load_run(bench.begin())
    assert sum(trial.side == "empty" for trial in run.trials) == 1
    [found] = explanations_of(run)
    assert found.lacking == {"empty": "unsupported: instrument 'empty': it lacks more"}
    assert found.blocks == 2


def test_a_cell_that_cannot_be_trained_ends_the_run_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Refusing(tmp_path, monkeypatch)
    bench.arm = WHOLE
    with pytest.raises(HarnessError, match="it lacks more"):
        bench.begin()


class RefusingOne(ExplainBench):
    """Its whole step of `sick` ends otherwise."""

    sick = TWO.model_copy(update={"cross_device_op": "nccl"})
    outcome = Outcome(status="unsupported", reason="there is no GPU")

    def _plays(self, request: Request) -> Play:
        if request.cell == self.sick and instrument_of(request) == WHOLE:
            return Play(outcome=self.outcome)
        return super()._plays(request)


def test_a_cell_that_cannot_be_trained_leaves_the_others_to_be_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = RefusingOne(tmp_path, monkeypatch)
    run = load_run(bench.begin(bench.sick, TWO))
    assert run.manifest.status == "finished"
    sick, well = explanations_of(run)
    assert sick.lacking[WHOLE] == "unsupported: there is no GPU"
    assert (sick.blocks, well.blocks, dict(well.lacking)) == (0, 2, {})
    assert {trial.block for trial in run.trials} == {0, 1, 3}, "the sick cell has no second block"


def test_a_whole_step_that_fails_in_two_blocks_of_its_own_is_given_up_and_the_others_are_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = RefusingOne(tmp_path, monkeypatch)
    bench.outcome, bench.blocks = Outcome(status="crashed", reason="signal 11"), 4
    run = load_run(bench.begin(bench.sick, TWO))
    assert sum(trial.side == WHOLE and trial.cell == bench.sick for trial in run.trials) == 2
    assert [found.blocks for found in explanations_of(run)] == [0, 4]


def test_an_instrument_that_fails_in_two_blocks_in_a_row_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Refusing(tmp_path, monkeypatch)
    bench.arm, bench.outcome, bench.blocks = "empty", Outcome(status="crashed", reason="signal 6"), 4
    run = load_run(bench.begin())
    assert [trial.block for trial in run.trials if trial.side == "empty"] == [0, 1]
    [found] = explanations_of(run)
    assert (found.blocks, dict(found.lacking)) == (4, {"empty": "crashed: signal 6"})


def test_a_run_whose_cell_could_not_be_trained_tries_it_again_when_it_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Refusing(tmp_path, monkeypatch)
    bench.arm = WHOLE
    with pytest.raises(HarnessError):
        bench.begin()
    with pytest.raises(HarnessError, match=r"unsupported: .*it lacks more; .* go on with: .*explain --resume"):
        resume("explain", bench.path, bench.listener())
    assert sum(trial.side == WHOLE for trial in load_run(bench.path).trials) == 2


def test_a_run_that_was_stopped_goes_on_with_the_block_that_it_was_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = ExplainBench(tmp_path, monkeypatch)
    bench.stops_at = 12  # in the second of two blocks of eleven
    with pytest.raises(Interrupted, match="explain --resume"):
        bench.begin()
    resume("explain", bench.path, bench.listener())
    run = load_run(bench.path)
    assert run.manifest.status == "finished"
    assert explanations_of(run)[0].blocks == run.manifest.part(ExplainPlan).blocks == 2


@pytest.mark.parametrize(
    ("change", "settings", "words"),
    [
        ({"strategy": "tpu"}, {}, "strategy: 'tpu' has no instruments; expected one of none"),
        (
            {"strategy": "parameter_server", "workers": 2, "ps": 1, "replicas": 1, "updates": "keras"},
            {},
            "updates: 'keras' has no instruments; expected locked",
        ),
        ({"loop": "fit"}, {}, "loop: 'fit' has no instruments; expected custom"),
        (
            {"steps_per_execution": 10},
            {},
            "steps_per_execution: 10 has no instruments; expected 1, a call for each step",
        ),
        ({}, {"trials": 1}, "trials: given 1, expected at least 2"),
        (
            {},
            {"engine": "benchmarks.own_engine:Means"},
            "engine: given .*, expected horovod or jax or keras_distribution or tensorflow or torch",
        ),
    ],
)
def test_what_has_no_instruments_is_refused_before_anything_is_measured(
    change: dict[str, object], settings: dict[str, object], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        asked(trained(cell(**change)), **settings)  # type: ignore[arg-type]


def test_more_cells_than_anybody_reads_are_refused() -> None:
    with pytest.raises(UsageError, match="9 cells are asked for, expected at most 8"):
        asked(*[trained(cell(batch_size=size, global_batch_size=2 * size)) for size in range(1, 10)])
