"""Cells of other engines beside plain programs: which promises the goal script counts as kept."""

from typing import Any

import pytest

from tests.goals import load
from tests.record.examples import cell

ONE, TWO_DEVICES, TWO_PROCESSES = {"replicas": 1}, {"replicas": 2}, {"workers": 2, "replicas": 1}


@pytest.mark.parametrize(
    ("engine", "placed", "ratio", "fixed_s", "kept"),
    [
        ("torch", TWO_PROCESSES, 1.02, 2.9, True),
        ("torch", TWO_PROCESSES, 1.04, 2.9, False),
        ("torch", TWO_PROCESSES, 0.96, 2.9, False),
        ("torch", TWO_PROCESSES, 1.02, 3.1, False),
        ("jax", TWO_DEVICES, 1.02, 3.1, False),
        ("jax", ONE, 1.02, 3.1, True),
        ("keras_distribution", TWO_DEVICES, 1.2, 3.1, True),
    ],
)
def test_a_promise_is_kept_within_its_bounds_and_none_is_made_of_keras_distribution(
    engine: str, placed: dict[str, Any], ratio: float, fixed_s: float, kept: bool
) -> None:
    asked = cell().model_copy(update={"workers": 1, **placed})
    assert load("engines").kept(engine, asked, ratio, fixed_s) == kept
