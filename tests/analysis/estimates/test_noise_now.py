"""How noisy the machine is now: successive differences of windows."""

import math

import numpy as np
import pytest

from harness.analysis.estimates.noise_now import pooled_noise, window_noise


def test_it_is_the_relative_deviation_of_independent_windows() -> None:
    chance = np.random.default_rng(1)
    found = window_noise([float(value) for value in 0.1 * np.exp(0.03 * chance.standard_normal(20_000))])
    assert found == pytest.approx(0.03, rel=0.03)


def test_a_slow_drift_hardly_enters() -> None:
    chance = np.random.default_rng(1)
    drift = np.linspace(0, 0.5, 1000)
    found = window_noise([float(value) for value in np.exp(drift + 0.02 * chance.standard_normal(1000))])
    assert found == pytest.approx(0.02, rel=0.1)


def test_a_straggler_does() -> None:
    quiet = [0.1, 0.101] * 5
    calm, loud = window_noise(quiet), window_noise([*quiet, 0.3, *quiet])
    assert calm is not None
    assert loud is not None
    assert loud > 10 * calm


def test_two_windows_say_nothing() -> None:
    assert window_noise([0.1, 0.2]) is None
    assert pooled_noise([]) is None
    assert pooled_noise([0.03, 0.04]) == pytest.approx(math.sqrt(0.00125))
