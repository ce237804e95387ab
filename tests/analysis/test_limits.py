"""What a fresh process comes to is a mean of log rates with Student's interval."""

import math

import pytest

from harness.analysis.limits import reached
from tests.limits import limit, missing


def test_the_interval_is_students_on_the_logarithm() -> None:
    found = reached(limit(rates=[50e9, 55e9, 60.5e9]))  # each a tenth above the one before
    assert found is not None
    assert found.value == pytest.approx(55e9)
    assert (found.count, found.confidence) == (3, 0.95)
    half = 4.302652729911275 * math.log(1.1) / math.sqrt(3)  # t of two degrees of freedom
    assert found.low == pytest.approx(55e9 * math.exp(-half))
    assert found.high == pytest.approx(55e9 * math.exp(half))


def test_one_process_has_no_interval_and_none_has_nothing() -> None:
    alone = reached(limit(rates=[50e9], sizes=[512], repetitions=[3]))
    assert alone is not None
    assert not alone.known
    assert reached(missing()) is None
