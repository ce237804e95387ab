"""Of what is random, has no seed and comes seldom a reference may show nothing: a late update that differs from it is
unproved where the same reference, asked again, shows it, and wrong where it never does."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.own_engine import Mean
from harness.protocol.state import Reference, VariableState
from harness.trial.trial import ASKED_AGAIN, SELDOM
from tests.trial.own import tried


class Seldom(Mean):
    """The first `misses` references of a late update are without what the step and all later ones have."""

    misses = 1

    def reference_of_one_more(self, before: Sequence[VariableState]) -> Reference:
        self.misses -= 1
        right = super().reference_of_one_more(before)
        return right if self.misses < 0 else replace(right, states=[[5 * array for array in right.states[0]]])


class SeenAtLast(Seldom):
    misses = ASKED_AGAIN


class NeverSeen(Seldom):
    misses = ASKED_AGAIN + 1


def test_what_the_same_reference_does_when_it_is_asked_again_is_not_wrong_but_unproved(tmp_path: Path) -> None:
    for kind in (Seldom, SeenAtLast):
        outcome, _ = tried(kind, tmp_path)
        assert outcome.checks.late is None
        assert f"late: {SELDOM}" in (outcome.checks.unproved or "")


def test_what_no_reference_does_is_wrong(tmp_path: Path) -> None:
    outcome, _ = tried(NeverSeen, tmp_path)
    assert (outcome.status, outcome.checks.late) == ("wrong_result", False)
