"""Sweeps that train by the user's own code, by real TensorFlow: text that no data source has, and steps of a model's
own."""

import pytest

from harness.record import Run, TrialRecord
from tests.cli.owned import ALIKE, ASKED, SPREAD, grouped
from tests.cli.real import only_run, run
from tests.docs.printed import OWN_TEXT, short

pytestmark = pytest.mark.slow

TRAINED = "tests.engines.tensorflow.own_trained"
OWN_STEP, METERED = "benchmarks.own_train_step:make_model", f"{TRAINED}:metered"
WRONG = f"{TRAINED}:unscaled,{TRAINED}:idle"


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The text classifier of benchmarks/, integer tokens into an Embedding and an LSTM, alone and on two replicas: as
    printed, but in both loops."""
    folder = tmp_path_factory.mktemp("text")
    done = run(*short(OWN_TEXT), "--loop=custom,fit", folder=folder)
    assert done.returncode == 0, done.stderr
    return only_run(folder / "results")


def test_a_text_classifier_is_proved_under_each_strategy_and_loop(text: Run) -> None:
    cells = {tuple(trial.cell.get(key) for key in ("strategy", "replicas", "loop")) for trial in text.trials}
    assert cells == {(*of, loop) for of in (("none", 1), ("mirrored", 2)) for loop in ("custom", "fit")}
    for trial in text.trials:
        assert (trial.status, trial.reason) == ("ok", None)
        assert trial.checks.complete
        sight = {str(fault): share for fault, share in (trial.checks.sight or {}).items()}
        assert min(sight.values()) > 10
        assert ("missing" in sight) == (trial.cell.replicas_in_sync > 1)


def test_its_record_tells_what_the_input_is_made_of_and_counts_what_was_asked_for(text: Run) -> None:
    for trial in text.trials:
        assert trial.cell.own_code == {
            "model": "benchmarks.own_text:make_model",
            "data": "benchmarks.own_text:examples",
        }
        assert trial.cell.work.quantity.many == "tokens"
        assert trial.step_time_s is not None
        assert trial.throughput == pytest.approx(40 * 8 * trial.cell.replicas_in_sync / trial.step_time_s)
        assert trial.executed.input[:2] == ["TensorSlice", "Cache"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[TrialRecord]]:
    """Trials of models with a train_step or compute_loss of their own, by the model: alone, on two replicas by a custom
    loop and on three by `fit`, and one of them on two workers, as `tests/docs/test_run_as_printed.py` another."""
    left_out = (
        f"{ALIKE}; strategy=multi_worker_mirrored replicas=1,3; strategy=mirrored replicas=2 loop=fit; "
        f"strategy=mirrored replicas=3 loop=custom; model={METERED} strategy=mirrored; model={METERED} loop=fit; "
        f"model={OWN_STEP},{WRONG} strategy=multi_worker_mirrored"
    )
    asked = [f"--model={OWN_STEP},{METERED},{WRONG}", *SPREAD, "--replicas=1,2,3", f"--exclude={left_out}"]
    folder = tmp_path_factory.mktemp("trained")
    run("sweep", *ASKED, *asked, "--optimizer=sgd", folder=folder)
    return grouped(folder, "model")


def test_a_model_with_a_train_step_of_its_own_is_trained_by_it_and_proved_in_either_loop(
    trained: dict[str, list[TrialRecord]],
) -> None:
    trials = trained[OWN_STEP]
    assert {(trial.cell.strategy, trial.cell.replicas, trial.cell.get("loop")) for trial in trials} == {
        ("none", 1, "custom"),
        ("none", 1, "fit"),
        ("mirrored", 2, "custom"),
        ("mirrored", 3, "fit"),
    }
    for trial in trials:
        assert (trial.status, trial.reason, trial.checks.complete) == ("ok", None, True)


def test_two_workers_train_by_it_and_the_loss_of_both_is_the_one_that_is_reported(
    trained: dict[str, list[TrialRecord]],
) -> None:
    trials = trained[METERED]
    assert {(trial.cell.get("workers"), trial.cell.replicas) for trial in trials} == {(1, 1), (2, 2)}
    for trial in trials:
        assert (trial.status, trial.reason, trial.checks.loss) == ("ok", None, True)


@pytest.mark.parametrize(
    ("model", "alone", "says"),
    [
        ("unscaled", "ok", "away from the single-device reference"),
        ("idle", "wrong_result", "updates were scheduled and 0 were applied"),
    ],
)
def test_a_train_step_that_adds_up_too_much_is_a_wrong_result_of_several_replicas_and_one_that_updates_nothing_of_any(
    trained: dict[str, list[TrialRecord]], model: str, alone: str, says: str
) -> None:
    trials = trained[f"{TRAINED}:{model}"]
    assert {(trial.cell.replicas_in_sync, trial.cell.get("loop")) for trial in trials} == {
        (1, "custom"),
        (1, "fit"),
        (2, "custom"),
        (3, "fit"),
    }
    for trial in trials:
        several = trial.cell.replicas_in_sync > 1
        assert trial.status == ("wrong_result" if several else alone)
        assert not several or says in str(trial.reason)
