"""How noisy the machine is at this moment: the scatter of a trial's windows, slow drift left out."""

import itertools
import math
from collections.abc import Sequence


def window_noise(seconds: Sequence[float]) -> float | None:
    """Relative standard deviation of window times by successive differences; None below three windows.

    sqrt(Σ (ln s_{i+1} − ln s_i)² / (2(n − 1))): von Neumann, Kent, Bellinson & Hart 1941, *The mean square successive
    difference*. A drift that is slow against a window hardly enters, a straggler does. `seconds` are positive, and of
    windows with the same number of steps.
    """
    if len(seconds) < 3:
        return None
    logs = [math.log(value) for value in seconds]
    squares = ((later - earlier) ** 2 for earlier, later in itertools.pairwise(logs))
    return math.sqrt(math.fsum(squares) / (2 * (len(logs) - 1)))


def pooled_noise(values: Sequence[float]) -> float | None:
    """Root mean square; None of nothing."""
    return math.sqrt(math.fsum(value * value for value in values) / len(values)) if values else None
