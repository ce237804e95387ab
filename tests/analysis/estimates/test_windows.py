"""What the measured windows of a trial look like."""

import numpy as np
import pytest

from harness.analysis.estimates.windows import (
    diagnose,
    lag1_autocorrelation,
    outliers,
    quantile,
)
from harness.errors import HarnessError


def test_diagnostics_agree_with_numpy() -> None:
    seconds = list(np.random.default_rng(7).gamma(9, 0.01, 40))
    found = diagnose(seconds, 10)
    expected = np.percentile(np.array(seconds) / 10, (50, 95, 99))
    assert (found.step_time_p50_s, found.step_time_p95_s, found.step_time_p99_s) == pytest.approx(expected)
    centred = np.array(seconds) - np.mean(seconds)
    assert found.lag1_autocorrelation == pytest.approx((centred[:-1] @ centred[1:]) / (centred @ centred))
    assert quantile([1.0, 2.0, 4.0], 0.75) == np.percentile([1, 2, 4], 75)


def test_an_outlier_is_flagged_by_tukeys_fences() -> None:
    assert outliers([1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 2.0]) == (6,)
    assert outliers([1.0, 9.0, 1.0]) == ()


def test_windows_without_any_spread_resemble_nothing() -> None:
    assert lag1_autocorrelation([1.0, 1.0, 1.0]) is None


def test_diagnosing_no_windows_is_an_error() -> None:
    with pytest.raises(HarnessError, match="no windows"):
        diagnose([], 10)
