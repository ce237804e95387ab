"""What repeated decisions say about the method: rates with their limits, the noise floor, the power.

`docs/protocol.md#validation-of-the-method`: the same thing is decided against itself many times
(A/A), and against itself with a planted slow-down; these functions turn the outcomes into figures.

Source: Clopper & Pearson (1934) for the limits of a rate.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from harness.analysis.estimates.intervals import CONFIDENCE, Sample, log_ratio
from harness.analysis.estimates.verdict import EPSILON, Margins, judge
from harness.errors import HarnessError
from harness.record.validation import MOST_PLANTED, Rate

POWER = 0.9
FLOOR_SHARE = 0.95
"""The share of A/A decisions that stay below the noise floor."""
_ENOUGH_FOR_A_QUANTILE = 20
_NORMAL_95 = 1.96


def clopper_pearson(count: int, of: int) -> Rate:
    """`count` of `of` with its exact two-sided 95 % limits; [0, 1] when there is nothing to count.

    The limits are quantiles of the beta distribution (Clopper & Pearson 1934). They hold the true rate at
    least as often as they say, whatever it is. SciPy's inverse of the beta function gives them in closed form;
    `binomtest` searches for a root instead, is off by 5e-13 from what records hold, and takes 0.9 s of processor time
    to import, beside the 1.3 s of a `show`. HarnessError unless 0 ≤ count ≤ of.
    """
    tail = (1 - CONFIDENCE) / 2
    return Rate(count=count, of=of, low=_lower(count, of, tail), high=_upper(count, of, tail))


def upper_limit(count: int, of: int) -> float:
    """The one-sided upper limit of a rate, for "at most": 0 of 60 is at most 4.9 % (95 %).

    Where only "too often" would be bad news the whole 5 % may lie on that side, so this is lower than
    the upper end of the two-sided limits. HarnessError unless 0 ≤ count ≤ of; 1 when `of` is 0.
    """
    return _upper(count, of, 1 - CONFIDENCE)


def lower_limit(count: int, of: int) -> float:
    """The one-sided lower limit of a rate, for "at least": 37 of 40 is at least 82 % (95 %). 0 when `of` is 0."""
    return _lower(count, of, 1 - CONFIDENCE)


def noise_floor(log_ratios: Sequence[float]) -> float | None:
    """The share that 95 % of A/A decisions stay below: 0.01 is 1 %. None with fewer than two.

    `log_ratios` are the estimates ln(X_b/X_a) of whole decisions, not of single pairs. With 20 or more the
    floor is the 95 % point of |ln ratio|, interpolated between the ordered values. Below that the 95 % point
    lies at the largest value or beyond it, so 1.96·√(mean square) stands in: the true mean is known to be 0,
    and the noise is taken as normal. HarnessError on a value that is not finite.
    """
    values = np.abs(_finite(log_ratios, "an A/A decision's log ratio"))
    if len(values) < 2:
        return None
    if len(values) >= _ENOUGH_FOR_A_QUANTILE:
        floor = float(np.quantile(values, FLOOR_SHARE))
    else:
        floor = _NORMAL_95 * float(np.sqrt(np.mean(values**2)))
    return math.expm1(floor)


def smallest_effect(
    deviation: float,
    pairs: int,
    delta: float,
    *,
    level: float = (1 - CONFIDENCE) / 2,
    least: float = 0.0,
    power: float = POWER,
) -> float | None:
    """The smallest slow-down, as a share, that `pairs` pairs of this `deviation` call slower with `power`.

    ln(1 + δ) + (t₁₋ₗ + t_power)·s/√P, with P − 1 degrees of freedom: the mean lies above the margin by what a
    one-sided test at `level` takes (2.5 %; of a plan with looks what its last look takes, though an earlier one may
    find it too) and by what `power` of the means reach. At `least` so large: of a plan with looks the margin of
    equivalence, since an early look calls most of what is smaller, and quiet enough, equivalent. None with fewer than
    two pairs, and where it is larger than any that is planted.
    """
    if pairs < 2:
        return None
    quantiles = special.stdtrit(pairs - 1, 1 - level) + special.stdtrit(pairs - 1, power)
    log = max(math.log1p(delta) + float(quantiles) * deviation / math.sqrt(pairs), math.log1p(least))
    return math.expm1(log) if log < math.log1p(MOST_PLANTED) else None


Met = tuple[Sequence[float], Sequence[float]]
"""The same thing at an earlier and a later time: ln throughput of each good trial."""


@dataclass(frozen=True)
class Unpaired:
    """The same thing measured at two times and compared without pairs, as `compare` of two runs does."""

    false_alarms: Rate
    """`faster` or `slower` among the comparisons made."""
    floor: float | None
    """`noise_floor` of their log ratios, as a share."""


def unpaired(met: Sequence[Met], delta: float) -> Unpaired | None:
    """The later of each pair against the earlier by Welch's t: false alarms beyond δ without pairing.

    `met` are trials of one cell. Where none serves twice the comparisons are independent but for the machine's own
    drift. What lies minutes apart says little of days. A comparison with fewer than two trials on a side is left
    out; None when none is left. `delta` is a share (`Margins`). HarnessError on a value that is not finite.
    """
    # an alarm does not depend on the margin of equivalence, which is asked later
    margins = Margins(delta, max(delta, EPSILON))
    alarms = 0
    log_ratios = []
    for earlier, later in met:
        if min(len(earlier), len(later)) < 2:
            continue
        estimate = log_ratio(_sample(later, "later"), _sample(earlier, "earlier"))
        alarms += judge(estimate, margins).verdict in ("faster", "slower")
        log_ratios.append(estimate.mean)
    if not log_ratios:
        return None
    return Unpaired(clopper_pearson(alarms, len(log_ratios)), noise_floor(log_ratios))


def _sample(values: Sequence[float], when: str) -> Sample:
    """Trials that no trial of the other side took turns with."""
    return Sample(tuple(values), tuple(f"{when} {index}" for index in range(len(values))))


def _lower(count: int, of: int, tail: float) -> float:
    _check(count, of)
    return float(special.betaincinv(count, of - count + 1, tail)) if count else 0.0


def _upper(count: int, of: int, tail: float) -> float:
    _check(count, of)
    return float(special.betaincinv(count + 1, of - count, 1 - tail)) if count < of else 1.0


def _check(count: int, of: int) -> None:
    if not 0 <= count <= of:
        raise HarnessError(f"a rate of {count} of {of}: expected a count from 0 to the number of decisions")


def _finite(values: Sequence[float], what: str) -> np.typing.NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise HarnessError(f"{what} is {array[~np.isfinite(array)][0]}: expected a finite number")
    return array
