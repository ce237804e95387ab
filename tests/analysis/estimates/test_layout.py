"""The two-way layout of a run's trials: means without drift, moderated variances, comparisons of cells that met."""

from types import ModuleType

import numpy as np
import pytest
from scipy import stats

from harness.analysis.estimates.intervals import Sample, log_ratio
from harness.analysis.estimates.layout import Layout, prior
from tests.analysis.noises import reach
from tests.goals import load


@pytest.fixture(scope="module")
def goal() -> ModuleType:
    """`best.py`, whose noises these are."""
    return load("best")


def sample(values: dict[str, float], blocks: dict[str, int] | None = None) -> Sample:
    """One trial in each group; `blocks` where those are not the groups' own order."""
    order = tuple(values)
    return Sample(tuple(values.values()), order, tuple((blocks or {}).get(g, i) for i, g in enumerate(order)))


def test_a_lost_trial_in_a_slow_block_does_not_lift_a_cell_in_the_order() -> None:
    drift = {"a": 0.0, "b": 0.0, "c": -0.5}
    full = sample({group: 1.0 + slow for group, slow in drift.items()})
    lossy = sample({group: 0.9 + drift[group] for group in "ab"})
    assert lossy.mean > full.mean
    layout = Layout({"full": full, "lossy": lossy})
    assert layout.mean("full") - layout.mean("lossy") == pytest.approx(0.1)
    assert layout.ratio("full", "lossy").mean == pytest.approx(0.1)


def test_cells_of_one_block_have_met_though_nothing_says_how_trials_scatter() -> None:
    layout = Layout({"a": sample({"g": 1.0}), "b": sample({"g": 1.2}), "c": sample({"h": 1.0})})
    assert (layout.met("a", "b"), layout.met("a", "c")) == (True, False)
    assert not layout.linked("a", "b")


def test_when_all_cells_ran_in_all_groups_the_means_are_plain() -> None:
    samples = {"a": sample({"g": 1.0, "h": 2.0}), "b": sample({"g": 1.5, "h": 2.1})}
    layout = Layout(samples)
    assert {name: layout.mean(name) for name in samples} == pytest.approx({n: s.mean for n, s in samples.items()})


def test_two_cells_alone_are_compared_by_the_paired_t() -> None:
    a, b = sample({"g": 1.0, "h": 2.0, "i": 1.4}), sample({"g": 1.5, "h": 2.1, "i": 1.7})
    ours, paired = Layout({"a": a, "b": b}).ratio("a", "b"), log_ratio(a, b)
    assert ours.mean == pytest.approx(paired.mean)
    assert ours.standard_error == pytest.approx(paired.standard_error)
    assert ours.degrees_of_freedom == pytest.approx(paired.degrees_of_freedom)


def test_cells_that_never_met_tell_nothing_of_how_each_other_scatter() -> None:
    a, b = sample({"g": 0.12, "h": 0.02, "i": 0.10}), sample({"g": 0.0, "h": 0.0, "i": 0.0})
    quiet = {
        name: sample({f"{name[0]}{number}": value for number, value in enumerate(values)})
        for name, values in {
            "c1": (0.0, 0.01, 0.02),
            "c2": (0.001, 0.01, 0.019),
            "d1": (0, 0, 0),
            "d2": (0, 0.001, 0),
        }.items()
    }
    alone, beside = Layout({"a": a, "b": b}), Layout({"a": a, "b": b, **quiet})
    assert beside.ratio("a", "b") == alone.ratio("a", "b")
    assert beside.ratio("a", "b").degrees_of_freedom == pytest.approx(2)
    assert beside.correlation("a", ["b"]) == alone.correlation("a", ["b"])
    assert beside.ratio("c1", "c2") == Layout({name: quiet[name] for name in ("c1", "c2")}).ratio("c1", "c2")


def test_an_uneven_layout_is_fitted_and_weighed_as_least_squares_does() -> None:
    chance = np.random.default_rng(5)
    groups = {"a": "ghijk", "b": "ghj", "c": "hik", "d": "gk"}
    samples = {name: sample(dict(zip(of, chance.normal(0, 0.02, len(of)), strict=True))) for name, of in groups.items()}
    design = np.array(
        [[*(n == m for m in groups), *(g == h for h in "ghijk")] for n in groups for g in groups[n]], float
    )
    values = np.array([x for s in samples.values() for x in s.values])
    inverse = np.linalg.pinv(design)
    layout = Layout(samples)
    for one, two in (("a", "b"), ("c", "d"), ("d", "b")):
        contrast = np.array([(n == one) - (n == two) for n in groups] + [0.0] * 5)
        assert layout.ratio(one, two).mean == pytest.approx(float(contrast @ inverse @ values))
    # with one variance for all the error is that of ordinary least squares
    even = Layout(samples)._fit.covariance(np.ones(4))
    there = inverse @ inverse.T
    for one, two in ((0, 1), (2, 3), (3, 1)):
        ours = even[one, one] + even[two, two] - 2 * even[one, two]
        assert ours == pytest.approx(there[one, one] + there[two, two] - 2 * there[one, two])


def test_cells_that_never_met_are_compared_through_what_both_met() -> None:
    drift = dict(zip("abcdefgh", np.random.default_rng(3).normal(0, 0.5, 8), strict=True))
    base = sample({g: 0.0 + d for g, d in drift.items()})
    left = sample({g: 0.3 + drift[g] for g in "abcd"})
    right = sample({g: 0.1 + drift[g] for g in "efgh"})
    found = Layout({"base": base, "left": left, "right": right}).ratio("left", "right")
    assert found.mean == pytest.approx(0.2)
    assert found.standard_error == pytest.approx(0.0, abs=1e-9)


def test_cells_that_nothing_links_are_compared_by_welch() -> None:
    left, right = sample({"a": 0.0, "b": 0.1, "c": 0.3}), sample({"d": 1.0, "e": 1.1, "f": 1.4})
    layout = Layout({"left": left, "right": right, "other": sample({"a": 0.2, "b": 0.4, "c": 0.3})})
    found, welch = layout.ratio("left", "right"), log_ratio(left, right)
    assert (found.method, found.standard_error) == ("Welch t", welch.standard_error)
    assert layout.correlation("left", ["right", "other"]) is None


def test_one_trial_each_tells_a_difference_and_no_error() -> None:
    found = Layout({"a": sample({"g": 1.0}), "b": sample({"g": 1.2})}).ratio("b", "a")
    assert (found.mean, found.standard_error, found.method) == (pytest.approx(0.2), None, "none")


def test_what_cells_have_in_common_is_what_their_variances_were_drawn_with() -> None:
    chance = np.random.default_rng(2)
    truths = 3 * 1 / stats.chi2(1).rvs(20_000, random_state=chance)
    freedom = np.full(20_000, 4.0)
    worth, common = prior(truths * chance.chisquare(4, 20_000) / 4, freedom)
    assert (worth, common) == (pytest.approx(1, rel=0.06), pytest.approx(3, rel=0.06))
    assert prior(chance.chisquare(4, 20_000) / 4, freedom) == (1.5, pytest.approx(1, rel=0.03)), "and never worth more"


def test_one_cell_that_scatters_much_more_leaves_the_others_their_own_variance(goal: ModuleType) -> None:
    logs = goal.plain(np.random.default_rng(8), 14, 4) * np.where(np.arange(14), 1, 10)[:, None]
    known = goal.layout_of(logs)._variances
    assert known[0] > 20
    assert max(known[1:]) < 5


def test_a_noisy_cell_is_compared_by_its_own_variance_on_either_side_but_not_as_the_best_of_a_ranking(
    goal: ModuleType,
) -> None:
    # 14 cells of 4 trials: the groups' means take 1/14 of a cell's noise, which the variance of the noisy one lacks
    logs = goal.plain(np.random.default_rng(8), 14, 4)
    for times, is_noisy in ((10, True), (1, False)):
        layout = goal.layout_of(logs * np.where(np.arange(14), 1, times)[:, None])
        own, base = layout.ratio("c000", "c001"), layout.ratio("c001", "c000")
        lent = layout.ratio("c001", "c000", to_best=True)
        assert layout.ratio("c000", "c001", to_best=True) == own
        assert (base.standard_error, base.degrees_of_freedom) == (own.standard_error, own.degrees_of_freedom)
        assert (lent.mean, lent.count) == (base.mean, base.count)
        if not is_noisy:
            assert lent == base
            continue
        variances, _ = layout._fit.spread()
        apart = variances[0] + (variances[0] - variances.mean()) / 12
        more = (apart - layout._variances[0]) / 4
        assert own.standard_error is not None
        assert lent.standard_error is not None
        assert own.standard_error**2 == pytest.approx(lent.standard_error**2 + more)
        assert own.degrees_of_freedom == pytest.approx(3, rel=0.1)
        assert lent.degrees_of_freedom == pytest.approx(4.5, rel=0.1)


def test_variances_of_four_trials_move_towards_the_common_one_by_a_third_of_the_way_at_most(goal: ModuleType) -> None:
    logs = goal.unequal(np.random.default_rng(8), 14, 4)
    own, _ = (layout := goal.layout_of(logs))._fit.spread()
    moderated = layout._variances
    common = own.mean()
    assert ((moderated - own) * (common - own) > 0).all()
    assert (abs(moderated - own) <= abs(common - own) / 3 + 1e-9).all()


def test_after_a_second_stage_the_spread_is_that_of_the_first(goal: ModuleType) -> None:
    logs = goal.plain(np.random.default_rng(9), 6, 9)
    logs[:, 5:] *= 50
    blocks, groups = tuple(range(9)), tuple(f"g{block}" for block in range(9))
    samples = {str(place): Sample(tuple(row), groups, blocks) for place, row in enumerate(logs.tolist())}
    planned, first = Layout(samples, pilot_blocks=5), goal.layout_of(logs[:, :5])
    whole, early = planned.ratio("0", "1"), first.ratio("c000", "c001")
    assert whole.deviation == pytest.approx(early.deviation)
    assert whole.degrees_of_freedom == pytest.approx(early.degrees_of_freedom)
    assert whole.mean == pytest.approx(float((logs[0] - logs[1]).mean()))


# Heavy tails make it so wide that a fifth shorter it still holds the truth 94 times in 100, and slow trials 98 times:
# of those 7 and 6 tenths are found out (90 and 85). A cell that was in a slow state once has its own variance, and its
# interval holds 99.0 times.
@pytest.mark.parametrize(
    ("noise", "times", "most"),
    [("plain", 0.8, 0.99), ("unequal", 0.8, 0.99), ("heavy", 0.7, 0.99), ("two_states", 0.6, 0.992)],
)
def test_the_interval_of_two_cells_of_many_holds_the_truth_95_times_in_100(
    goal: ModuleType, noise: str, times: float, most: float
) -> None:
    held, shortened = pair_coverage(goal, noise, times)
    assert LEAST <= held <= most
    assert shortened < LEAST


ROUNDS = 150
LEAST = float(stats.binom.ppf(0.001, 7 * ROUNDS, 0.95)) / (7 * ROUNDS)
"""What a true coverage of 95 % comes to at least, in 999 of 1,000 such simulations of 7 pairs a sweep."""


def pair_coverage(goal: ModuleType, noise: str, times: float, rounds: int = ROUNDS) -> tuple[float, float]:
    """How often the interval of a pair holds 0, and how often `times` of it would: 7 pairs of 14 cells a sweep."""
    chance = np.random.default_rng(4)
    found = []
    for _ in range(rounds):
        layout = goal.layout_of(goal.draw(getattr(goal, noise), chance, np.zeros(14), 4))
        names = goal.names(14)
        for one, two in zip(names[::2], names[1::2], strict=True):
            found.append(reach(layout.ratio(one, two).log_bounds(), 0.0))
    return float(np.mean(np.array(found) <= 1)), float(np.mean(np.array(found) <= times))
