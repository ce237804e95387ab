"""What was measured of a machine's limits, as figures (`docs/protocol.md#limits-of-a-machine`)."""

import math

from harness.analysis.estimates.intervals import Interval, log_mean
from harness.record.limits import Limit


def reached(limit: Limit) -> Interval | None:
    """What a fresh process comes to: exp(mean ± t·s/√P) of the P processes' log rates; None where there is none.

    The limit itself is `Limit.best`, the largest of them.
    """
    return log_mean([math.log(rate) for rate in limit.rates], "t").interval() if limit.rates else None
