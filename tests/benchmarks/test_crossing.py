"""Input of a known rate: what a step of which nothing is known says of it."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.analysis.explain import Explanation, explanations_of
from tests.explained import RATIOS, explain_run
from tests.goals import load

crossing = load("crossing")
SIDES = [(0.45, "later", "communication", False), (1.0, "now", "input", True)]
"""What batches by themselves take of the step, and what is said of that."""


@pytest.fixture
def explained(monkeypatch: pytest.MonkeyPatch) -> list[Explanation]:
    """What `explain` finds, to be filled."""
    found: list[Explanation] = []
    monkeypatch.setattr(crossing.harness, "explain", lambda **_: SimpleNamespace(explanations=found))
    return found


def test_a_step_without_parts_decides_nothing(explained: list[Explanation]) -> None:
    [one] = explanations_of(explain_run())
    explained[:] = [replace(one, parts=(), within=())]
    [(_, answer)] = crossing.by_explain([100], 2, Path())
    assert answer == crossing.Answer("not known, not known", "not known; bound by undecided", None)


def test_a_step_of_one_block_has_no_interval(explained: list[Explanation]) -> None:
    explained[:] = explanations_of(explain_run(RATIOS | {"only_input": 0.5}, noise=[0.0]))
    [(_, answer)] = crossing.by_explain([100], 2, Path())
    told = "1.80 [not known], 10.0% [not known]"
    assert answer == crossing.Answer(told, "cannot_know; bound by undecided", None)


@pytest.mark.parametrize(("takes", "limit", "bound_by", "now"), SIDES)
def test_the_limit_is_named_by_the_rate_of_the_pipeline(
    explained: list[Explanation], takes: float, limit: str, bound_by: str, now: bool
) -> None:
    explained[:] = explanations_of(explain_run(RATIOS | {"only_input": takes}, noise=[0.0] * 3))
    [(_, answer)] = crossing.by_explain([100], 2, Path())
    assert answer.said == f"{limit}; bound by {bound_by}"
    assert answer.measured.endswith(", 10.0% [10.0%, 10.0%]")
    assert answer.now == now
