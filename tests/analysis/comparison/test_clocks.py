"""Two clocks: what processor time adds to the verdict on wall time, and when there is none."""

import math
from itertools import product
from typing import get_args

import pytest

from harness.analysis.comparison.clocks import CPU_WORDS, CpuVerdict, Verdicts, cpu_sample
from harness.analysis.estimates.intervals import Sample, log_mean, log_ratio
from harness.analysis.estimates.verdict import Margins, Verdict, invalid, judge
from harness.errors import HarnessError
from harness.record.trial import TrialRecord
from tests.record.examples import trial

MARGINS = Margins(0.01, 0.03)
MEANS: dict[Verdict, float] = {"faster": 0.2, "slower": -0.2, "equivalent": 0.0, "undecided": 0.02}


def verdicts(wall: Verdict, cpu: Verdict | None) -> Verdicts:
    """Both clocks, each with the given verdict."""
    return Verdicts(_judged(wall), None if cpu is None else _judged(cpu))


def _judged(verdict: Verdict):  # type: ignore[no-untyped-def]
    if verdict == "invalid":
        return invalid("a side failed", MARGINS)
    spread = 0.05 if verdict == "undecided" else 0.001
    found = judge(log_mean([MEANS[verdict] - spread, MEANS[verdict], MEANS[verdict] + spread], "paired t"), MARGINS)
    assert found.verdict == verdict
    return found


def cpu_trials(*seconds: float | None) -> list[TrialRecord]:
    return [trial(block, cpu_seconds_per_example=value) for block, value in enumerate(seconds)]


def test_every_verdict_has_a_word_for_processor_time() -> None:
    assert set(CPU_WORDS) == set(get_args(Verdict))
    assert set(CPU_WORDS.values()) == set(get_args(CpuVerdict))


def test_processor_time_is_told_as_less_or_more_of_it() -> None:
    assert verdicts("faster", "faster").cpu_verdict == "less"
    assert verdicts("slower", "slower").cpu_verdict == "more"
    assert verdicts("slower", None).cpu_verdict is None


def test_the_ratio_of_processor_time_is_seconds_of_b_over_a() -> None:
    both = verdicts("slower", "slower")
    ratio = both.cpu_ratio
    assert ratio is not None
    assert ratio.value == pytest.approx(math.exp(0.2))
    assert ratio.low is not None
    assert ratio.high is not None
    assert 1 < ratio.low < ratio.value < ratio.high
    assert verdicts("slower", None).cpu_ratio is None
    assert verdicts("slower", "invalid").cpu_ratio is None


@pytest.mark.parametrize(
    ("wall", "cpu", "words"),
    [
        ("slower", "equivalent", "B waits more"),
        ("slower", "faster", "fewer cores"),
        ("equivalent", "slower", "more cores busy"),
        ("equivalent", "faster", "leaves more of the cores free"),
        ("faster", "slower", "buys its speed with more cores"),
        ("faster", "equivalent", "B waits less"),
        ("undecided", "slower", "whether or not that costs time"),
        ("undecided", "faster", "whether or not that saves time"),
    ],
)
def test_a_disagreement_says_what_kind_of_difference_it_is(wall: Verdict, cpu: Verdict, words: str) -> None:
    said = verdicts(wall, cpu).disagreement
    assert said is not None
    assert words in said


def test_clocks_that_agree_or_cannot_say_do_not_disagree() -> None:
    agree = {("faster", "faster"), ("slower", "slower"), ("equivalent", "equivalent")}
    for wall, cpu in product(get_args(Verdict), repeat=2):
        said = verdicts(wall, cpu).disagreement
        unsure = wall == "invalid" or cpu in ("undecided", "invalid") or (wall, cpu) == ("undecided", "equivalent")
        assert (said is None) == (unsure or (wall, cpu) in agree), (wall, cpu)
    assert verdicts("slower", None).disagreement is None


def test_a_sample_of_processor_time_counts_examples_per_cpu_second() -> None:
    found = cpu_sample(cpu_trials(0.002, 0.004), ["0.0", "1.0"])
    assert found == Sample((-math.log(0.002), -math.log(0.004)), ("0.0", "1.0"), (0, 1))


def test_less_processor_time_is_judged_faster() -> None:
    groups = ["0.0", "1.0", "2.0"]
    a, b = cpu_sample(cpu_trials(0.0040, 0.0041, 0.0042), groups), cpu_sample(cpu_trials(0.002, 0.002, 0.0021), groups)
    assert a is not None
    assert b is not None
    found = judge(log_ratio(b, a), MARGINS)
    assert found.verdict == "faster"
    assert Verdicts(found, found).cpu_verdict == "less"


@pytest.mark.parametrize("missing", [None, 0.0])
def test_without_a_figure_for_every_trial_there_is_no_second_clock(missing: float | None) -> None:
    assert cpu_sample(cpu_trials(0.002, missing), ["0.0", "1.0"]) is None
    assert cpu_sample([], []) is None


def test_a_figure_of_processor_time_that_is_no_number_is_an_error() -> None:
    broken = cpu_trials(0.002, 0.002)[1].model_copy(update={"cpu_seconds_per_example": math.inf})
    with pytest.raises(HarnessError, match="cannot be averaged or compared"):
        cpu_sample([broken], ["0.0"])
    broken = broken.model_copy(update={"cpu_seconds_per_example": math.nan})
    with pytest.raises(HarnessError, match="cannot be averaged or compared"):
        cpu_sample([broken], ["0.0"])
