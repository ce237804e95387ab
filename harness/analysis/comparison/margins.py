"""δ and ε of a comparison: what was asked for, else the noise floor that was measured on this machine."""

import math

from harness.analysis.estimates.verdict import DELTA, EPSILON, Margins
from harness.errors import UsageError
from harness.record.validation import ValidationRecord

NOISE_FLOOR = "the noise floor that validate measured on this machine"
"""What the source of a measured δ begins with."""


def parse_share(key: str, text: str) -> float:
    """`0.01` or `1%` as a share. UsageError that names `key` unless it is from 0 to below 1."""
    number, percent = text.strip(), False
    if number.endswith("%"):
        number, percent = number[:-1].strip(), True
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = math.nan
    if not 0 <= share < 1:
        raise UsageError(f"{key}: given '{text}', expected a share such as 0.01 or 1%, from 0 to below 100%")
    return share


def choose_margins(
    validation: ValidationRecord | None,
    *,
    unpaired: bool,
    delta: float | None = None,
    epsilon: float | None = None,
    of_ones_own: str = "give --delta",
) -> Margins:
    """What was given, else δ = max(1 %, the noise floor that `validate` measured) and ε = max(3 %, δ).

    `unpaired`: the sides were measured at different times, whose floor is the larger one; where that is not
    known, the floor of sides that took turns is the least that is. A given δ above the default ε raises it. A given ε
    below the noise floor is a UsageError that says so, and so is a floor that no difference could pass; `of_ones_own`
    is then how one says δ oneself.
    """
    floor = validation.floor(unpaired) if validation is not None else None
    if floor is None and validation is not None:  # a validation of few rounds knows none for different times
        floor, unpaired = validation.floor(), False
    source = "the defaults"
    chosen = DELTA
    if delta is not None:
        chosen, source = delta, "the command line"
    elif floor is not None and validation is not None and floor > DELTA:
        chosen = floor
        kind = " for sides at different times" if unpaired else ""
        source = f"{NOISE_FLOOR}{kind} (run {validation.run_id})"
        if floor >= 1:
            raise UsageError(f"delta: {source} is {floor:.0%}: validate it again while it is idle, or {of_ones_own}")
        if epsilon is not None and epsilon < chosen:
            raise UsageError(
                f"--epsilon: given {epsilon:.3g}, but delta is {source}, {chosen:.3g}: "
                f"expected --epsilon of {chosen:.3g} or more, or a --delta of your own"
            )
    if epsilon is None and chosen > EPSILON:
        source += "; epsilon is raised to delta"
    return Margins(chosen, max(EPSILON, chosen) if epsilon is None else epsilon, source)
