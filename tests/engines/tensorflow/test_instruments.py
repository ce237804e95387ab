"""Instruments: programs that lack what their name says and nothing else, timed beside the whole step."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis.estimates.verdict import Margins
from harness.analysis.explain import explanations_of
from harness.engines.tensorflow.loops._instrument import lacks_more
from harness.engines.tensorflow.loops._server_instrument import lacks_more_of_servers
from harness.record import Run, TrialRecord, load_run
from harness.record.explain import ALONE, NO_INPUT, ONLY_INPUT, WHOLE, ExplainPlan
from harness.run.kinds import tries
from harness.run.kinds.decision import AbSettings
from harness.trial.instruments import Holds
from tests.engines.explaining import one_block
from tests.engines.tensorflow.own_inputs import ROWS
from tests.preloaded import handed_in

WORK = Counter({"MatMul": 12, "ReluGrad": 4})
REDUCED = Counter({"CollectiveReduceV2[ring]": 2})
AHEAD = Counter({"MatMul": 4})
STEP = Holds(WORK, REDUCED, 8, bytes_added_up=800, flops=1_000, forward=AHEAD, updates=6)
"""Of its changes of variables two are none of the optimizer's."""


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("no_input", STEP),
        ("no_reduction", Holds(WORK, Counter(), 8)),
        ("no_update", Holds(WORK, REDUCED, 2, bytes_added_up=800)),
        ("forward_backward", Holds(WORK, Counter(), 2)),
        ("forward", Holds(AHEAD, Counter(), 2, forward=AHEAD)),
        ("forward", Holds(Counter({"MatMul": 3}), Counter(), 0)),
        ("forward", Holds(Counter({"MatMul": 4, "StopGradient": 2}), Counter(), 0)),
        ("empty", Holds(Counter(), Counter(), 0)),
        ("reduction", Holds(Counter(), REDUCED, 0, bytes_added_up=800)),
        ("in_one_call", replace(STEP, flops=None)),
        ("barrier", Holds(WORK, Counter(), 8, collectives=1)),
        ("barrier", Holds(WORK, Counter({"CollectiveReduceV2[ring]": 1}), 8, bytes_added_up=4, collectives=1)),
    ],
)
def test_an_instrument_that_lacks_what_its_name_says_is_taken(name: str, holds: Holds) -> None:
    assert lacks_more(name, STEP, holds) is None


@pytest.mark.parametrize(
    ("name", "holds", "words"),
    [
        ("no_input", Holds(WORK, Counter(), 8), "it reduces by nothing where"),
        ("no_reduction", STEP, "it still reduces, by 2 CollectiveReduceV2"),
        ("no_reduction", Holds(WORK, Counter(), 4), "it changes variables 4 times where the whole step does 8 times"),
        ("no_update", STEP, "it changes variables 8 times, and may change them 2 times at most"),
        ("no_update", replace(STEP, changes=7), "it changes variables 7 times, and may change them 2 times at most"),
        ("forward_backward", Holds(WORK, Counter(), 3), "it changes variables 3 times, and may change them 2 times"),
        ("empty", Holds(Counter(), Counter(), 1), "it changes variables 1 times, and may change them 0 times at most"),
        ("reduction", replace(STEP, work=Counter(), changes=2), "it changes variables 2 times, and may change them 0"),
        (
            "forward",
            Holds(Counter({"MatMul": 3}), Counter(), 0, forward=Counter({"MatMul": 3})),
            "it computes 3 MatMul where the whole step's forward pass computes 4 MatMul",
        ),
        ("no_input", replace(STEP, bytes_added_up=400), "it adds up 400 bytes where the whole step adds up 800"),
        ("in_one_call", replace(STEP, bytes_added_up=1_600), "it adds up 1,600 bytes"),
        ("no_update", Holds(WORK, REDUCED, 0, bytes_added_up=4), "it adds up 4 bytes"),
        ("reduction", Holds(Counter(), REDUCED, 0, bytes_added_up=9_000), "it adds up 9,000 bytes"),
        ("no_input", replace(STEP, flops=900), "its products take 900 operations where the whole step's take 1,000"),
        ("no_update", Holds(Counter({"MatMul": 8}), REDUCED, 0), "it computes 8 MatMul where the whole step computes"),
        ("forward_backward", Holds(Counter({"MatMul": 4}), Counter(), 0), "it computes 4 MatMul where"),
        ("forward", Holds(Counter({"MatMul": 4, "ReluGrad": 2}), Counter(), 0), "it goes backward"),
        ("forward", Holds(Counter(), Counter(), 0), "it computes nothing where the whole step computes 12 MatMul"),
        ("empty", Holds(Counter({"MatMul": 4}), Counter(), 0), "it computes 4 MatMul"),
        ("reduction", Holds(WORK, REDUCED, 0, bytes_added_up=800), "it computes 12 MatMul"),
        ("in_one_call", replace(STEP, changes=16), "it changes variables 16 times where the whole step does 8 times"),
        ("barrier", Holds(WORK, REDUCED, 8, bytes_added_up=400, collectives=2), "it still reduces, by 2 Collective"),
        ("barrier", Holds(WORK, Counter(), 8), "no replica waits for another"),
        ("reduction", Holds(Counter(), Counter({"AddN": 2}), 0), "it reduces by 2 AddN where the whole step"),
    ],
)
def test_an_instrument_that_lacks_more_or_less_is_refused_with_what_differs(
    name: str, holds: Holds, words: str
) -> None:
    assert words in (lacks_more(name, STEP, holds) or "")


def test_a_forward_pass_of_which_the_optimiser_of_programs_has_left_nothing_is_refused() -> None:
    pruned = Holds(AHEAD, Counter(), 0, forward=AHEAD)
    assert lacks_more("forward", STEP, pruned) is None, "nobody tells what is left"
    assert "it computes nothing" in (lacks_more("forward", replace(STEP, left=12), pruned) or "")
    assert lacks_more("forward", replace(STEP, left=12), replace(pruned, left=4)) is None


def test_a_forward_pass_without_products_is_right_where_the_whole_step_has_none_but_backward() -> None:
    whole = replace(STEP, work=Counter({"MaxPoolGrad": 1}), forward=Counter())
    assert lacks_more("forward", whole, Holds(Counter(), Counter(), 0, forward=Counter())) is None


def test_where_nobody_tells_what_is_the_optimizers_one_change_fewer_is_enough() -> None:
    whole = replace(STEP, updates=0, forward=None)
    assert lacks_more("no_update", whole, Holds(WORK, REDUCED, 7, bytes_added_up=800)) is None
    assert "may change them 7 times" in (lacks_more("empty", whole, Holds(Counter(), Counter(), 8)) or "")
    assert lacks_more("forward", whole, Holds(Counter({"MatMul": 3}), Counter(), 0, forward=AHEAD)) is None


WEIGHTS = 6
UPDATE = Holds(WORK, Counter(), 7, reads=WEIGHTS + 4, flops=1_000, forward=AHEAD)
"""Of a model of six variables: the weights, and the step counter three times and the learning rate."""
FEWER = Holds(Counter({"MatMul": 3}), Counter(), 0)
"""A forward pass with fewer products, of which nobody can tell that they are."""


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("no_input", UPDATE),
        ("no_pull", replace(UPDATE, reads=4)),
        ("no_pull", replace(UPDATE, reads=4, flops=None)),
        ("no_push", replace(UPDATE, changes=0, reads=WEIGHTS + 2)),
        ("forward_backward", Holds(WORK, Counter(), 0)),
        ("forward", Holds(AHEAD, Counter(), 0, forward=AHEAD)),
        ("forward", FEWER),
        ("empty", Holds(Counter(), Counter(), 0)),
    ],
)
def test_an_update_to_servers_that_lacks_what_its_name_says_is_taken(name: str, holds: Holds) -> None:
    assert lacks_more_of_servers(name, UPDATE, holds, WEIGHTS) is None


@pytest.mark.parametrize(
    ("name", "holds", "words"),
    [
        ("no_pull", UPDATE, "it reads variables 10 times, and is to read them 4 times"),
        ("no_pull", replace(UPDATE, reads=4, changes=0), "it changes variables 0 times, and is to change them 7 times"),
        ("no_push", UPDATE, "it changes variables 7 times, and is to change them 0 times"),
        ("no_push", replace(UPDATE, changes=0, reads=2), "it reads variables 2 times"),
        ("no_input", replace(UPDATE, work=Counter()), "it computes nothing where the whole update computes 12 MatMul"),
        ("forward_backward", replace(UPDATE, changes=0), "it reads variables 10 times, and is to read them 0 times"),
        ("no_pull", replace(UPDATE, reads=4, flops=500), "its products take 500 operations where the whole update's"),
        ("forward", Holds(WORK, Counter(), 0), "it goes backward"),
        ("forward", Holds(Counter(), Counter(), 0), "it computes nothing where the whole update computes 12 MatMul"),
        ("forward", replace(FEWER, forward=FEWER.work), "it computes 3 MatMul where the whole update's forward pass"),
        ("empty", Holds(WORK, Counter(), 0), "it computes 12 MatMul"),
    ],
)
def test_an_update_to_servers_that_lacks_more_or_less_is_refused(name: str, holds: Holds, words: str) -> None:
    assert words in (lacks_more_of_servers(name, UPDATE, holds, WEIGHTS) or "")


IN_PARTS = "mirrored, each batch in two parts"
STRATEGIES = ("mirrored", "central_storage", "multi_worker_mirrored", IN_PARTS, "parameter_server")
SEVERAL = {
    IN_PARTS: {"strategy": ["mirrored"], "replicas": [2], "micro_batches": [2]},
    "multi_worker_mirrored": {"workers": [2], "replicas": [1]},
    "parameter_server": {"workers": [2], "replicas": [1], "ps": [1]},
}
"""What two replicas are where they are not of one process, or take their batches in parts."""


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of prepared data, which runs of each strategy read."""
    return str(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module", params=STRATEGIES)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, digits: str) -> Run:
    """One block of one cell of a strategy, with every arm; what more blocks add, the stand-in shows."""
    folder: Path = tmp_path_factory.mktemp("explain")
    two = SEVERAL.get(request.param, {"replicas": [2]})
    optimizer = "adam" if request.param == "central_storage" else "sgd"  # slots take long to trace
    axes = {"strategy": [request.param], "batch_size": [8], "model": ["mlp"], "optimizer": [optimizer], **two}
    return one_block(folder, {**axes, "trace": True, "data_dir": digits})


def last(run: Run, arm: str) -> TrialRecord:
    return [trial for trial in run.trials if trial.side == arm][-1]


def instruments(run: Run) -> Sequence[str]:
    [family] = run.manifest.part(ExplainPlan).families
    return [arm for arm in family.arms if arm not in (WHOLE, ALONE, ONLY_INPUT)]


@pytest.mark.slow
@pytest.mark.xdist_group("explain")
class TestOnTensorFlow:
    def test_the_whole_step_is_proved_and_instruments_are_measured_and_no_cells(self, run: Run) -> None:
        of_servers = run.manifest.cells[0].get("ps")
        assert last(run, WHOLE).status == ("unproved" if of_servers else "ok")  # together workers have no reference
        [family] = run.manifest.part(ExplainPlan).families
        for arm in family.arms[1:]:
            trial = last(run, arm)
            assert (trial.status, trial.checks.gate) == ("unproved", "instrument"), trial.reason
            assert (trial.checks.batches if arm == ONLY_INPUT else trial.checks.update) is True

    @pytest.mark.parametrize("run", ["mirrored"], indirect=True)
    def test_the_rate_of_the_pipeline_that_replicas_share_is_told_beside_the_steps(self, run: Run) -> None:
        trial = last(run, ONLY_INPUT)
        assert trial.cell.work == last(run, WHOLE).cell.work
        headroom = explanations_of(run)[0].headroom
        assert headroom is not None
        assert headroom.value > 1, "digits come from a cache"

    @pytest.mark.parametrize("run", STRATEGIES[:4], indirect=True)
    def test_what_was_executed_shows_what_an_instrument_lacks(self, run: Run) -> None:
        reduced = {arm: sum(last(run, arm).executed.pack_bytes) > 4 for arm in (WHOLE, *instruments(run))}
        with_sums = {arm for arm, found in reduced.items() if found}
        assert with_sums == {WHOLE, "no_input", "no_update", "reduction", "in_one_call"}

    @pytest.mark.parametrize("run", ["parameter_server"], indirect=True)
    def test_servers_are_updated_by_what_pushes_and_the_updates_of_others_between_are_counted(self, run: Run) -> None:
        pushes = {arm for arm in (WHOLE, *instruments(run)) if last(run, arm).executed.operations}
        assert pushes == {WHOLE, "no_input", "no_pull"}
        [found] = explanations_of(run)
        assert found.staleness is not None
        assert 0 <= found.staleness.value <= 1  # there is one other worker
        assert {"pull", "push"} <= {part.name for part in found.parts}

    def test_the_whole_step_is_profiled_once_and_told_beside_the_arms_where_the_profile_shows_it(
        self, run: Run
    ) -> None:
        [found] = explanations_of(run)
        [traced] = [trial for trial in run.trials if trial.trace is not None]
        assert (traced.side, traced.trace.reason) == (WHOLE, None)
        told = {part.by_arms.name for part in found.traced}
        whole = {"compute", "update", "communication", "input", "rest"}
        of = {"central_storage": {"input"}, "parameter_server": set()}  # what adds up, and who computes, are not in it
        assert told == of.get(found.cell.get("strategy"), whole)
        if told == whole:
            assert sum(part.share for part in found.traced) == pytest.approx(1)

    @pytest.mark.parametrize("run", ["multi_worker_mirrored"], indirect=True)
    def test_between_workers_the_wait_for_the_slowest_is_told(self, run: Run) -> None:
        assert explanations_of(run)[0].part("wait").value < 1

    def test_the_parts_add_up_to_the_step(self, run: Run) -> None:
        [found] = explanations_of(run)
        assert not found.lacking
        assert found.blocks == 1
        assert sum(part.value for part in found.parts) == pytest.approx(1)
        assert 0 < found.part("dispatch").value < 1

    @pytest.mark.parametrize("run", ["mirrored"], indirect=True)
    def test_a_lever_is_measured_beside_the_cell_as_it_is(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tries, "MOST_TRIES", 1)
        monkeypatch.setattr("harness.run.kinds.tries.settings_for", lambda _: AbSettings(Margins(), looks=(2,)))
        with handed_in():
            [one] = tries.try_levers(run.path)
        assert one.judged, one.reason
        assert one.comparison is not None
        assert {trial.status for trial in load_run(run.path.parent / str(one.record.run_id)).trials} == {"ok"}


@pytest.mark.slow
@pytest.mark.xdist_group("explain")
def test_a_pipeline_is_an_instrument_whatever_could_be_proved_of_it_unless_its_passes_are_long(tmp_path: Path) -> None:
    own = "tests.engines.tensorflow.own_inputs"
    data = [f"{own}:{name}" for name in ("uncounted", "random", "batches", "endless")]
    axes = {"strategy": ["none"], "model": [f"{own}:model"], "data": data, "batch_size": [4]}
    run = one_block(tmp_path, axes, arms=lambda _: (WHOLE, NO_INPUT, ONLY_INPUT))
    found = {str(one.cell.get("data")).partition(":")[2]: one for one in explanations_of(run)}
    told = {name for name, one in found.items() if one.headroom is not None}
    assert told == {"uncounted", "random", "batches"}
    assert "does not say how many examples it has" in found["endless"].lacking[ONLY_INPUT]
    steps = {trial.windows.steps_per_window for trial in run.trials if trial.side == ONLY_INPUT and trial.windows}
    assert min(steps) >= ROWS // 4, "a window is a pass at least"
