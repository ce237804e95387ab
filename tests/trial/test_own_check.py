"""A check of the user's own: what it is given, how it says what is wrong, and that a wrong path is refused."""

from collections.abc import Mapping

import numpy as np
import pytest

from harness.errors import UsageError
from harness.protocol.state import VariableState
from harness.trial.own_check import own_check

HERE = "tests.trial.test_own_check"
Arrays = Mapping[str, np.ndarray]  # type: ignore[type-arg]


def moves(before: Arrays, after: Arrays) -> str | None:
    """Also changes what it is given, which must be nobody's loss."""
    moved = not np.array_equal(before["w"], after["w"])
    after["w"][:] = 7
    return None if moved else "w stood still"


def asserts(before: Arrays, after: Arrays) -> None:
    np.testing.assert_array_equal(before["w"], after["w"], "w moved")


def says_true(before: Arrays, after: Arrays) -> bool:
    return len(before) == len(after)


def of_one(state: Arrays) -> None:
    """Has too few arguments."""


def state(value: float) -> list[VariableState]:
    return [VariableState("w", "weight", (np.full(2, value), np.full(2, -1.0)))]


def found(name: str, before: float, after: float) -> str | None:
    check = own_check(f"{HERE}:{name}")
    assert check is not None
    now = state(after)
    answer = check(state(before), now)
    assert now[0].copies[0][0] == after
    return answer


def test_it_gets_arrays_by_name_before_and_after_and_its_text_is_the_evidence() -> None:
    assert found("moves", 1.0, 2.0) is None
    assert found("moves", 1.0, 1.0) == "w stood still"


def test_what_it_raises_is_evidence_too() -> None:
    assert found("asserts", 1.0, 1.0) is None
    assert (found("asserts", 1.0, 2.0) or "").startswith(f"'{HERE}:asserts' raised AssertionError: ")


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("nowhere", "check: given 'nowhere', expected package.module:function"),
        (f"{HERE}:of_one", "expected a function of the arrays before and after an update: too many positional"),
        (f"{HERE}:absent", "has no 'absent'"),
    ],
)
def test_one_that_cannot_be_called_is_refused_in_one_line(path: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        own_check(path)
    assert "\n" not in str(caught.value)


def test_an_answer_that_is_neither_nothing_nor_text_is_refused() -> None:
    with pytest.raises(UsageError, match="returned True, expected None or, as text, what is wrong"):
        found("says_true", 1.0, 2.0)


def test_without_a_path_nothing_is_asked() -> None:
    assert own_check("") is None
