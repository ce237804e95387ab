"""Instruments: programs that lack what their name says and nothing else, timed beside the whole step."""

from collections import Counter
from pathlib import Path

import pytest

from harness.analysis.estimates.verdict import Margins
from harness.analysis.explain import explanations_of
from harness.engines.tensorflow.loops._instrument import _Holds, lacks_more
from harness.record import Run, TrialRecord, load_run
from harness.record.explain import ALONE, INSTRUMENTS, WHOLE
from harness.run.kinds import tries
from harness.run.kinds.decision import AbSettings
from harness.run.kinds.explain import ExplainRun, ExplainSettings, explain
from harness.run.request import asked_matrix
from harness.spec import sweep_from
from harness.spec.cell import trained
from tests.preloaded import handed_in

WORK = Counter({"MatMul": 12, "ReluGrad": 4})
REDUCED = Counter({"CollectiveReduceV2[ring]": 2})
STEP = _Holds(WORK, REDUCED, 8)


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("no_input", STEP),
        ("no_reduction", _Holds(WORK, Counter(), 8)),
        ("no_update", _Holds(WORK, REDUCED, 0)),
        ("forward_backward", _Holds(WORK, Counter(), 0)),
        ("forward", _Holds(Counter({"MatMul": 4}), Counter(), 0)),
        ("forward", _Holds(Counter({"MatMul": 4, "StopGradient": 2}), Counter(), 0)),
        ("empty", _Holds(Counter(), Counter(), 0)),
        ("reduction", _Holds(Counter(), REDUCED, 0)),
    ],
)
def test_an_instrument_that_lacks_what_its_name_says_is_taken(name: str, holds: _Holds) -> None:
    assert lacks_more(name, STEP, holds) is None


@pytest.mark.parametrize(
    ("name", "holds", "words"),
    [
        ("no_input", _Holds(WORK, Counter(), 8), "it reduces by nothing where"),
        ("no_reduction", STEP, "it still reduces, by 2 CollectiveReduceV2"),
        ("no_reduction", _Holds(WORK, Counter(), 4), "it changes variables 4 times where the whole step does 8 times"),
        ("no_update", STEP, "it changes variables 8 times, no fewer"),
        ("no_update", _Holds(Counter({"MatMul": 8}), REDUCED, 0), "it computes 8 MatMul where the whole step computes"),
        ("forward_backward", _Holds(Counter({"MatMul": 4}), Counter(), 0), "it computes 4 MatMul where"),
        ("forward", _Holds(Counter({"MatMul": 4, "ReluGrad": 2}), Counter(), 0), "it goes backward"),
        ("empty", _Holds(Counter({"MatMul": 4}), Counter(), 0), "it computes 4 MatMul"),
        ("reduction", _Holds(WORK, REDUCED, 0), "it computes 12 MatMul"),
        ("reduction", _Holds(Counter(), Counter({"AddN": 2}), 0), "it reduces by 2 AddN where the whole step"),
    ],
)
def test_an_instrument_that_lacks_more_or_less_is_refused_with_what_differs(
    name: str, holds: _Holds, words: str
) -> None:
    assert words in (lacks_more(name, STEP, holds) or "")


STRATEGIES = ("mirrored", "central_storage", "multi_worker_mirrored")


@pytest.fixture(scope="module", params=STRATEGIES)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One block of one cell of a strategy, with every arm; what more blocks add, the stand-in shows."""
    folder: Path = tmp_path_factory.mktemp("explain")
    two = {"workers": [2], "replicas": [1]} if request.param == "multi_worker_mirrored" else {"replicas": [2]}
    optimizer = "adam" if request.param == "central_storage" else "sgd"  # slots take long to trace
    axes = {"strategy": [request.param], **two, "batch_size": [8], "model": ["mlp"], "optimizer": [optimizer]}
    settings = {"trials": 2, "windows": 5, "max_warmup": 0, "window": 0.005, "data_dir": str(folder / "data")}
    sweep = sweep_from({**axes, **settings})
    matrix = asked_matrix(sweep)
    [cell] = [trained(cell) for cell in matrix.cells if cell.cell_id not in matrix.added_base]
    with handed_in(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(ExplainRun, "_left", lambda _: [0])
        return load_run(explain(ExplainSettings(sweep, [cell]), folder))


def last(run: Run, arm: str) -> TrialRecord:
    return [trial for trial in run.trials if trial.side == arm][-1]


@pytest.mark.slow
@pytest.mark.xdist_group("explain")
class TestOnTensorFlow:
    def test_the_whole_step_is_proved_and_instruments_are_measured_and_no_cells(self, run: Run) -> None:
        assert last(run, WHOLE).status == "ok"
        for arm in (*INSTRUMENTS, ALONE):
            trial = last(run, arm)
            assert (trial.status, trial.checks.gate) == ("unproved", "instrument"), trial.reason
            assert trial.checks.update is True

    def test_what_was_executed_shows_what_an_instrument_lacks(self, run: Run) -> None:
        reduced = {arm: bool(last(run, arm).executed.operations) for arm in (WHOLE, *INSTRUMENTS)}
        with_sums = {arm for arm, found in reduced.items() if found}
        assert with_sums == {WHOLE, "no_input", "no_update", "reduction"}

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
