"""Whether a validation's intervals, its noise and its plants are what they say: figures that can come out wrong.

How often nothing was called slower hides intervals that are too narrow: with intervals of width zero 3 of 108 kept
A/A decisions would be false alarms, which meets a goal of 5 %. How many intervals hold the truth hides nothing.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from scipy import special

from harness.analysis.estimates.intervals import CONFIDENCE, LogEstimate, log_mean, t_quantile
from harness.analysis.estimates.power import clopper_pearson
from harness.analysis.validation.decisions import Decided
from harness.record.validation import PlantSize, Rate, Spread


def holding(made: Iterable[Decided]) -> Rate:
    """How many decisions have a 95 % interval that holds what is there: 0 of A/A, −ln(1 + share) of a plant."""
    bounds = [(one.truth, _bounds(one)) for one in made if one.values]
    known = [(truth, ends) for truth, ends in bounds if ends is not None]
    return clopper_pearson(sum(low <= truth <= high for truth, (low, high) in known), len(known))


def false_alarms(same: Sequence[Decided]) -> Rate:
    """How many A/A decisions ended `slower` or `faster`."""
    return clopper_pearson(sum(one.verdicts.wall.verdict in ("slower", "faster") for one in same), len(same))


def _bounds(decided: Decided) -> tuple[float, float] | None:
    """The interval that was published, but of looks: theirs hold at all looks at once, and so more often at each."""
    published = decided.verdicts.wall.estimate
    if decided.fixed is None and published is not None:
        return published.log_bounds()
    return log_mean(decided.unchosen, "paired t").log_bounds()


def spreads(made: Iterable[Decided]) -> list[Spread]:
    """How far A/A decisions lie from 0 beside what their own standard errors say, by what sides are forked from."""
    by_source: dict[tuple[int, bool], list[Decided]] = {}
    for decided in made:
        if decided.plant is None:
            by_source.setdefault((decided.zygotes, decided.revisions), []).append(decided)
    found = []
    for (zygotes, revisions), same in sorted(by_source.items()):
        estimates = [log_mean(decided.unchosen, "paired t") for decided in same if len(decided.unchosen) > 1]
        if (spread := spread_of(estimates, zygotes)) is not None:
            more = {"revisions": revisions, "holds": holding(same), "false_alarms": false_alarms(same)}
            found.append(spread.model_copy(update=more))
    return found


def spread_of(estimates: Sequence[LogEstimate], zygotes: int) -> Spread | None:
    """Σθ² ÷ Σse² of decisions whose truth is 0, with the limits of a ratio of two variances (F).

    None where no interval is known.

    Decisions are as noisy as their cells are, so that both sums have fewer degrees of freedom than terms
    (Satterthwaite 1946): of θ², whose mean is known to be 0, one a decision; of se² blocks − 1. The square of a
    variance that b blocks estimate is on average (b + 1)/(b − 1) times that of the variance.
    """
    means = np.array([estimate.mean for estimate in estimates])
    squares = np.array([estimate.standard_error or 0.0 for estimate in estimates]) ** 2
    if not squares.sum() > 0:
        return None
    blocks = np.array([estimate.count for estimate in estimates])
    ratio = float((means**2).sum() / squares.sum())
    fourths = squares**2 * (blocks - 1) / (blocks + 1)
    above, below = squares.sum() ** 2 / fourths.sum(), squares.sum() ** 2 / (fourths / (blocks - 1)).sum()
    tail = (1 - CONFIDENCE) / 2
    return Spread(
        zygotes=zygotes,
        decisions=len(estimates),
        observed=math.sqrt((means**2).mean()),
        predicted=math.sqrt(squares.mean()),
        ratio=ratio,
        low=ratio / float(special.fdtri(above, below, 1 - tail)),
        high=ratio / float(special.fdtri(above, below, tail)),
    )


def plant_sizes(made: Iterable[Decided]) -> list[PlantSize]:
    """What each kind of slow-down came to, as a share of what was stated: the slope of all its decisions.

    On logarithms, through 0, where nothing is planted; the interval is of decisions, weighted as the slope weighs
    them, with t. None where one decision has none.
    """
    kinds: dict[str, list[Decided]] = {}
    for decided in made:
        if decided.plant is not None and decided.values:
            kinds.setdefault(decided.plant.kind, []).append(decided)
    return [_size(kind, same) for kind, same in sorted(kinds.items())]


def _size(kind: str, same: Sequence[Decided]) -> PlantSize:
    stated = np.array([decided.truth for decided in same])
    means = np.array([log_mean(decided.unchosen, "paired t").mean for decided in same])
    weight = float((stated**2).sum())
    slope = float((means * stated).sum() / weight)
    count = len(same)
    half = None
    if count > 1:
        residual = float((((means - slope * stated) * stated) ** 2).sum()) * count / (count - 1)
        half = t_quantile(count - 1, CONFIDENCE) * math.sqrt(residual) / weight
    return PlantSize(
        plant=kind,
        decisions=count,
        ratio=slope,
        low=None if half is None else slope - half,
        high=None if half is None else slope + half,
        holds=holding(same),
    )
