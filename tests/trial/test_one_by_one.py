"""Where rounding alone makes another second update, the first updates are held one by one, each from the state before
it; all that the gate looks for is still found."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.own_engine import Array, Mean
from harness.errors import Unprovable
from harness.protocol.state import Reference, VariableState
from harness.trial.noise import PERTURBED_RUNS, RUNS_AGAIN
from harness.trial.trial import ONE_BY_ONE
from tests.trial.own import tried


class Amplifying(Mean):
    """Its reference in one go makes another second update than it does, and knows that a fault would be lost there."""

    def reference(self, initial: Sequence[VariableState]) -> Reference:
        whole = super().reference(initial)
        return replace(whole, states=[whole.states[0], [5 * whole.states[1][0]]], sight={"doubled": 0.5})


class AmplifyingAndWrong(Amplifying):
    """Makes its second update twice as large."""

    def _step(self, batch: Array) -> float:
        before = self._copies[0].copy()
        loss = super()._step(batch)
        if self._updates == 2:
            for copy in self._copies:
                copy += copy - before
        return loss


class AtAnEnd(Amplifying):
    """Of a value near a ReLU's end, which two perturbed runs do not show and more do: `asked` has how many."""

    asked: list[int]

    def reference_of_each(self, befores: Sequence[Sequence[VariableState]], runs: int) -> list[Reference]:
        type(self).asked.append(runs)
        right = super().reference_of_each(befores, runs)
        if runs > PERTURBED_RUNS:
            return right
        return [replace(of, states=[[2 * of.states[0][0] + 1]]) for of in right]


class Clear(Mean):
    """Needs no other reference."""

    def reference_of_each(self, befores: Sequence[Sequence[VariableState]], runs: int) -> list[Reference]:
        raise AssertionError("asked for without need")


class ClearAndOtherwise(Clear):
    """Its second update is not the reference's, and no rounding would hide that."""

    def reference(self, initial: Sequence[VariableState]) -> Reference:
        whole = super().reference(initial)
        return replace(whole, states=[whole.states[0], [5 * whole.states[1][0]]])


class Unknown(Amplifying):
    """Cannot be held one by one."""

    def reference_of_each(self, befores: Sequence[Sequence[VariableState]], runs: int) -> list[Reference]:
        raise Unprovable("nobody knows")


def test_a_right_step_whose_second_update_rounding_alone_makes_another_is_ok_and_says_so(tmp_path: Path) -> None:
    outcome, _ = tried(Amplifying, tmp_path)
    assert (outcome.status, outcome.checks.update, outcome.checks.loss) == ("ok", True, True)
    assert outcome.checks.detail["update"] == ONE_BY_ONE
    assert outcome.checks.sight is not None
    assert min(outcome.checks.sight.values()) > 10


def test_a_second_update_that_is_wrong_is_found_and_named(tmp_path: Path) -> None:
    outcome, _ = tried(AmplifyingAndWrong, tmp_path)
    assert outcome.status == "wrong_result"
    assert outcome.checks.detail["update"].startswith("after update 2 weight 'mean' is ")


def test_what_differs_is_wrong_only_where_more_perturbed_runs_do_not_show_it_either(tmp_path: Path) -> None:
    AtAnEnd.asked = []
    outcome, _ = tried(AtAnEnd, tmp_path)
    assert (outcome.status, AtAnEnd.asked) == ("ok", [PERTURBED_RUNS, RUNS_AGAIN])
    assert outcome.checks.detail["update"] == ONE_BY_ONE
    assert outcome.checks.update_error is not None
    assert outcome.checks.update_error < 1, "of what was judged"


def test_without_need_nothing_is_held_one_by_one(tmp_path: Path) -> None:
    assert tried(Clear, tmp_path)[0].status == "ok"
    outcome, _ = tried(ClearAndOtherwise, tmp_path)
    assert outcome.status == "wrong_result"
    assert outcome.checks.detail["update"].startswith("after update 2 ")


def test_what_cannot_be_held_one_by_one_is_unproved_with_the_reason(tmp_path: Path) -> None:
    outcome, _ = tried(Unknown, tmp_path)
    assert outcome.checks.update is None
    assert "update: nobody knows" in (outcome.checks.unproved or "")
