"""What a validation's record says, against numbers worked by hand: false alarms, power, floors, other tools."""

import json
import math
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from harness.analysis.estimates.power import smallest_effect
from harness.analysis.validation.decisions import decisions_of
from harness.analysis.validation.summary import _smallest, validation_of
from harness.errors import HarnessError
from harness.record.manifest import LooksRecord, PlanRecord, ValidationPlan
from harness.record.trial import Phases, Plant
from harness.record.validation import ValidationRecord, load_validation, write_validation
from tests.analysis.validation.rounds import WIGGLE, WILD, again, around, at_speeds, effect, is_rate
from tests.comparisons import FACTS, MIRRORED
from tests.synthetic import make_cell
from tests.validations import Arm, Round, slow, validation_run

ONE = make_cell("none", 1)


# effects


def test_false_alarms_are_what_was_called_faster_or_slower_of_the_same_thing_twice() -> None:
    record = validation_of(validation_run(again(0.001, -0.02, 0.0, 0.02, -0.002, 0.05)))
    found = effect(record)
    assert found.verdicts == {"equivalent": 3, "slower": 1, "faster": 2}
    assert is_rate(found.false_alarms, 3, 6)
    assert is_rate(found.slower, 1, 6)
    assert is_rate(found.equivalent, 3, 6)


def test_power_is_how_often_what_was_planted_is_called_slower() -> None:
    rounds = [
        Round([slow("device_work", 0.05, around(-0.05)), slow("input_stall", 0.03, around(-0.03))]),
        Round([slow("device_work", 0.05, around(-0.002)), slow("input_stall", 0.03, WILD)]),
        Round([slow("device_work", 0.03, around(-0.03)), slow("input_stall", 0.03, around(0.04))]),
    ]
    record = validation_of(validation_run(rounds))
    assert is_rate(effect(record, "device_work", 0.05).slower, 1, 2)
    assert is_rate(effect(record, "device_work", 0.03).slower, 1, 1)
    stall = effect(record, "input_stall", 0.03)
    assert is_rate(stall.slower, 1, 3)
    assert stall.verdicts == {"slower": 1, "undecided": 1, "faster": 1}
    assert stall.false_alarms is None
    assert len(record.effects) == 3


def test_what_was_measured_is_the_mean_of_the_decisions_and_its_interval_takes_a_decision_for_one() -> None:
    means = (-0.045, -0.05, -0.052)
    rounds = [Round([slow("device_work", 0.05, around(mean))]) for mean in means]
    found = effect(validation_of(validation_run(rounds)), "device_work", 0.05)
    expected = stats.ttest_1samp(means, 0.0).confidence_interval(0.95)
    assert found.measured == pytest.approx(statistics.mean(means))
    assert (found.measured_low, found.measured_high) == pytest.approx((expected.low, expected.high))
    assert found.deviation == pytest.approx(float(np.std(WIGGLE, ddof=1)))


def test_one_decision_has_no_interval_over_decisions() -> None:
    found = effect(validation_of(validation_run(again(0.004))))
    assert (found.measured, found.measured_low, found.measured_high) == (pytest.approx(0.004), None, None)


def test_blocks_and_seconds_are_the_typical_and_the_most() -> None:
    few, many = Round([Arm(WIGGLE)]), Round([Arm([*around(0, WILD), *[0.0] * 6])])
    run = validation_run([few, many, few])
    trials = [trial.model_copy(update={"phases": Phases(build_s=1.0, steady_s=2.0)}) for trial in run.trials]
    found = effect(validation_of(replace(run, trials=trials)))
    assert (found.blocks_median, found.blocks_most) == (6, 12)
    assert (found.seconds_median, found.seconds_most) == (6 * 2 * 3, 12 * 2 * 3)


def test_cells_kinds_and_sizes_are_told_apart() -> None:
    rounds = [
        Round([Arm(WIGGLE), slow("device_work", 0.05, around(-0.05))], cell=cell) for cell in (MIRRORED, ONE, MIRRORED)
    ]
    record = validation_of(validation_run(rounds))
    assert sorted((one.cell.label, one.plant or "", one.slower.of) for one in record.effects) == [
        (MIRRORED.label, "", 2),
        (MIRRORED.label, "device_work", 2),
        (ONE.label, "", 1),
        (ONE.label, "device_work", 1),
    ]
    assert {floor.cell for floor in record.floors} == {MIRRORED}  # one decision alone has no floor


# floors


def test_the_noise_floor_of_few_decisions_is_1_96_of_their_root_mean_square() -> None:
    means = (0.004, -0.003, 0.001)
    [floor] = validation_of(validation_run(again(*means))).floors
    assert floor.paired == pytest.approx(math.expm1(1.96 * math.sqrt((16 + 9 + 1) / 3) / 1000))


def test_the_noise_floor_of_many_is_what_95_per_cent_stay_below() -> None:
    means = [0.0001 * number * (-1) ** number for number in range(1, 22)]
    [floor] = validation_of(validation_run(again(*means))).floors
    assert floor.paired == pytest.approx(math.expm1(0.0020))  # the 20th of 21, at 95 % of the way


def test_planted_decisions_do_not_raise_the_floor() -> None:
    rounds = [Round([Arm(around(mean)), slow("device_work", 0.1, around(-0.1))]) for mean in (0.003, -0.003)]
    [floor] = validation_of(validation_run(rounds)).floors
    assert floor.paired == pytest.approx(math.expm1(1.96 * 0.003))


@pytest.mark.parametrize("arms", [1, 2])
def test_the_floor_at_different_times_compares_a_round_with_the_next_and_never_with_itself(arms: int) -> None:
    record = validation_of(at_speeds(1.0, 1.06, 1.0, 0.98, arms=arms))
    [floor] = record.floors
    logs = [math.log(1.06), math.log(0.98)]
    assert floor.unpaired == pytest.approx(math.expm1(1.96 * math.sqrt(statistics.mean(x * x for x in logs))), rel=1e-3)
    assert is_rate(floor.unpaired_false_alarms, 2, 2)
    assert floor.paired < 0.001


def test_rounds_meet_in_a_decision_whose_sides_hold_the_same_placebo() -> None:
    """The placebo of work makes steps longer: that is no change of the machine."""
    work, stall = Plant(kind="device_work", share=0), Plant(kind="input_stall", share=0)

    def held(plant: Plant) -> Round:
        return Round([Arm(WIGGLE, plant)], speeds=[1.1 if plant == work else 1.0] * 6)

    [floor] = validation_of(validation_run([held(plant) for plant in (work, work, stall, stall, work, stall)])).floors
    assert is_rate(floor.unpaired_false_alarms, 0, 2)
    assert floor.unpaired is not None
    assert floor.unpaired < 0.001
    [floor] = validation_of(validation_run([held(plant) for plant in (work, stall)])).floors
    assert floor.unpaired is None


def test_a_steady_machine_raises_no_alarm_between_rounds() -> None:
    [floor] = validation_of(at_speeds(1.0, 1.0, 1.002, 1.0)).floors
    assert is_rate(floor.unpaired_false_alarms, 0, 2)


def test_the_smallest_effect_follows_from_the_spread_of_pairs_and_the_most_blocks() -> None:
    run = validation_run([Round([Arm(WIGGLE), slow("device_work", 0.03, WILD)])] * 2)
    [floor] = validation_of(run).floors
    plan = run.manifest.part(ValidationPlan)
    [again] = [effect for effect in validation_of(run).effects if effect.plant is None]
    assert again.deviation is not None
    assert floor.smallest_effect == smallest_effect(again.deviation, plan.max_blocks, plan.delta)


@pytest.mark.parametrize(("looks", "level"), [(None, 0.025), ([0.0046, 0.0093, 0.017], 0.017)])
def test_the_smallest_effect_is_held_against_what_the_last_look_asks_for(
    looks: list[float] | None, level: float
) -> None:
    run = validation_run([Round([Arm(WIGGLE)])] * 2)
    record = LooksRecord(after=[5, 8, 12], different=looks, equivalent=looks) if looks else None
    sealed = PlanRecord.sealed(1, 1, [[["a"]]], looks=record)
    found = _smallest(decisions_of(run.manifest, run.trials), run.manifest.model_copy(update={"plans": [sealed]}))
    quantiles = stats.t.ppf(1 - level, 11) + stats.t.ppf(0.9, 11)
    by_last = math.expm1(math.log1p(0.01) + quantiles * np.std(WIGGLE, ddof=1) / math.sqrt(12))
    epsilon = run.manifest.part(ValidationPlan).epsilon
    assert found == pytest.approx(max(by_last, epsilon) if looks else by_last)


@pytest.mark.parametrize("deviation", [1.0, 100.0])
def test_on_a_machine_so_noisy_that_nothing_planted_would_be_found_there_is_no_smallest_effect(
    deviation: float,
) -> None:
    rounds = [Round([Arm([deviation, -deviation])], pilot=2)] * 2
    [floor] = validation_of(validation_run(rounds, max_blocks=2)).floors
    assert floor.smallest_effect is None


# the whole


def test_a_record_is_complete_only_when_every_round_is() -> None:
    rounds = again(0.001, 0.002, -0.001)
    assert validation_of(validation_run(rounds)).complete
    assert not validation_of(validation_run([*rounds[:2], replace(rounds[2], planned=False)])).complete
    run = validation_run(rounds)
    assert not validation_of(replace(run, trials=run.trials[:-1])).complete


def test_a_validation_of_which_nothing_is_complete_is_a_record_too() -> None:
    run = validation_run(again(0.001))
    record = validation_of(replace(run, trials=[]))
    assert (record.complete, record.effects, record.floors, record.rules) == (False, [], [], [])


def test_what_was_set_out_is_in_the_record() -> None:
    record = validation_of(validation_run(again(0.001, pilot=6), quick=True, delta=0.02, epsilon=0.05, max_blocks=9))
    assert (record.delta, record.epsilon, record.quick) == (0.02, 0.05, True)
    assert (record.pilot_blocks, record.max_blocks, record.windows) == (6, 9, 10)
    assert (record.machine_id, record.facts) == (FACTS["machine.id"], FACTS)


def test_the_record_reads_back_as_it_was_written(tmp_path: Path) -> None:
    rounds = [*again(0.001, -0.02, 0.003), Round([Arm(WIGGLE), slow("slow_replica", 0.02, around(-0.02))])]
    record = validation_of(validation_run(rounds))
    write_validation(tmp_path, record)
    assert load_validation(tmp_path) == record
    assert "NaN" not in (tmp_path / "validation.json").read_text()
    assert ValidationRecord.model_validate(json.loads(record.model_dump_json())) == record


def test_a_decision_without_a_pair_is_counted_and_enters_no_figure() -> None:
    nothing: list[float | None] = [None] * 6
    record = validation_of(validation_run([*again(0.004, -0.003), Round([Arm(nothing)])]))
    found = effect(record)
    assert found.verdicts == {"equivalent": 2, "invalid": 1}
    assert is_rate(found.false_alarms, 0, 3)
    assert found.measured == pytest.approx(0.0005)
    assert record.floors[0].paired == pytest.approx(math.expm1(1.96 * math.sqrt(12.5) / 1000))
    assert record.complete


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_a_figure_that_is_not_finite_is_an_error_and_never_a_rate(bad: float) -> None:
    run = validation_run(again(0.001, 0.002))
    spoilt = run.trials[3].model_copy(update={"throughput_examples_per_s": bad})
    with pytest.raises(HarnessError):
        validation_of(replace(run, trials=[*run.trials[:3], spoilt, *run.trials[4:]]))
