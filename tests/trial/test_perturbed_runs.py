"""What runs from perturbed weights say of the reference: how well it can be agreed with, or that nobody can tell."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from harness.errors import Unprovable
from harness.protocol.state import Reference, VariableState
from harness.trial.judgement import check_update
from harness.trial.noise import PerturbedRun, ReferenceRun, beyond_rounding, with_noise


def one_update(after: list[float], gradient: list[float], loss: float, statistic: float) -> ReferenceRun:
    """Of a weight and a statistic that began at 1."""
    start = np.ones(len(after), np.float32)
    states = [np.array(after, np.float32), np.array([[statistic]], np.float32)]
    return ReferenceRun([start, np.ones((1, 1), np.float32)], [states], [[np.array(gradient, np.float32)]], [loss])


def reference_of(exact: ReferenceRun, *perturbed: ReferenceRun) -> Reference:
    weight, statistic = exact.start
    initial = [VariableState("w", "weight", (weight,)), VariableState("s", "statistic", (statistic[0],))]
    return with_noise(exact, [PerturbedRun.of(run, exact, initial) for run in perturbed], initial, "float32")


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    ("what", "of"),
    [
        ("the loss", lambda bad: one_update([0.9, 0.9], [0.1, 0.1], bad, 2.0)),
        ("the gradient of 'w'", lambda bad: one_update([0.9, 0.9], [0.1, bad], 1.0, 2.0)),
        ("weight 'w'", lambda bad: one_update([0.9, bad], [0.1, 0.1], 1.0, 2.0)),
        ("statistic 's'", lambda bad: one_update([0.9, 0.9], [0.1, 0.1], 1.0, bad)),
    ],
)
def test_where_rounding_decides_whether_the_reference_is_finite_nothing_can_be_proved(
    what: str, of: Callable[[float], ReferenceRun], bad: float
) -> None:
    exact = one_update([0.9, 0.9], [0.1, 0.1], 1.0, 2.0)
    for runs in ([of(bad), exact], [exact, of(bad)]):
        with pytest.raises(Unprovable, match=f"whether the reference is finite: {what} is not after update 1 from"):
            reference_of(exact, *runs)


def test_what_is_not_finite_in_the_exact_run_has_no_noise_whatever_perturbed_ones_make_of_it() -> None:
    exact = one_update([0.9, math.nan, math.inf], [0.1, math.nan, math.inf], math.nan, -math.inf)
    for run in (exact, one_update([0.9, 0.9, 0.9], [0.1, 0.1, 0.1], 1.0, 2.0)):
        reference = reference_of(exact, run)
        assert reference.noise == [[0.0, 0.0]]
        assert reference.trusted[0].tolist() != [True, True, True]


def test_what_has_no_gradient_is_told_where_that_is_so_in_every_share_update_and_run() -> None:
    def run(*updates: list[float]) -> ReferenceRun:
        start = np.ones(5, np.float32)
        gradients = [[np.array(gradient, np.float32)] for gradient in updates]
        return ReferenceRun([start], [[start]] * len(updates), gradients, [1.0] * len(updates))

    exact = run([0.0, 0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0, 0.0])
    woken = run([0.0, 1e-9, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0, 0.0])
    sizes = np.array([0.0, 0.0, 1.0, 0.0, 1.0])  # of element 2 the shares cancel
    for update in exact.gradients:
        exact.beyond.append([beyond_rounding(update[0], sizes, "float32")])
    initial = [VariableState("w", "weight", (exact.start[0],))]
    seen = [PerturbedRun.of(perturbed, exact, initial) for perturbed in (woken, exact)]
    of_program = [np.array([0.0, 0.0, 0.0, 0.0, 1.0])]
    reference = with_noise(exact, seen, initial, "float32", of_program)
    assert np.flatnonzero(reference.idle[0]).tolist() == [0]
    assert not reference.trusted[0].any()
    of_program[0][0] = 1e-9
    assert not with_noise(exact, seen, initial, "float32", of_program).idle[0].any()


@pytest.mark.parametrize("moved", [0.0, 7.0])
def test_a_row_that_no_batch_meets_is_held_against_where_the_optimizer_leaves_it(moved: float) -> None:
    start, gradient = np.ones((3, 2), np.float32), np.array([[0.1, 0.1], [0.0, 0.0], [0.2, 0.2]], np.float32)
    exact = ReferenceRun([start], [[start - gradient]], [[gradient]], [1.0])
    initial = [VariableState("embedding", "weight", (start,))]
    reference = with_noise(exact, [PerturbedRun.of(exact, exact, initial)], initial, "float32")
    step = start - gradient
    step[1] += moved
    found = check_update([[VariableState("embedding", "weight", (step,))]], initial, reference)
    assert (found.evidence is None) is (moved == 0.0)
