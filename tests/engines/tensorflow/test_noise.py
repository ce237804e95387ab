"""The rule of what rounding may do, on a network in NumPy without biases: in each arithmetic what is right passes,
however it is ordered and fused, and a replica whose gradient is missing does not."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from harness.protocol.state import VariableState
from harness.trial.judgement import check_update
from harness.trial.noise import PERTURBED_RUNS, PerturbedRun, ReferenceRun, perturbed_start, with_noise

Array = np.ndarray[Any, Any]
SEEDS = range(8)
BATCH, FEATURES, HIDDEN, CLASSES, RATE = 16, 50, 30, 10, 0.01


def tf32(values: Array) -> Array:
    """Eleven bits of each number, as the inputs of a product have on tensor cores."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x1000) & np.uint32(0xFFFFE000)).view(np.float32)


def in_type(dtype: Any) -> Callable[[Array], Array]:
    return lambda values: values.astype(dtype).astype(np.float32)


ARITHMETICS = {
    "float32": in_type(np.float32),
    "tf32": tf32,
    "mixed_bfloat16": in_type(ml_dtypes.bfloat16),
    "mixed_float16": in_type(np.float16),
}


@dataclass(frozen=True)
class Network:
    """Two layers under gradient descent, the replicas' shares of a batch one after the other."""

    arithmetic: str
    replicas: int
    seed: int
    order: int = 1
    """-1 adds up everything the other way round."""
    fused: bool = False
    """Whether what lies between two products keeps all its bits, as XLA does it."""
    missing: bool = False

    def run(self, start: list[Array]) -> ReferenceRun:
        run, weights = ReferenceRun(start), [value.copy() for value in start]
        generator = np.random.default_rng(self.seed)
        for _ in range(2):
            x = generator.normal(size=(self.replicas, BATCH, FEATURES)).astype(np.float32)
            labels = generator.integers(CLASSES, size=(self.replicas, BATCH))
            shares = [self.gradients(weights, *share) for share in zip(x, labels, strict=True)]
            kept = shares[:-1] if self.missing else shares
            gradients = [np.sum(parts[:: self.order], axis=0) for parts in zip(*kept, strict=True)]
            weights = [w - np.float32(RATE) * g for w, g in zip(weights, gradients, strict=True)]
            run.gradients.append(gradients)
            run.states.append(weights)
            run.losses.append(0.0)
        return run

    def gradients(self, weights: list[Array], x: Array, labels: Array) -> list[Array]:
        rounded = ARITHMETICS[self.arithmetic]
        between = (lambda values: values) if self.fused or self.arithmetic == "tf32" else rounded

        def product(a: Array, b: Array) -> Array:
            return between(rounded(a)[:, :: self.order] @ rounded(b)[:: self.order])

        hidden = np.maximum(product(x, weights[0]), 0)
        logits = product(hidden, weights[1])
        exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
        error = exponents / exponents.sum(axis=1, keepdims=True) - np.eye(CLASSES, dtype=np.float32)[labels]
        error /= np.float32(BATCH * self.replicas)
        back = product(error, weights[1].T) * (hidden > 0)
        return [product(x.T, back), product(hidden.T, error)]


def times_its_limit(reference: Network, tried: Network, taken_off: bool = True) -> float:
    """How far what was tried is from the reference; with the perturbation itself taken off the noise, or not."""
    generator = np.random.default_rng(1000 + reference.seed)
    shapes = (FEATURES, HIDDEN), (HIDDEN, CLASSES)
    start = [(generator.normal(size=s) / np.sqrt(s[0])).astype(np.float32) for s in shapes]
    initial = [VariableState(f"w{i}", "weight", (value,)) for i, value in enumerate(start)]
    moved = [perturbed_start(initial, reference.arithmetic, generator) for _ in range(PERTURBED_RUNS)]
    perturbed = [reference.run(values) for values in moved]
    perturbed = perturbed if taken_off else [replace(run, start=start) for run in perturbed]
    exact = reference.run(start)
    seen = [PerturbedRun.of(run, exact, initial) for run in perturbed]
    expected = with_noise(exact, seen, initial, reference.arithmetic)
    states = [[VariableState(s.name, s.kind, (a,)) for s, a in zip(initial, state, strict=True)]
              for state in tried.run(start).states]  # fmt: skip
    return check_update(states, initial, expected).share


@pytest.mark.parametrize("replicas", [2, 4])
@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_what_is_right_passes_and_a_missing_replica_does_not(arithmetic: str, replicas: int) -> None:
    for seed in SEEDS:
        network = Network(arithmetic, replicas, seed)
        right = max(times_its_limit(network, replace(network, order=-1, fused=fused)) for fused in (False, True))
        missing = times_its_limit(network, replace(network, missing=True))
        assert right < 0.2
        assert missing > 2


@pytest.mark.parametrize("arithmetic", ["mixed_bfloat16", "mixed_float16"])
def test_a_perturbation_that_counts_as_noise_would_hide_a_missing_replica(arithmetic: str) -> None:
    network = Network(arithmetic, 2, seed=0)
    assert times_its_limit(network, replace(network, missing=True), taken_off=False) < 1


def test_a_gradient_is_trusted_where_it_is_many_times_what_a_program_does_otherwise() -> None:
    initial = [VariableState("w", "weight", (np.ones(3, np.float32),))]
    gradient = np.array([1.0, 0.1, 0.01], np.float32)
    exact = ReferenceRun([initial[0].copies[0]], [[1 - gradient]], [[gradient]], [0.0])
    for error, trusted in ((0.0, [True, True, True]), (0.005, [True, True, False]), (1.0, [False, False, False])):
        again = [PerturbedRun.of(exact, exact, initial)]
        expected = with_noise(exact, again, initial, "float32", [gradient + np.float32(error)])
        assert expected.trusted[0].tolist() == trusted


def test_a_gradient_that_is_noise_in_one_element_is_not_trusted_there_however_quiet_the_others_are() -> None:
    start, gradient = np.ones(1000, np.float32), np.ones(1000, np.float32)
    initial = [VariableState("w", "weight", (start,))]
    exact = ReferenceRun([start], [[start - gradient]], [[gradient]], [0.0])
    jumps = gradient.copy()
    jumps[7] = 0.5
    again = PerturbedRun.of(ReferenceRun([start], [[start - jumps]], [[jumps]], [0.0]), exact, initial)
    quiet = PerturbedRun.of(exact, exact, initial)
    [trusted] = with_noise(exact, [quiet, again], initial, "float32").trusted
    assert np.flatnonzero(~trusted).tolist() == [7]


def test_what_storing_a_weight_rounds_is_allowed_for_in_the_weights_own_type() -> None:
    for dtype, units, passes in (("float32", 1, True), ("float32", 1000, False), (ml_dtypes.bfloat16, 1, True)):
        start = np.ones(4, dtype)
        unit = float(np.spacing(start[:1])[0])
        initial = [VariableState("w", "weight", (start,))]
        expected = ReferenceRun([start], [[start]], [[np.ones(4, np.float32)]], [0.0])
        moved = [VariableState("w", "weight", ((start.astype(np.float64) + units * unit).astype(dtype),))]
        again = PerturbedRun.of(expected, expected, initial)
        share = check_update([moved], initial, with_noise(expected, [again], initial, "float32")).share
        assert (share <= 1) is passes
