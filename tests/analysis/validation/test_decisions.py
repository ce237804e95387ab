"""The decisions of a validation: of whole rounds only, each as `ab` would have made it from its own blocks."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import stats

from harness.analysis.comparison import comparison_of_ab
from harness.analysis.comparison.pairs import estimate_of, pairs_of
from harness.analysis.estimates.verdict import Margins
from harness.analysis.validation.decisions import Estimator, decisions_of, judge_pairs
from harness.record import Run
from harness.record.trial import Phases, Plant
from tests.comparisons import ab_run, sweep_run
from tests.synthetic import make_cell
from tests.validations import Arm, Round, slow, validation_run

QUIET = [0.001, -0.002, 0.0015, -0.001, 0.0005, 0.0]
NOISY = [0.012, -0.011, 0.004, -0.013, 0.009, -0.001]
MARGINS = Margins()


def wanted(logs: list[float], half_width: float = 0.01) -> int:
    """⌈(t_5·s/h)²⌉ by scipy, at least six."""
    return max(6, math.ceil((float(stats.t.ppf(0.975, 5)) * float(np.std(logs, ddof=1)) / half_width) ** 2))


def made(run: Run) -> list[tuple[int, str | None, str, int]]:
    """(round, what was planted, verdict, blocks) of each decision."""
    return [
        (one.round, one.plant.kind if one.plant else None, one.verdicts.wall.verdict, len(one.pairs))
        for one in decisions_of(run.manifest, run.trials)
    ]


def test_every_arm_with_an_opponent_is_one_decision_in_the_order_of_rounds() -> None:
    five = [value - 0.05 for value in QUIET]
    rounds = [
        Round([Arm(QUIET), slow("device_work", 0.05, five)]),
        Round([Arm(QUIET), slow("input_stall", 0.03, five)]),
    ]
    assert made(validation_run(rounds)) == [
        (0, None, "equivalent", 6),
        (0, "device_work", "slower", 6),
        (1, None, "equivalent", 6),
        (1, "input_stall", "slower", 6),
    ]


def test_an_arm_is_decided_against_its_own_opponent() -> None:
    """arm1 is 10 % faster than a, and so is arm2: between those two there is no difference."""
    faster = [value + 0.1 for value in QUIET]
    run = validation_run([Round([Arm(QUIET), Arm(faster), Arm(faster, against="arm1")])])
    assert [verdict for _, _, verdict, _ in made(run)] == ["equivalent", "faster", "equivalent"]
    assert decisions_of(run.manifest, run.trials)[2].values == pytest.approx([0.0] * 6)


def test_what_was_decided_is_kept_with_all_that_it_rests_on() -> None:
    cell = make_cell("none", 1)
    run = validation_run([Round([slow("slow_replica", 0.02, QUIET)], cell=cell)])
    [one] = decisions_of(run.manifest, run.trials)
    assert one.cell == cell
    assert one.plant == Plant(kind="slow_replica", share=0.02)
    assert one.values == pytest.approx(QUIET)
    assert [pair.block for pair in one.pairs] == [0, 1, 2, 3, 4, 5]


def test_a_decision_is_what_ab_makes_of_the_same_differences() -> None:
    for logs, pilot in ((NOISY, 6), ([*NOISY, 0.02, -0.03, 0.01], 6), ([v - 0.03 for v in NOISY], 6)):
        validated = validation_run([Round([Arm(logs)], pilot=pilot)], half_width=0.0001)
        alone = ab_run(logs, pilot=pilot if len(logs) > pilot else None)
        [one] = decisions_of(validated.manifest, validated.trials)
        expected = comparison_of_ab(alone).rows[0].verdicts
        assert one.verdicts.wall.verdict == expected.wall.verdict
        assert one.verdicts.cpu_verdict == expected.cpu_verdict
        assert one.verdicts.wall.estimate is not None
        assert expected.wall.estimate is not None
        assert one.verdicts.wall.estimate.log_bounds() == pytest.approx(expected.wall.estimate.log_bounds())
        assert one.verdicts.wall.estimate.method == expected.wall.estimate.method


# unfinished rounds


def test_a_round_whose_second_stage_is_not_planned_gives_no_decision() -> None:
    run = validation_run([Round([Arm(QUIET)]), Round([Arm(QUIET)], planned=False)])
    assert [number for number, *_ in made(run)] == [0]


@pytest.mark.parametrize(("block", "left"), [(7, [0]), (3, [1]), (13, [0])])
def test_a_round_that_lacks_a_block_gives_no_decision(block: int, left: list[int]) -> None:
    """Blocks 0 to 5 and 6 to 11 are the pilots, 12 to 14 the second stage of round 1."""
    run = validation_run([Round([Arm(QUIET), Arm(QUIET)]), Round([Arm([*NOISY, 0.0, 0.0, 0.0]), Arm([0.0] * 9)])])
    assert {number for number, *_ in made(run)} == {0, 1}
    half = [trial for trial in run.trials if not (trial.block == block and trial.side == "arm1")]
    assert sorted({number for number, *_ in made(replace(run, trials=half))}) == left


def test_an_interrupted_trial_is_as_none() -> None:
    run = validation_run([Round([Arm(QUIET)])])
    changes = {"status": "interrupted", "throughput_examples_per_s": None}
    stopped = [trial.model_copy(update=changes) if trial.block == 5 else trial for trial in run.trials]
    assert made(replace(run, trials=stopped)) == []


def test_a_run_that_is_no_validation_has_no_decisions() -> None:
    sweep = sweep_run("sweep")
    assert decisions_of(sweep.manifest, sweep.trials) == ()


# how many blocks


def test_a_decision_takes_the_blocks_that_its_own_pilot_asks_for_and_no_more() -> None:
    planned = wanted(NOISY)
    assert planned > 7
    tail = [0.5] * (planned - 6)  # would turn the quiet arm's verdict, had it looked
    run = validation_run([Round([Arm([*QUIET, *tail]), Arm([*NOISY, *[0.0] * (planned - 6)])])])
    assert made(run) == [(0, None, "equivalent", 6), (0, None, made(run)[1][2], planned)]


def test_the_most_blocks_are_those_of_the_plan() -> None:
    wild = [10 * value for value in NOISY]
    run = validation_run([Round([Arm([*wild, *[0.0] * 14])])], max_blocks=9)
    assert made(run)[0][3] == 9


def test_blocks_of_the_pilot_in_which_a_side_crashed_do_not_count_as_its_pilot() -> None:
    logs: list[float | None] = [NOISY[0], None, *NOISY[2:], 0.001, 0.002]
    run = validation_run([Round([Arm(logs)])], half_width=0.012)
    [one] = decisions_of(run.manifest, run.trials)
    kept = [value for value in NOISY if value != NOISY[1]]
    needed = math.ceil((float(stats.t.ppf(0.975, 4)) * float(np.std(kept, ddof=1)) / 0.012) ** 2)
    assert [pair.block for pair in one.pairs] == [0, 2, 3, 4, 5, 6, 7][: max(5, needed)]
    assert one.verdicts.wall.estimate is not None
    assert one.verdicts.wall.estimate.degrees_of_freedom == 4


def test_an_arm_that_never_ran_is_an_invalid_decision_and_not_a_missing_one() -> None:
    run = validation_run([Round([Arm(QUIET), Arm([None] * 6)])])
    assert made(run) == [(0, None, "equivalent", 6), (0, None, "invalid", 0)]
    assert "no block gave a pair" in (decisions_of(run.manifest, run.trials)[1].verdicts.wall.reason or "")


def test_one_pair_is_a_decision_that_cannot_be_known() -> None:
    assert made(validation_run([Round([Arm([0.2, *[None] * 5])])])) == [(0, None, "undecided", 1)]


# judging


def by(pilot: int | None) -> Estimator:
    """Stein's estimator after a first stage of so many blocks."""
    return partial(estimate_of, pilot=pilot)


def test_the_second_stage_keeps_the_pilots_interval() -> None:
    pairs = pairs_of(ab_run([*NOISY, 0.0, 0.0]).trials)
    stein, plain = (judge_pairs(pairs, by(pilot), MARGINS).wall.estimate for pilot in (6, None))
    assert stein is not None
    assert plain is not None
    assert (stein.method, stein.degrees_of_freedom) == ("Stein t", 5)
    assert stein.deviation == pytest.approx(float(np.std(NOISY, ddof=1)))
    assert (plain.method, plain.degrees_of_freedom) == ("paired t", 7)


def test_processor_time_is_judged_only_where_every_pair_has_it() -> None:
    run = ab_run([value - 0.05 for value in QUIET], cpu=QUIET)
    pairs = pairs_of(run.trials)
    verdicts = judge_pairs(pairs, by(None), MARGINS)
    assert (verdicts.wall.verdict, verdicts.cpu_verdict) == ("slower", "equivalent")
    blind = pairs[0].b.model_copy(update={"cpu_seconds_per_example": 0.0})
    without = judge_pairs([replace(pairs[0], b=blind), *pairs[1:]], by(None), MARGINS)
    assert (without.wall.verdict, without.cpu) == ("slower", None)


def test_without_a_pair_there_is_no_verdict() -> None:
    assert judge_pairs([], by(0), MARGINS).wall.verdict == "invalid"


def test_what_a_decision_took_is_all_its_trials_did_but_wait() -> None:
    run = validation_run([Round([Arm(QUIET)])])
    phases = Phases(start_s=1, build_s=2, first_step_s=3, check_s=4, exit_s=5, warmup_s=6, steady_s=7, waiting_s=1000)
    timed = [trial.model_copy(update={"phases": phases}) for trial in run.trials]
    [one] = decisions_of(run.manifest, timed)
    assert one.seconds == 6 * 2 * (1 + 2 + 3 + 4 + 5 + 6 + 7)
