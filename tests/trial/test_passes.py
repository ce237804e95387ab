"""What a pass is held against: each example once, unchanged, in the order that the seed gives."""

from typing import Any

import numpy as np
import pytest

from harness.errors import Unprovable
from harness.trial.ending import WrongResult
from harness.trial.passes import KnownPass, digest_of, digests_of, judge_batch

X, Y = np.arange(24, dtype=np.float32).reshape(12, 2), np.arange(12, dtype=np.int32)
KNOWN = KnownPass(digests_of(X, Y))


def drawn(*numbers: int) -> list[int]:
    """The digests of these examples."""
    return digests_of(X[[*numbers]], Y[[*numbers]])


def test_a_pass_is_right_in_any_order() -> None:
    assert KNOWN.judge(drawn(*reversed(range(12)))) is None


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (drawn(*range(11)), "1 of a pass of 12 is missing (first number 12)"),
        (drawn(*range(12), 3), "1 of a pass of 12 is there more often than in the source (first number 4)"),
        (
            drawn(*range(11), 3),
            "1 of a pass of 12 is missing (first number 12); 1 of a pass of 12 is there more often than in the source "
            "(first number 4)",
        ),
        (
            [*drawn(*range(10)), *digests_of(X[10:] + 1, Y[10:])],
            "2 of a pass of 12 are missing (first number 11); 2 of a pass of 12 are of no example of the source",
        ),
        ([], "12 of a pass of 12 are missing (first number 1)"),
    ],
)
def test_what_was_lost_doubled_or_changed_is_told_apart(found: list[int], said: str) -> None:
    assert KNOWN.judge(found) == said


def test_a_target_that_belongs_to_another_input_is_a_changed_example() -> None:
    assert "of no example of the source" in (KNOWN.judge(digests_of(X, np.roll(Y, 1))) or "")


def test_examples_that_a_source_has_twice_are_to_come_twice() -> None:
    twice = KnownPass(drawn(0, 0, 1))
    assert twice.judge(drawn(1, 0, 0)) is None
    assert twice.judge(drawn(0, 1)) == "1 of a pass of 3 is missing (first number 1)"


def test_an_order_is_right_only_as_it_is() -> None:
    order = [3, 1, 2, 0]
    assert KNOWN.judge_order(drawn(3, 1, 2, 0), order) is None
    evidence = KNOWN.judge_order(drawn(3, 2, 1, 0), order)
    assert evidence == "example 2 of the pass is not number 2 of the source, as the seed has it"


def test_a_source_that_loses_or_doubles_in_its_second_pass_is_wrong() -> None:
    with pytest.raises(WrongResult, match="two passes over 'mine' itself have 12 examples and 11"):
        KnownPass.of_two("mine", KNOWN.digests, drawn(*range(11)))
    with pytest.raises(WrongResult, match="1 of a pass of 12 is there more often"):
        KnownPass.of_two("mine", KNOWN.digests, drawn(*range(11), 0))


def test_of_a_source_that_is_random_in_each_pass_nothing_can_be_proved() -> None:
    with pytest.raises(Unprovable, match="have other examples, as of data that are random in each"):
        KnownPass.of_two("mine", KNOWN.digests, digests_of(X + 1, Y))


def test_of_a_source_in_another_order_each_time_all_but_the_order_is_known() -> None:
    known = KnownPass.of_two("mine", KNOWN.digests, drawn(*reversed(range(12))))
    assert known.judge(KNOWN.digests) is None
    assert "in another order each" in known.order_unknown
    assert KnownPass.of_two("mine", KNOWN.digests, KNOWN.digests).order_unknown == ""


def test_a_digest_is_of_the_bytes_of_all_parts() -> None:
    assert digest_of((b"jpeg", np.int64(1))) != digest_of((b"jpeg", np.int64(2)))
    assert digests_of(X, Y)[3] == digest_of((X[3], Y[3]))


@pytest.mark.parametrize(
    ("x", "y", "said"),
    [
        (X, Y, None),
        (X[:11], Y, "inputs [11, 2] float32, expected [12, 2] float32"),
        (X, Y[:11], "targets [11] int32, expected [12] int32"),
        (X.reshape(12, 1, 2), Y, "inputs [12, 1, 2] float32, expected [12, 2] float32"),
        (X.astype(np.float64), Y, "inputs [12, 2] float64, expected [12, 2] float32"),
    ],
)
def test_a_batch_has_its_size_and_the_shapes_and_types_of_the_model(x: Any, y: Any, said: str | None) -> None:
    assert judge_batch({"inputs": x, "targets": y}, {"inputs": X[0], "targets": Y[0]}, 12) == said
