"""Each worker's own forward and backward: in rounds that all begin together, as many passes on every worker."""

from collections.abc import Callable

import pytest

from harness.trial.alone import ROUND_S, ROUNDS, times_alone


class Worker:
    """A worker whose passes take so long, the first one more; the mean over all workers is given."""

    def __init__(self, pass_s: float, mean_s: float) -> None:
        self.pass_s, self.mean_s = pass_s, mean_s
        self.now = 0.0
        self.passes = 0
        self.meetings: list[int] = []
        """Passes made before each time that the workers met."""

    def run(self) -> None:
        self.now += self.pass_s if self.passes else 100 * self.pass_s
        self.passes += 1

    def agree(self, _: float) -> float:
        self.meetings.append(self.passes)
        return self.mean_s

    def times(self) -> list[float]:
        clock: Callable[[], float] = lambda: self.now  # noqa: E731
        return times_alone(self.run, self.agree, clock)


def test_a_value_a_round_is_the_seconds_of_a_pass_and_the_first_one_is_in_none() -> None:
    assert Worker(0.01, 0.01).times() == pytest.approx([0.01] * ROUNDS)


def test_fast_and_slow_workers_make_as_many_passes_and_meet_as_often() -> None:
    fast, slow = Worker(0.01, 0.015), Worker(0.02, 0.015)
    assert slow.times() == pytest.approx([2 * seconds for seconds in fast.times()])
    assert fast.meetings == slow.meetings
    assert len(fast.meetings) == 1 + ROUNDS


def test_a_round_has_one_pass_where_that_is_long_and_many_where_it_is_short() -> None:
    long, short = Worker(3.0, 3.0), Worker(ROUND_S / 100, ROUND_S / 100)
    long.times(), short.times()
    assert long.passes == 2 + ROUNDS
    assert short.passes == pytest.approx(2 + 100 * ROUNDS, abs=ROUNDS)
