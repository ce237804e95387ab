"""How much work makes a step slower by a stated share, found out in the process that does it."""

import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from harness.errors import HarnessError
from harness.trial.devices.base import Unsupported
from harness.trial.plants._counted import CountedWork
from harness.trial.plants.base import Keep

if TYPE_CHECKING:
    import numpy as np

WARM_UP_STEPS = 12
PAIRS = 120
"""One pair differs by 10 % and more; what is found here is kept for all trials of a cell."""
PROBE = 0.75
"""The work that is tried is about so many steps long: a difference that noise of 10 % a step does not hide."""
LEAST = 0.1
"""A step with the work that is tried is longer by at least this part of it, or the work is not in its way."""
TRIM = 0.1
"""Share of the fastest and of the slowest steps that are left out on either side."""


def calibrated_rate(
    kind: str, share: float, work: Sequence[CountedWork], step: Callable[[], object], keep: Keep
) -> float:
    """Products a step, all `work` together, that make `step` longer by `share`.

    What a product costs is measured where it will be spent, inside the step, by steps with and without a
    load of them in turn: next to the model's own ops it is not what it is alone. The few ops that stand in
    the step even when there is nothing to do are measured alone, and are part of the share. Both the
    products and the step are computation, so the share holds when the machine's speed drifts, and
    costs that `keep` found for an earlier trial serve later ones too. Raises Unsupported when those ops
    alone are more than the share.
    """
    costs = keep(f"plant-{kind}", lambda: {"costs": _costs(kind, work, step)})["costs"]
    fixed_s, plain_s, product_s = (float(cost) for cost in costs)
    rate = (share * plain_s - fixed_s) / product_s
    if rate <= 0:
        raise Unsupported(too_small(kind, share, plain_s, fixed_s))
    return rate


def too_small(kind: str, share: float, plain_s: float, fixed_s: float) -> str:
    """Why nothing so small can be planted."""
    return (
        f"plant: '{kind}' of {share:.0%} of a step of {plain_s * 1e3:.2g} ms is less than what the planted "
        f"ops cost by themselves ({fixed_s * 1e6:.0f} µs): use a larger batch_size"
    )


def _costs(kind: str, work: Sequence[CountedWork], step: Callable[[], object]) -> "np.ndarray[Any, Any]":
    """[seconds of the planted ops without a product, of a step without them, of a product in the step]."""
    import numpy as np

    fixed_s, product_s = work[0].cost_s()
    _set(work, 0.0)
    warm_up = [_seconds(step) for _ in range(WARM_UP_STEPS)]
    load = PROBE * statistics.median(warm_up[WARM_UP_STEPS // 2 :]) / product_s
    idle_s, loaded_s = _alternate(work, load, step)
    if loaded_s - idle_s < LEAST * PROBE * idle_s:
        raise HarnessError(f"plant: '{kind}' could not be calibrated: steps with work took no longer than without")
    return np.array([fixed_s, idle_s - fixed_s, (loaded_s - idle_s) / load])


def _alternate(work: Sequence[CountedWork], load: float, step: Callable[[], object]) -> tuple[float, float]:
    """(mean seconds a step without work, with `load` products), trimmed, from pairs in random order."""
    order = random.Random(PAIRS)
    taken: dict[float, list[float]] = {0.0: [], load: []}
    for _ in range(PAIRS):
        for rate in order.sample((0.0, load), 2):
            _set(work, rate)
            taken[rate].append(_seconds(step))
    return _trimmed(taken[0.0]), _trimmed(taken[load])


def _set(work: Sequence[CountedWork], rate: float) -> None:
    for one in work:
        one.set_rate(rate)


def _seconds(step: Callable[[], object]) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def _trimmed(values: Sequence[float]) -> float:
    cut = int(TRIM * len(values))
    return statistics.fmean(sorted(values)[cut : len(values) - cut])
