"""How much work makes a step slower by a stated share, found out in the process that does it."""

import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.plants._counted import CountedWork
from harness.engines.tensorflow.plants.base import Keep
from harness.errors import HarnessError
from harness.record.trial import Plant

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


def rate_of(plant: Plant, work: Sequence[CountedWork], step: Callable[[], object], keep: Keep) -> float:
    """Products a step of `plant`: as many as it says, or as make `step` longer by its share."""
    return calibrated_rate(plant.kind, plant.share, work, step, keep) if plant.each is None else plant.each


def calibrated_rate(
    kind: str, share: float, work: Sequence[CountedWork], step: Callable[[], object], keep: Keep
) -> float:
    """Products a step, all `work` together, that make `step` longer by `share` than it is with none.

    What a product costs is measured where it will be spent, inside the step, by steps with and without a
    load of them in turn: next to the model's own ops it is not what it is alone. The few ops that stand in
    the step even when there is nothing to do are in the placebo's step, too. Both the
    products and the step are computation, so the share holds when the machine's speed drifts, and
    costs that `keep` found for an earlier trial serve later ones too.
    """
    costs = keep(f"plant-{kind}", lambda: {"costs": _costs(kind, work, step)})["costs"]
    idle_s, product_s = (float(cost) for cost in costs)
    return share * idle_s / product_s


def _costs(kind: str, work: Sequence[CountedWork], step: Callable[[], object]) -> "np.ndarray[Any, Any]":
    """[seconds of a step in which nothing is to be done, of a product in the step]."""
    import numpy as np

    product_s = work[0].cost_s()
    _set(work, 0.0)
    warm_up = [_seconds(step) for _ in range(WARM_UP_STEPS)]
    load = PROBE * statistics.median(warm_up[WARM_UP_STEPS // 2 :]) / product_s
    idle_s, loaded_s = _alternate(work, load, step)
    if loaded_s - idle_s < LEAST * PROBE * idle_s:
        raise HarnessError(f"plant: '{kind}' could not be calibrated: steps with work took no longer than without")
    return np.array([idle_s, (loaded_s - idle_s) / load])


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
