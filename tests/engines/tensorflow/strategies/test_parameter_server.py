"""What the check of the servers says of the additions that it finds."""

from harness.engines.tensorflow.strategies.parameter_server import miscounted


def test_additions_that_were_each_made_once_are_no_evidence_however_many() -> None:
    assert miscounted([1] * 8 * 128) is None


def test_what_was_lost_and_what_was_made_twice_is_named() -> None:
    said = miscounted([1, 0, 1, 2])
    assert said == "of 4 additions to one variable, each to be made once: number 1 0 times, number 3 2 times"


def test_of_many_wrong_ones_the_first_are_named() -> None:
    assert str(miscounted([0] * 7)).endswith("number 4 0 times and 2 more")
