"""The figure of workers: who straggles, by windows or by what each computes alone, and what is not said of it."""

from dataclasses import replace

import pytest

from harness.analysis import summarise
from harness.analysis.workers import step_times
from harness.record.trial import TrialRecord
from harness.report.figures import steps_figure, workers_figure
from harness.report.tables.sweep import steps_table
from tests.synthetic import computing, make_cell, make_run


def straggling(trial: TrialRecord) -> TrialRecord:
    """Worker 1 takes 6 % longer than worker 0 in every window."""
    assert trial.windows is not None
    own = [[time / 1.06 for time in trial.windows.seconds], trial.windows.seconds]
    return trial.model_copy(update={"windows": trial.windows.model_copy(update={"workers": own})})


def test_a_straggling_worker_is_named() -> None:
    cells = [make_cell("multi_worker_mirrored", 1, workers=2)]
    manifest, trials = make_run(cells, faults=False, change=straggling)
    picture = workers_figure(summarise(manifest, trials).workloads[0], step_times(trials), "fig")
    assert picture is not None
    assert "Stragglers: multi_worker_mirrored 2 workers" in picture.caption
    assert "worker 1 (6.0 % behind the fastest, last in 100 %)" in picture.caption
    assert [row["straggles"] for row in picture.data] == [False, True]


@pytest.mark.parametrize(
    ("tail", "found"),
    [
        (1.004, "No cell has a tail: 95 % of each cell's windows take less"),
        (1.2, "The longest tail is none ×1 b32's: 5 % of its windows take more than 1.20 times the median."),
    ],
)
def test_a_tail_that_is_none_is_not_called_the_longest(tail: float, found: str) -> None:
    manifest, trials = make_run([make_cell()], faults=False)
    [(cell_id, cell)] = step_times(trials).items()
    planted = replace(cell, times=replace(cell.times, p95_s=tail * cell.times.p50_s))
    picture = steps_figure(summarise(manifest, trials).workloads[0], {cell_id: planted}, "fig")
    assert picture is not None
    assert picture.caption.startswith(found)


def test_no_worker_of_a_run_that_has_not_finished_is_called_a_straggler() -> None:
    cells = [make_cell("multi_worker_mirrored", 1, workers=2)]
    manifest, trials = make_run(cells, faults=False, change=straggling, status="running")
    [work], times = summarise(manifest, trials).workloads, step_times(trials)
    picture = workers_figure(work, times, "fig")
    assert picture is not None
    assert "tragglers" not in picture.caption
    assert "Not judged" in picture.caption
    assert {row["straggles"] for row in picture.data} == {None}
    assert not any("straggles" in word for row in steps_table(work, times).rows for word in row)


def test_a_worker_that_computes_longer_is_named_though_lock_step_makes_all_windows_alike() -> None:
    cells = [make_cell("multi_worker_mirrored", 1, workers=2)]
    manifest, trials = make_run(cells, faults=False, change=lambda trial: computing(trial, 0.001, 0.002))
    picture = workers_figure(summarise(manifest, trials).workloads[0], step_times(trials), "fig")
    assert picture is not None
    assert (
        "worker 1 (its forward and backward alone take 2.00× [2.00 – 2.00] as long as the fastest's)" in picture.caption
    )
    assert [row["straggles"] for row in picture.data] == [False, True]
    assert picture.data[1]["alone_s"] == pytest.approx(0.002, rel=0.01)


def test_of_workers_that_compute_alike_the_caption_says_what_was_looked_at() -> None:
    cells = [make_cell("multi_worker_mirrored", 1, workers=2)]
    manifest, trials = make_run(cells, faults=False, change=lambda trial: computing(trial, 0.001, 0.001))
    picture = workers_figure(summarise(manifest, trials).workloads[0], step_times(trials), "fig")
    assert picture is not None
    assert "No worker's own forward and backward are shown to take more than 2 % longer" in picture.caption
    assert not any(row["straggles"] for row in picture.data)


def test_windows_alone_are_not_said_to_show_that_no_worker_is_slow() -> None:
    cells = [make_cell("multi_worker_mirrored", 1, workers=2)]

    def alike(trial: TrialRecord) -> TrialRecord:
        return computing(trial, 0.001, 0.001).model_copy(update={"cluster": None})

    manifest, trials = make_run(cells, faults=False, change=alike)
    picture = workers_figure(summarise(manifest, trials).workloads[0], step_times(trials), "fig")
    assert picture is not None
    assert "windows show no more than the lag at their end" in picture.caption


def test_a_worker_behind_in_one_block_and_ahead_in_the_other_is_not_said_to_be_within_two_per_cent() -> None:
    cells = [make_cell("multi_worker_mirrored", 1, workers=2)]

    def in_turns(trial: TrialRecord) -> TrialRecord:
        """Worker 1 takes 30 % longer in 2 of 3 blocks, and a hundredth less in the other."""
        assert trial.windows is not None
        shares = (1.01, 1.0) if trial.block == 0 else (1 / 1.3, 1.0)
        own = [[time * share for time in trial.windows.seconds] for share in shares]
        return trial.model_copy(update={"windows": trial.windows.model_copy(update={"workers": own}), "cluster": None})

    manifest, trials = make_run(cells, blocks=3, windows=5, faults=False, change=in_turns)
    picture = workers_figure(summarise(manifest, trials).workloads[0], step_times(trials), "fig")
    assert picture is not None
    assert picture.data[1]["behind_fastest"] > 0.02
    assert not any(row["straggles"] for row in picture.data)
    assert (
        "No worker is both more than 2 % behind at the end of its windows and last in most of them." in picture.caption
    )


def test_without_workers_there_is_no_figure_of_them() -> None:
    made = make_run()
    assert workers_figure(summarise(*made).workloads[0], step_times(made[1]), "fig") is None
