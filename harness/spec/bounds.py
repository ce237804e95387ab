"""How much a spec may ask for. It is counted by the lengths of its lists, before anything of it is made."""

import math
from collections.abc import Mapping

from harness.errors import UsageError
from harness.files import LARGEST_RECORDS

MOST_COMBINATIONS = 100_000
"""Of the values of a sweep's axes, those that make no sense included: to go through them takes about a minute."""
MOST_TRIALS = 1_000_000
"""In the plan of a sweep, where each stands by name: weeks of measuring, and about a minute of planning."""
_BYTES_OF_TRIAL, _BYTES_OF_WINDOW = 2_700, 40
"""Of a record, as in the kept runs."""
MOST_JOBS = 100_000
"""Of a run of faults."""


def check_product(source: str, counts: Mapping[str, int], unit: str, most: int) -> None:
    """UsageError, with what is asked for and what may be, where the product of `counts`, by key, is above `most`."""
    if (asked := math.prod(counts.values())) <= most:
        return
    several = {key: count for key, count in counts.items() if count > 1}
    factors = " × ".join(f"{count:,}" for count in several.values())
    given = f"{asked:,} {unit}" + (f" ({factors})" if len(several) > 1 else "")
    raise UsageError(f"{source}: {', '.join(several)}: given {given}, expected at most {most:,}")


def check_records(source: str, trials: int, windows: int) -> None:
    """UsageError where the records of so many trials of so many windows would be more than a run is read of."""
    size = trials * (_BYTES_OF_TRIAL + _BYTES_OF_WINDOW * windows)
    if size > LARGEST_RECORDS:
        raise UsageError(
            f"{source}: trials, windows: {trials:,} trials of {windows:,} windows have records of about "
            f"{size / 2**30:,.1f} GiB, expected at most {LARGEST_RECORDS / 2**30:g} GiB, of which a run can be read"
        )
