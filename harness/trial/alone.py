"""What a step costs a worker by itself: forward and backward, without the reduction.

Workers in lock-step wait for each other in every all-reduce, so a window lasts as long for the fastest as for the
slowest, and does not tell whom the others wait for. So once everything is timed and proved, each times some passes
alone: no gradient is reduced and no weight is changed. All begin a round together, because workers that share a
machine share it in training, too.
"""

import math
import time
from collections.abc import Callable

ROUNDS = 9
"""Rather many short ones: workers are compared round by round, so that what disturbs all of them does not matter."""
ROUND_S = 0.02
"""About how long a round lasts; at least one pass."""


def times_alone(
    run: Callable[[], None], agree: Callable[[float], float], clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Seconds of a pass, one value a round.

    `run` makes one pass and returns when it is done; `agree` returns the mean of what all workers give it, and so
    not before all have come to it. The passes of a round are as many on every worker.
    """
    run()  # traces and compiles
    began = clock()
    run()
    passes = max(1, math.ceil(ROUND_S / max(agree(clock() - began), 1e-6)))
    rounds = []
    for _ in range(ROUNDS):
        agree(0.0)
        began = clock()
        for _ in range(passes):
            run()
        rounds.append((clock() - began) / passes)
    return rounds
