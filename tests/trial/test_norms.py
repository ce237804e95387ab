"""Distances between what two runs hold."""

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from harness.trial.norms import BLOCK, change_of, distance, distance_but_for_few, furthest

INF = math.inf


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([1.0, 2.0], [1.0, 4.0], 2.0),
        ([INF, 1.0], [INF, 1.0], 0.0),
        ([-INF, 1.0], [-INF, 4.0], 3.0),
        ([INF, 1.0], [-INF, 1.0], INF),
        ([INF, 1.0], [2.0, 1.0], INF),
    ],
)
def test_what_overflows_in_both_is_no_difference(a: list[float], b: list[float], expected: float) -> None:
    assert distance(np.array(a), np.array(b)) == expected


def test_what_is_no_number_is_a_difference_even_in_both() -> None:
    assert math.isnan(distance(np.array([math.nan, 1.0]), np.array([math.nan, 1.0])))


@pytest.mark.parametrize("dtype", ["float32", ml_dtypes.bfloat16])
def test_what_is_no_number_in_both_may_be_no_difference_but_in_one_it_is(dtype: Any) -> None:
    one = np.array([math.nan, 1.0], dtype)
    assert distance(one, np.array([math.nan, 3.0], dtype), nans_alike=True) == 2.0
    assert math.isnan(distance(one, np.array([0.0, 1.0], dtype), nans_alike=True))
    assert distance_but_for_few(one, np.array([math.nan, 3.0], dtype), None, 0.1, nans_alike=True) == 2.0


def test_what_is_finite_has_changed_by_so_much_and_by_all_that_it_is_where_it_was_not_finite() -> None:
    now, before = np.array([INF, math.nan, 3.0, 5.0]), np.array([1.0, 2.0, -INF, 1.0])
    assert change_of(now, before) == 5.0
    assert change_of(now, before, np.array([True, True, False, True])) == 4.0


def test_the_furthest_of_the_chosen_elements_is_found_in_any_block() -> None:
    one, chosen = np.zeros(2 * BLOCK + 1, np.float32), np.ones(2 * BLOCK + 1, bool)
    one[0], one[BLOCK], one[2 * BLOCK] = -3.0, 2.0, 7.0
    assert furthest(one, np.zeros_like(one), chosen) == 7.0
    chosen[2 * BLOCK] = False
    assert furthest(one, np.zeros_like(one), chosen) == 3.0
    assert furthest(one, np.zeros_like(one), np.zeros_like(chosen)) == 0.0
    one[1] = math.nan
    assert math.isnan(furthest(one, np.zeros_like(one), chosen))
    assert furthest(one, one.copy(), chosen) == 0.0


def test_what_is_infinite_in_both_is_no_difference_but_for_a_few_either() -> None:
    assert distance_but_for_few(np.array([INF, 1.0]), np.array([INF, 4.0]), None, 0.1) == 3.0


def test_elements_that_are_not_chosen_do_not_count() -> None:
    chosen = np.array([True, False, True])
    assert distance(np.array([INF, 5.0, 1.0]), np.array([INF, 1.0, 3.0]), chosen) == 2.0


@pytest.mark.parametrize("size", [1, BLOCK, 2 * BLOCK + 1])
@pytest.mark.parametrize("kind", ["float32", "float16", "int64"])
def test_any_number_of_blocks_of_any_type_is_one_distance_and_both_are_as_they_were(size: int, kind: str) -> None:
    generator = np.random.default_rng(size)
    a, b = (generator.integers(-9, 9, size).astype(kind) for _ in range(2))
    chosen = generator.random(size) < 0.5
    before = a.copy(), b.copy(), chosen.copy()
    exact = np.where(chosen, a.astype(np.float64) - b.astype(np.float64), 0.0)
    assert distance(a, b, chosen) == pytest.approx(np.linalg.norm(exact), rel=1e-12)
    assert all(np.array_equal(now, then) for now, then in zip((a, b, chosen), before, strict=True))


def test_a_few_elements_may_be_anything_but_what_is_no_number_counts() -> None:
    exact = np.zeros(1000)
    apart = exact.copy()
    apart[3], apart[500], apart[700] = 3.0, 100.0, -200.0
    assert distance_but_for_few(apart, exact, None, 0.002) == 3.0
    assert distance_but_for_few(apart, exact, None, 0.0009) == distance(apart, exact)
    chosen = np.arange(1000) != 3
    assert distance_but_for_few(apart, exact, chosen, 0.0021) == 0.0
    apart[500] = math.nan
    assert math.isnan(distance_but_for_few(apart, exact, None, 0.5))
