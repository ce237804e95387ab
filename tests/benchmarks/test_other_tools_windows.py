"""Other tools' rules in a validation: the windows they are given, and what counts as an alarm."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from benchmarks.goals import other_tools
from benchmarks.goals.other_tools import RULES, rules_of
from harness.analysis.validation.summary import validation_of
from tests.analysis.validation.rounds import WIGGLE, WILD, again, around, at_speeds, effect, is_rate
from tests.validations import Arm, Round, slow, validation_run


@dataclass
class Spy:
    """A rule that remembers what it was given."""

    answers: list[str | None] = field(default_factory=list)
    seen: list[tuple[list[list[float]], list[list[float]]]] = field(default_factory=list)
    name: str = "spy"
    words: str = "remembers"

    def alarm(self, a: Sequence[Sequence[float]], b: Sequence[Sequence[float]]) -> str | None:
        self.seen.append(([list(one) for one in a], [list(one) for one in b]))
        return self.answers.pop(0) if self.answers else None


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    made = Spy()
    monkeypatch.setattr(other_tools, "RULES", (made,))
    return made


def test_other_tools_are_given_the_seconds_a_step_of_every_measured_window(spy: Spy) -> None:
    run = validation_run(again(0.01))
    rules_of(run)
    [(a, b)] = spy.seen
    for side, got in (("a", a), ("arm0", b)):
        trials = [trial for trial in run.trials if trial.side == side]
        assert len(got) == len(trials) == 6
        for trial, values in zip(trials, got, strict=True):
            assert trial.windows is not None
            assert trial.windows.measured_from > 0
            assert trial.windows.steps_per_window > 1
            assert len(values) == len(trial.windows.seconds) - trial.windows.measured_from
            assert statistics.mean(values) == pytest.approx(trial.step_time_s)


def test_an_alarm_is_either_direction_for_the_same_thing_and_slower_for_what_was_planted(spy: Spy) -> None:
    spy.answers = ["faster", "slower", None]
    run = validation_run([Round([slow("device_work", 0.05, around(-0.05))])] * 3)
    [rule] = rules_of(run)
    assert (rule.tool, rule.plant, rule.share, rule.apart) == ("spy", "device_work", 0.05, False)
    assert is_rate(rule.alarms, 1, 3)
    spy.answers = ["faster", "slower", None]
    rules = rules_of(validation_run(again(0.0, 0.0, 0.0)))
    assert is_rate(next(rule.alarms for rule in rules if not rule.apart), 2, 3)


def test_one_after_the_other_is_a_of_one_round_against_b_of_the_next(spy: Spy) -> None:
    rules = rules_of(at_speeds(1.0, 1.1, 1.3, arms=2))
    assert [(rule.apart, rule.alarms.of) for rule in rules] == [(False, 6), (True, 2)]
    ratios = [statistics.mean(map(statistics.mean, b)) / statistics.mean(map(statistics.mean, a)) for a, b in spy.seen]
    assert ratios == pytest.approx([1.0] * 6 + [1.1, 1.3 / 1.1], rel=0.001)


def test_one_after_the_other_both_sides_have_as_many_windows(spy: Spy) -> None:
    many = Round([Arm([*WILD, *[0.0] * 6])])
    run = validation_run([Round([Arm(WIGGLE)]), many, Round([Arm(WIGGLE)])])
    first, *rest = run.trials
    assert first.windows is not None
    shorter = first.model_copy(
        update={"windows": first.windows.model_copy(update={"measured_from": first.windows.measured_from + 2})}
    )
    rules_of(replace(run, trials=[shorter, *rest]))
    apart = spy.seen[3:]
    assert [(len(a), len(b)) for a, b in apart] == [(6, 6), (6, 6)]
    assert [{len(trial) for trial in [*a, *b]} for a, b in apart] == [{8}, {10}]


def test_every_rule_that_there_is_is_applied() -> None:
    rules = rules_of(validation_run([*again(0.001, -0.001), Round([slow("device_work", 0.1, around(-0.1))])]))
    assert {rule.tool for rule in rules} == {rule.name for rule in RULES}
    assert len(rules) == 3 * len(RULES)
    planted = [rule for rule in rules if rule.plant and rule.tool == "pyperf compare_to"]
    assert [rule.alarms.count for rule in planted] == [1]


def test_a_decision_with_a_single_pair_is_no_matter_for_other_tools() -> None:
    single: list[float | None] = [0.2, *[None] * 5]
    run = validation_run([*again(0.001, 0.002), Round([Arm(single)])])
    assert effect(validation_of(run)).verdicts == {"equivalent": 2, "undecided": 1}
    assert {rule.alarms.of for rule in rules_of(run) if not rule.apart} == {2}
