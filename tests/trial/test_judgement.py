"""The gate's judgement on arrays: right answers pass, planted faults do not, and the evidence names them."""

import math
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from harness.errors import Unprovable
from harness.protocol.state import Reference, VariableState
from harness.trial.judgement import (
    UpdateCheck,
    check_agreement,
    check_applied,
    check_losses,
    check_update,
    must_be_real,
    note_statistics,
)


def state(kind: str, *copies: list[float], name: str = "w") -> VariableState:
    return VariableState(name, kind, tuple(np.array(copy, dtype=np.float32) for copy in copies))


def reference(values: list[float], noise: float = 0.0, trusted: list[bool] | None = None) -> Reference:
    mask = np.array(trusted if trusted is not None else [True] * len(values))
    return Reference([[np.array(values, dtype=np.float32)]], [[noise]], [mask])


START = [state("weight", [1.0, 1.0, 1.0])]
"""One weight of three elements before the update."""


def wrong(after: list[VariableState], expected: Reference) -> str | None:
    """The evidence that one update from START went wrong, if it did."""
    return check_update([after], START, expected).evidence


def test_the_margin_is_told_also_when_the_update_is_right() -> None:
    near = check_update([[state("weight", [0.9, 1.1, 1.00005])]], START, reference([0.9, 1.1, 1.0]))
    assert near.evidence is None
    assert 0.2 < near.share < 0.5


def test_a_weight_that_moves_as_the_reference_does_passes() -> None:
    assert wrong([state("weight", [0.9, 1.1, 1.0])], reference([0.9, 1.1, 1.0])) is None


@pytest.mark.parametrize("replica", [0, 1])
def test_a_wrong_copy_on_any_replica_is_found_and_named(replica: int) -> None:
    copies = [[0.9, 1.1, 1.0], [0.9, 1.1, 1.0]]
    copies[replica] = [0.95, 1.1, 1.0]
    evidence = wrong([state("weight", *copies)], reference([0.9, 1.1, 1.0]))
    assert evidence is not None
    assert f"on replica {replica}" in evidence
    assert "element [0]: started at 1, expected 0.9, got 0.95" in evidence


@pytest.mark.parametrize("kind", ["weight", "slot:velocity", "statistic"])
@pytest.mark.parametrize("got", [[0.9, 1.1, 1.0], [0.95, 1.1, 1.0], [math.nan, 1.1, 1.0]])
def test_copies_that_are_one_array_are_judged_as_copies_that_only_hold_the_same(kind: str, got: list[float]) -> None:
    expected = reference([0.9, 1.1, 1.0])
    if kind == "statistic":
        expected = replace(expected, states=[[np.array([[0.9, 1.1, 1.0], [0.9, 1.2, 1.0]], np.float32)]])
    start = [state(kind, [1.0, 1.0, 1.0], [1.0, 1.0, 1.0])]
    several = state(kind, got, got)
    one = replace(several, copies=several.copies[:1] * 2)
    found = {
        str(check_update([[after]], begun, expected))
        for after in (several, one)
        for begun in (start, [replace(start[0], copies=start[0].copies[:1] * 2)])
    }
    assert len(found) == 1


def test_what_rounding_alone_moves_is_allowed_for() -> None:
    moved = [state("weight", [0.91, 1.1, 1.0])]
    assert wrong(moved, reference([0.9, 1.1, 1.0])) is not None
    assert wrong(moved, reference([0.9, 1.1, 1.0], noise=0.005)) is None


def test_elements_whose_gradient_is_noise_are_not_compared() -> None:
    moved = [state("weight", [1.1, 1.1, 1.0])]
    assert wrong(moved, reference([0.9, 1.1, 1.0], trusted=[False, True, True])) is None


def unmet(after: list[float], noise: float = 0.0) -> UpdateCheck:
    """How an embedding compares of which the first row alone is met, and moves by 0.1."""
    expected = reference([0.9, 1.0, 1.0], noise, trusted=[True, False, False])
    return check_update([[state("weight", after)]], START, replace(expected, idle=[np.array([False, True, True])]))


@pytest.mark.parametrize("bad", [8.0, -6.0, 2.1, math.nan, math.inf])
def test_an_element_without_a_gradient_is_not_to_move_as_no_other_does(bad: float) -> None:
    found = unmet([0.9, 1.0, bad], noise=1e6)
    assert found.share > 1
    assert found.evidence is not None
    if math.isfinite(bad):
        assert f"where it has no gradient, where 1 is allowed; element [2]: started at 1, expected 1, got {bad:g}" in (
            found.evidence
        )


def test_a_dead_unit_that_rounding_wakes_may_move_as_far_as_any_other() -> None:
    assert unmet([0.9, 1.0, 1.0]).share == 0.0
    assert unmet([0.9, 0.9, 1.1]).evidence is None


def test_a_weight_that_nothing_uses_may_be_no_number_or_infinite_in_both() -> None:
    start = [state("weight", [1.0, math.nan, -math.inf, 1.0])]
    idle = np.array([False, True, True, True])
    after = [0.9, math.nan, -math.inf, 1.0]
    expected = replace(reference(after, trusted=[True, False, False, False]), idle=[idle])
    assert check_update([[state("weight", after)]], start, expected) == UpdateCheck(0.0, None)
    evidence = check_update([[state("weight", [0.9, math.nan, -math.inf, 9.0])]], start, expected).evidence
    assert evidence is not None
    assert "element [3]: started at 1, expected 1, got 9" in evidence


def test_where_no_weight_moves_storing_alone_is_allowed_for() -> None:
    expected = replace(reference([1.0, 1.0, 1.0], trusted=[False] * 3), idle=[np.ones(3, bool)])
    assert check_update([[state("weight", [1.0, 1.0, 1 + 2**-23])]], START, expected).evidence is None
    assert check_update([[state("weight", [1.0, 1.0, 1 + 2**-20])]], START, expected).evidence is not None


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_value_that_is_not_finite_never_passes(bad: float) -> None:
    evidence = wrong([state("weight", [bad, 1.1, 1.0])], reference([0.9, 1.1, 1.0], noise=1e6))
    assert evidence == "after update 1 weight 'w' is not finite in 1 of 3 elements, and the single-device reference is"


def test_what_is_not_a_number_without_distribution_either_is_said_to_be_the_models_own() -> None:
    evidence = wrong([state("weight", [math.nan, 1.1, 1.0])], reference([math.nan, math.nan, 1.0]))
    assert evidence == (
        "after update 1 weight 'w' is not a number in 2 of 3 elements of the single-device reference, and in 1 here: "
        "model and optimizer give that on one device, too"
    )


@pytest.mark.parametrize("kind", ["statistic", "slot:newest"])
def test_a_sentinel_that_step_and_reference_both_leave_as_no_number_is_no_fault(kind: str) -> None:
    def judged(got: list[float], expected: list[float]) -> UpdateCheck:
        values = np.array([expected] if kind == "statistic" else expected, dtype=np.float32)
        start = [state(kind, [math.nan, 1.0], name="sentinel")]
        return check_update([[state(kind, got, name="sentinel")]], start, Reference([[values]], [[0.0]], []))

    assert judged([math.nan, 2.0], [math.nan, 2.0]) == UpdateCheck(0.0, None)
    off = judged([math.nan, 5.0], [math.nan, 2.0]).evidence
    assert off is not None
    assert "element [1]: started at 1, expected 2, got 5" in off
    touched = judged([0.0, 2.0], [math.nan, 2.0]).evidence
    assert touched is not None
    assert "is not a number in 1 of 2 elements of the single-device reference, and in 0 here" in touched


def test_a_running_maximum_that_began_at_minus_infinity_hides_no_wrong_one() -> None:
    start = [state("statistic", [-math.inf, -math.inf, 0.5])]
    expected = Reference([[np.array([[0.9, -math.inf, 0.5]], dtype=np.float32)]], [[0.0]], [])
    for got, right in (
        ([0.9, -math.inf, 0.5], True),
        ([np.float32(0.9) * (1 + 1e-5), -math.inf, 0.5], True),
        ([5.0, -math.inf, 0.5], False),
        ([0.9, -math.inf, 0.6], False),
        ([0.9, 3.0, 0.5], False),
    ):
        found = check_update([[state("statistic", got)]], start, expected)
        assert (found.evidence is None) is right
        assert (found.share <= 1) is right


def test_a_replicas_statistics_are_held_against_its_own_share() -> None:
    start = [state("statistic", [0.0], [0.0])]
    expected = Reference([[np.array([[0.1], [0.3]], dtype=np.float32)]], [[0.0]], [])
    assert check_update([[state("statistic", [0.1], [0.3])]], start, expected).evidence is None
    assert check_update([[state("statistic", [0.3], [0.1])]], start, expected).evidence is not None


def test_replicas_that_differ_in_one_bit_do_not_agree() -> None:
    same = state("weight", [1.0, 2.0], [1.0, 2.0])
    other = state("slot:velocity", [1.0, 2.0], [1.0, float(np.nextafter(np.float32(2), np.float32(3)))], name="v")
    assert check_agreement([same]) is None
    evidence = check_agreement([same, other])
    assert evidence is not None
    assert "slot:velocity 'v' on replica 1 differs from replica 0 in 1 of 2 elements" in evidence


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ml_dtypes.bfloat16, np.complex64])
def test_an_array_agrees_with_itself_as_with_a_copy_though_it_has_no_number_in_it(dtype: type) -> None:
    holds = np.array([1.0, math.nan], dtype)
    told = {str(check_agreement([VariableState("w", "weight", (holds, of))])) for of in (holds, holds.copy())}
    assert len(told) == 1


@pytest.mark.parametrize("kind", ["weight", "statistic", "slot:velocity"])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_state_with_a_complex_variable_of_any_kind_can_not_be_proved(kind: str, dtype: type) -> None:
    real = state("weight", [1.0, 2.0])
    must_be_real([real])
    with pytest.raises(Unprovable, match=f"^{kind} 'spectrum' is complex, which no reference is compared with$"):
        must_be_real([real, VariableState("spectrum", kind, (np.ones(2, dtype),))])


def test_replicas_whose_imaginary_parts_differ_do_not_agree() -> None:
    evidence = check_agreement([VariableState("w", "weight", (np.array([1 + 1j]), np.array([1 + 4j])))])
    assert evidence == "weight 'w' on replica 1 differs from replica 0 in 1 of 1 elements (largest difference 3)"


def test_statistics_that_replicas_keep_apart_are_remarked_on_but_no_fault() -> None:
    apart = state("statistic", [0.1], [0.2], name="moving_mean")
    assert check_agreement([apart]) is None
    remark = note_statistics([apart])
    assert remark is not None
    assert "moving_mean" in remark


def test_a_lost_update_is_a_fault() -> None:
    assert check_applied(10, 10) is None
    assert check_applied(7, 10) == "10 updates were scheduled and 7 were applied"
    assert check_applied(11, 10) is not None


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_is_a_fault(loss: float) -> None:
    assert check_losses([2.3, 2.2]) is None
    assert check_losses([2.3, loss]) is not None
