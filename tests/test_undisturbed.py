"""A measurement is repeated until it shows what it is to, and the last of a few is judged as it is."""

import pytest

from tests.undisturbed import TIMES, undisturbed


@pytest.mark.parametrize(("shows_from", "measured"), [(1, 1), (2, 2), (TIMES, TIMES), (TIMES + 1, TIMES)])
def test_it_is_measured_until_it_shows_but_not_for_ever(shows_from: int, measured: int) -> None:
    numbers = iter(range(1, 10))

    def shows(number: int) -> None:
        assert number >= shows_from

    assert undisturbed(lambda: next(numbers), shows) == measured
    assert next(numbers) == measured + 1
