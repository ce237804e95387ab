"""Hand durations that were measured elsewhere to pytest-benchmark's statistics, by its public interface.

pytest-benchmark times a function itself and takes no durations. But its timer may be any callable
(`@pytest.mark.benchmark(timer=...)`), so the suite gives it a clock that stands still until the
"function" moves it by the next recorded duration. What it then computes, saves and compares is exactly
what was recorded: each round begins at zero, so that no rounding comes in.
"""

from collections.abc import Iterator, Sequence
from typing import Any


class RecordedClock:
    """A timer that shows a recorded duration instead of the time."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        """Seconds since the round began."""
        return self.now_s

    def __str__(self) -> str:
        return "the harness's own windows"


CLOCK = RecordedClock()


def hand_over(benchmark: Any, durations_s: Sequence[float]) -> None:
    """Make each of `durations_s` one round of `benchmark`, whose timer must be CLOCK.

    Under `--benchmark-disable` pytest-benchmark keeps no statistics, and nothing but the call remains.
    """
    left: Iterator[float] = iter(durations_s)

    def rewind() -> None:
        CLOCK.now_s = 0.0

    def let_it_pass() -> None:
        # --benchmark-cprofile calls once more than there are rounds
        CLOCK.now_s = next(left, 0.0)

    benchmark.pedantic(let_it_pass, setup=rewind, rounds=len(durations_s), iterations=1, warmup_rounds=0)
