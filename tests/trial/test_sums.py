"""Known values through sums: what is right passes, what is missing, doubled or rounded does not, whatever the model."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from harness.trial.sums import ANY_MODEL, MOST_ELEMENTS, judge_sums, known_values

SHAPES = (((3,), "float32"), ((40, 30), "float32"), ((5, 5), "float64"))


def said(n: int, carried: Any = np.float64, without: int | None = None) -> str | None:
    """What is said of a sum over n replicas in which each value was carried in a type, and one may be left out."""
    weights, patterns = known_values(n, SHAPES)
    kept = [weight for r, weight in enumerate(weights) if r != without]
    sums = [sum((weight * pattern).astype(carried).astype(np.float64) for weight in kept) for pattern in patterns]
    return judge_sums([[total.astype(np.float32 if i < 2 else np.float64)] * n for i, total in enumerate(sums)],
                      patterns, weights)  # fmt: skip


@pytest.mark.parametrize("n", [1, 2, 3, 8, 10, 11, 16, 64])
def test_a_right_sum_passes_in_the_type_of_the_gradient(n: int) -> None:
    assert said(n) is None


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 10, 16])
@pytest.mark.parametrize("narrow", [np.float16, ml_dtypes.bfloat16])
def test_a_right_sum_of_gradients_of_a_narrow_type_passes_too(n: int, narrow: Any) -> None:
    weights, patterns = known_values(n, [((30,), np.dtype(narrow).name)])
    total = np.zeros(30, narrow)
    for weight in weights:
        total = (total + np.asarray(weight, narrow) * patterns[0].astype(narrow)).astype(narrow)
    assert judge_sums([[total] * n], patterns, weights) is None


@pytest.mark.parametrize("n", [2, 3, 8, 10, 11, 16, 64])
@pytest.mark.parametrize("narrow", [np.float16, ml_dtypes.bfloat16])
def test_a_narrower_type_on_the_way_is_found_at_any_count(n: int, narrow: Any) -> None:
    assert said(n, narrow) is not None


def test_a_float64_gradient_carried_in_float32_is_found() -> None:
    evidence = said(2, np.float32)
    assert evidence is not None
    assert "tensor 3 of 3" in evidence
    assert "a type with fewer bits was on the way" in evidence


@pytest.mark.parametrize("n", [2, 10, 16, 32, 64])
def test_the_missing_replica_is_named_at_any_count(n: int) -> None:
    """Of 32 it is 3.1 % of a gradient, and an update in mixed bfloat16, whose gradients are float32, may be 3 % off."""
    evidence = said(n, without=n - 1)
    assert evidence is not None
    assert f"the value of replica {n - 1} is missing" in evidence


def test_one_wrong_element_of_one_replicas_copy_is_found() -> None:
    weights, patterns = known_values(2, SHAPES)
    copies = [[sum(weights) * pattern] * 2 for pattern in patterns]
    copies[1][1] = copies[1][1].copy()
    copies[1][1][-1, -1] += 1
    evidence = judge_sums(copies, patterns, weights)
    assert evidence is not None
    assert "tensor 2 of 3, as replica 1 received it" in evidence


def test_tensors_have_the_models_shapes_and_a_huge_models_are_cut() -> None:
    assert [pattern.shape for pattern in known_values(2, SHAPES)[1]] == [shape for shape, _ in SHAPES]
    huge = [((MOST_ELEMENTS, 2), "float32"), *ANY_MODEL]
    patterns = known_values(2, huge)[1]
    assert len(patterns) == len(huge)
    assert sum(pattern.size for pattern in patterns) <= MOST_ELEMENTS
    assert patterns[1].shape == ANY_MODEL[0][0]
