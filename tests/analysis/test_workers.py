"""Step times of a cell and of each of its workers."""

import numpy as np
import pytest

from harness.analysis.workers import STRAGGLES, step_times
from harness.record.cluster import ClusterRecord, MemberRecord
from harness.record.trial import TrialRecord
from tests.synthetic import failed, make_cell, make_run

CELL = make_cell("multi_worker_mirrored", 1, workers=3)


def run(*factors: float) -> list[TrialRecord]:
    """Trials whose worker w took `factors[w]` of the window."""

    def change(trial: TrialRecord) -> TrialRecord:
        assert trial.windows is not None
        own = [[factor * time for time in trial.windows.seconds] for factor in factors]
        return trial.model_copy(update={"windows": trial.windows.model_copy(update={"workers": own})})

    return make_run([CELL], faults=False, change=change)[1]


def test_percentiles_are_of_the_measured_windows_in_seconds_a_step() -> None:
    trials = make_run([CELL], faults=False)[1]
    times = step_times(trials)[CELL.cell_id].times
    assert times.windows == 40
    assert times.smallest_s <= times.p50_s <= times.p95_s <= times.p99_s <= times.largest_s
    windows = [trial.windows for trial in trials if trial.windows]
    measured = [time / w.steps_per_window for w in windows for time in w.seconds[w.measured_from :]]
    assert (times.smallest_s, times.largest_s) == (min(measured), max(measured))


def test_a_worker_that_the_others_wait_for_straggles() -> None:
    workers = step_times(run(0.9, 1.0, 0.9))[CELL.cell_id].workers
    assert [worker.straggles for worker in workers] == [False, True, False]
    assert workers[1].last_share == 1
    assert workers[1].behind == pytest.approx(1 / 0.9 - 1)


def alone(*seconds: list[float], blocks: int = 3) -> list[TrialRecord]:
    """Trials whose windows are alike, and in which worker w computes alone in `seconds[w]` a round."""

    def change(trial: TrialRecord) -> TrialRecord:
        assert trial.windows is not None
        alike = trial.windows.model_copy(update={"workers": [trial.windows.seconds] * len(seconds)})
        noise = 1 + 0.004 * trial.block
        members = [
            MemberRecord(name=f"worker {w}", address="a:1", compute_s=[own * noise**w for own in rounds])
            for w, rounds in enumerate(seconds)
        ]
        cluster = ClusterRecord(launcher="local", members=members)
        return trial.model_copy(update={"windows": alike, "cluster": cluster})

    return make_run([CELL], faults=False, change=change)[1][:blocks]


def test_a_worker_that_computes_longer_straggles_though_all_windows_are_alike() -> None:
    workers = step_times(alone([0.010, 0.011, 0.010], [0.020, 0.021, 0.020], [0.010, 0.010, 0.011]))[
        CELL.cell_id
    ].workers
    assert [worker.straggles for worker in workers] == [False, True, False]
    assert [worker.late for worker in workers] == [False, False, False]
    assert workers[1].alone is not None
    assert workers[1].alone.against_fastest.value == pytest.approx(2, rel=0.05)
    assert workers[1].alone.seconds == pytest.approx(0.02, rel=0.05)


def test_workers_that_compute_alike_but_for_noise_do_not_straggle() -> None:
    workers = step_times(alone([0.010, 0.013, 0.010], [0.0102, 0.0101, 0.014], [0.0101, 0.010, 0.0102]))[
        CELL.cell_id
    ].workers
    assert not any(worker.straggles for worker in workers)


def test_of_one_trial_its_rounds_decide() -> None:
    rounds = [0.010, 0.0101, 0.0099, 0.010, 0.0102]
    named = step_times(alone(rounds, [2 * s for s in rounds], rounds, blocks=1))[CELL.cell_id].workers
    assert [worker.straggles for worker in named] == [False, True, False]
    alike = step_times(alone(rounds, rounds[::-1], rounds, blocks=1))[CELL.cell_id].workers
    assert not any(worker.straggles for worker in alike)


def test_two_trials_that_do_not_agree_on_who_is_slow_name_nobody() -> None:
    fast, slow = [0.010] * 3, [0.020] * 3
    trials = [*alone(fast, slow, fast, blocks=1), *alone(slow, fast, fast)[1:2]]
    assert not any(worker.slower for worker in step_times(trials)[CELL.cell_id].workers)


def test_records_of_earlier_runs_have_no_times_alone() -> None:
    assert [worker.alone for worker in step_times(run(0.9, 1.0, 0.9))[CELL.cell_id].workers] == [None] * 3


def test_a_lag_of_less_than_2_percent_is_none() -> None:
    assert not any(worker.straggles for worker in step_times(run(0.99, 1.0, 0.99))[CELL.cell_id].workers)


@pytest.mark.parametrize(("behind", "found"), [(1.0, (0.0, 0.05)), (1.15, (0.95, 1.0))])
@pytest.mark.parametrize("scatter", [0.03, 0.07, 0.1])
def test_equal_workers_whose_windows_scatter_by_themselves_are_called_late_less_than_5_times_in_100(
    behind: float, found: tuple[float, float], scatter: float
) -> None:
    chance = np.random.default_rng(7)

    def change(trial: TrialRecord) -> TrialRecord:
        assert trial.windows is not None
        times = np.exp(chance.normal(0, scatter, (2, len(trial.windows.seconds)))) * [[1.0], [behind]]
        return trial.model_copy(update={"windows": trial.windows.model_copy(update={"workers": times.tolist()})})

    cell = make_cell("multi_worker_mirrored", 1, workers=2)
    trials = make_run([cell], faults=False)[1]
    cells = [step_times(map(change, trials))[cell.cell_id].workers for _ in range(200)]
    late = sum(any(worker.late for worker in of) for of in cells) / len(cells)
    beyond_half = sum(max(worker.last_share for worker in of) > 0.5 for of in cells) / len(cells)
    assert found[0] <= late <= found[1]
    assert beyond_half > 0.5, "who was last more often than not is no evidence by itself"


def test_a_worker_that_computes_2_percent_longer_is_called_slower_less_than_5_times_in_100(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # a fifth shorter it would be called 4 instead of 2.5 times in 100, which thousands of runs would tell apart
    chance = np.random.default_rng(3)

    def slower() -> bool:
        own = np.exp(chance.normal(0, 0.02, (4, 2, 1)) + chance.normal(0, 0.05, (4, 2, 9))) * [[1.0], [1 + STRAGGLES]]
        trials = [alone(*of.tolist(), blocks=1)[0] for of in own]
        return step_times(trials)[CELL.cell_id].workers[1].slower

    called = sum(slower() for _ in range(150))
    monkeypatch.setattr("harness.analysis.workers.CONFIDENCE", 0.5)
    of_half = sum(slower() for _ in range(150))
    assert called <= 0.05 * 150 < of_half, "an interval that holds the truth every other time would be found out"


def test_one_process_has_no_workers_and_a_failed_trial_no_times() -> None:
    assert step_times(make_run([make_cell()], faults=False)[1])[make_cell().cell_id].workers == ()
    crashed = make_run([CELL], faults=False, change=lambda r: failed(r, "crashed", "x"))[1]
    assert step_times(crashed) == {}


def test_trials_with_another_number_of_workers_are_left_out_of_the_workers_only() -> None:
    trials = [*run(0.9, 1.0, 0.9), *make_run([CELL], faults=False)[1]]
    found = step_times(trials)[CELL.cell_id]
    assert found.times.windows == 80
    assert [worker.times.windows for worker in found.workers] == [40, 40, 40]
