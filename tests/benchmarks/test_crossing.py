"""Input of a known rate: what a step of which nothing is known says of it."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.analysis.explain import Explanation, explanations_of
from tests.explained import explain_run
from tests.goals import load

crossing = load("crossing")


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
    assert answer == crossing.Answer("not known", "undecided", None)


def test_a_step_of_one_block_has_no_interval(explained: list[Explanation]) -> None:
    explained[:] = explanations_of(explain_run(noise=[0.0]))
    [(_, answer)] = crossing.by_explain([100], 2, Path())
    assert answer == crossing.Answer("10.0% [not known]", "undecided", None)


def test_a_step_that_something_else_binds_is_not_bound_by_its_input(explained: list[Explanation]) -> None:
    explained[:] = explanations_of(explain_run(noise=[0.0] * 3))
    [(_, answer)] = crossing.by_explain([100], 2, Path())
    assert answer == crossing.Answer("10.0% [10.0%, 10.0%]", "communication", False)
