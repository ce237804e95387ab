"""Other tools' rules: each decides as the tool itself would, checked by hand and against what is installed."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_benchmark.stats import Stats
from pytest_benchmark.utils import parse_compare_fail
from scipy import stats

from benchmarks.goals.other_tools import RULES, Asv, Pyperf, PytestBenchmark, ToolRule
from harness.errors import HarnessError

IDS = [rule.name for rule in RULES]
WINDOWS = st.lists(st.floats(0.5, 2), min_size=12, max_size=30)


def windows(seed: int, times: float = 1.0, spread: float = 0.01, trials: int = 6, each: int = 10) -> list[list[float]]:
    """Step times of trials that differ in nothing but their windows."""
    chance = np.random.default_rng(seed)
    return (0.01 * times * np.exp(spread * chance.standard_normal((trials, each)))).tolist()


def flat(trials: list[list[float]]) -> list[float]:
    return [value for trial in trials for value in trial]


def test_the_rules_are_told_apart_by_name_and_say_what_they_do() -> None:
    assert len(set(IDS)) == len(RULES)
    assert {rule.name.split()[0] for rule in RULES} == {"pyperf", "asv", "pytest-benchmark"}
    assert all(len(rule.words) > 30 for rule in RULES)


@pytest.mark.parametrize("rule", RULES, ids=IDS)
def test_every_rule_finds_a_large_slow_down_and_no_difference_between_equals(rule: ToolRule) -> None:
    a = windows(1)
    assert rule.alarm(a, windows(2, times=1.3)) == "slower"
    assert rule.alarm(a, a) is None


@pytest.mark.parametrize("rule", RULES, ids=IDS)
def test_a_large_gain_is_faster_where_a_tool_can_say_so(rule: ToolRule) -> None:
    expected = None if isinstance(rule, PytestBenchmark) else "faster"
    assert rule.alarm(windows(1), windows(2, times=0.7)) == expected


@pytest.mark.parametrize("seed", range(30))
def test_pyperf_is_students_t_test_at_95_per_cent_on_all_windows(seed: int) -> None:
    a, b = windows(seed, trials=3, each=7), windows(seed + 100, times=1.003, trials=3, each=7)
    found = stats.ttest_ind(flat(b), flat(a))
    # pyperf looks 40 degrees of freedom up as 2.021, to three digits
    expected = abs(found.statistic) >= 2.021
    assert Pyperf().alarm(a, b) == (("slower" if found.statistic > 0 else "faster") if expected else None)


@pytest.mark.parametrize(
    ("each", "critical"), [(2, 4.303), (16, 2.042), (20, 2.042), (21, 2.021), (60, 1.984), (101, 1.960), (300, 1.960)]
)
def test_pyperfs_threshold_is_that_of_its_table(each: int, critical: float) -> None:
    # two values in alternation give a mean and a deviation by design; the second side is shifted to the limit
    a = [0.9, 1.1] * (each // 2) + [1.0] * (each % 2)
    error = math.sqrt(2 * np.var(a, ddof=1) / each)
    assert Pyperf().alarm([a], [[value + critical * error * 1.0002 for value in a]]) == "slower"
    assert Pyperf().alarm([a], [[value + critical * error * 0.9998 for value in a]]) is None


def test_pyperf_calls_what_it_cannot_test_significant() -> None:
    assert Pyperf().alarm([[1.0, 1.1]], [[1.0, 1.1, 1.06]]) == "slower"
    assert Pyperf().alarm([[1.0]], [[1.01]]) == "slower"
    assert Pyperf().alarm([[1.0, 1.0]], [[0.99, 0.99]]) == "faster"


def test_pyperfs_least_speed_is_a_share_of_the_means_in_either_direction() -> None:
    a = [[1.0, 1.0001] * 20]
    slower, faster = [[value * 1.019 for value in a[0]]], [[value / 1.019 for value in a[0]]]
    assert (Pyperf().alarm(a, slower), Pyperf().alarm(a, faster)) == ("slower", "faster")
    assert (Pyperf(2).alarm(a, slower), Pyperf(2).alarm(a, faster)) == (None, None)
    assert Pyperf(1.8).alarm(a, slower) == "slower"


def test_asv_needs_both_the_factor_and_the_test() -> None:
    narrow, wide = windows(1, spread=0.001), windows(1, spread=0.5)
    assert Asv().alarm(narrow, windows(2, times=1.09, spread=0.001)) is None, "sure, but below the factor"
    assert Asv().alarm(narrow, windows(2, times=1.11, spread=0.001)) == "slower"
    doubtful = windows(5, times=1.3, spread=0.5)
    assert stats.mannwhitneyu(flat(wide), flat(doubtful), use_continuity=False).pvalue > 0.002
    assert np.median(flat(doubtful)) > 1.1 * np.median(flat(wide))
    assert Asv().alarm(wide, doubtful) is None, "beyond the factor, but not sure"


def test_asv_asks_at_0_002_and_not_at_0_05() -> None:
    a = [[1.0 + index / 1000 for index in range(20)]]
    shifted = [[value + 0.0068 for value in a[0]]]
    p = stats.mannwhitneyu(a[0], shifted[0], method="exact").pvalue
    assert 0.002 < p < 0.05
    assert Asv(factor=1.001).alarm(a, shifted) is None
    assert Asv(factor=1.001, p_threshold=0.05).alarm(a, shifted) == "slower"


def test_asv_with_five_windows_a_side_has_no_test_and_says_so() -> None:
    a = [[1.0, 1.1, 1.2, 1.3, 1.4]]
    with pytest.raises(HarnessError, match="too few for asv's test"):
        Asv().alarm(a, [[2 * value for value in a[0]]])
    six = [[*a[0], 1.5]]
    assert Asv().alarm(six, [[2 * value for value in six[0]]]) is None, "p = 2/924 is above 0.002"
    seven = [[*six[0], 1.6]]
    assert Asv().alarm(seven, [[2 * value for value in seven[0]]]) == "slower"


@given(WINDOWS, WINDOWS, st.sampled_from(["min", "median", "mean"]), st.integers(1, 40))
def test_pytest_benchmark_decides_as_the_installed_plugin(
    a: list[float], b: list[float], field: str, percent: int
) -> None:
    now, before = Stats(), Stats()
    now.data, before.data = b, a
    fails = parse_compare_fail(f"{field}:{percent}%").fails(now.as_dict(), before.as_dict())
    alarm = PytestBenchmark(field, percent).alarm([a[:5], a[5:]], [b])  # type: ignore[arg-type]
    assert (alarm == "slower") == bool(fails)


@given(WINDOWS, WINDOWS, st.floats(1e-3, 1e3))
def test_no_rule_depends_on_the_unit_of_time(a: list[float], b: list[float], unit: float) -> None:
    scaled_a, scaled_b = [[value * unit for value in a]], [[value * unit for value in b]]
    for rule in RULES:
        if _on_the_edge(a, b):
            continue
        assert rule.alarm(scaled_a, scaled_b) == rule.alarm([a], [b]), rule.name


@given(WINDOWS, WINDOWS)
def test_swapping_the_sides_swaps_the_alarm_of_the_two_sided_rules(a: list[float], b: list[float]) -> None:
    opposite = {"slower": "faster", "faster": "slower", None: None}
    for rule in RULES:
        if not isinstance(rule, PytestBenchmark):
            assert rule.alarm([b], [a]) == opposite[rule.alarm([a], [b])], rule.name


@pytest.mark.parametrize("rule", RULES, ids=IDS)
@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0, -1.0])
def test_a_window_that_is_no_time_is_an_error_and_no_alarm(rule: ToolRule, bad: float) -> None:
    good = windows(1)
    broken = [*good[:-1], [*good[-1][:-1], bad]]
    with pytest.raises(HarnessError, match="expected a finite number above 0"):
        rule.alarm(good, broken)
    with pytest.raises(HarnessError, match="expected a finite number above 0"):
        rule.alarm(broken, good)


@pytest.mark.parametrize("rule", RULES, ids=IDS)
def test_a_side_without_windows_is_an_error_and_no_alarm(rule: ToolRule) -> None:
    with pytest.raises(HarnessError, match="no windows"):
        rule.alarm(windows(1), [])
    with pytest.raises(HarnessError, match="no windows"):
        rule.alarm([[]], windows(1))


def _on_the_edge(a: list[float], b: list[float]) -> bool:
    """Where rounding may carry a figure over its limit: equal ones, and ratios close to a limit."""
    pairs = [(min(a), min(b)), (float(np.median(a)), float(np.median(b))), (float(np.mean(a)), float(np.mean(b)))]
    ratios = [max(x / y, y / x) for x, y in pairs]
    close = any(abs(ratio - limit) < 1e-6 for ratio in ratios for limit in (1, 1.02, 1.05, 1.1))
    return close or len(set(a + b)) < len(a) + len(b) or np.var(a) + np.var(b) < 1e-12
