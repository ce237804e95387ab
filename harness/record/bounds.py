"""What a recorded value can be at all. Only a damaged or forged record lies beyond; such a one is refused by key.

Without these bounds a number that is finite and impossible (a window of 1e-322 s, a size of 400 digits) passes as
valid and overflows wherever it is first divided or drawn.
"""

import math
import re
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from harness.spec.values import MOST

LONGEST_S = 1e9
"""Thirty years."""
SHORTEST_S = 1e-9
"""What the clock of a window can tell."""

Duration = Annotated[float, Field(ge=0, le=LONGEST_S, allow_inf_nan=False)]
"""Seconds."""
WindowDuration = Annotated[float, Field(ge=SHORTEST_S, le=LONGEST_S, allow_inf_nan=False)]
"""Seconds of a window, which took some."""
StepDuration = Annotated[float, Field(ge=SHORTEST_S / 1e9, le=LONGEST_S, allow_inf_nan=False)]
"""Seconds a step: a window's share."""
PerSecond = Annotated[float, Field(ge=1 / LONGEST_S, le=1e18, allow_inf_nan=False)]
"""Examples a second."""
Speed = Annotated[float, Field(ge=0, le=1e18, allow_inf_nan=False)]
"""Bits a second; 0 where nothing came through."""
Natural = Annotated[int, Field(ge=0, le=MOST)]
"""A count, an index, or a size in bytes."""
Positive = Annotated[int, Field(ge=1, le=MOST)]
"""A count of at least one."""
Reported = Annotated[int, Field(ge=-MOST, le=MOST)]
"""A count that another program reported."""

_FIRST_YEAR, _LAST_YEAR = 1970, 2199
_SHAPE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d(:?\d\d)?)?)?", re.ASCII)


def _moment(text: str) -> str:
    """`text`, when every tool that is handed it can read it as a time (pandas, asv, TensorBoard)."""
    try:
        good = bool(_SHAPE.fullmatch(text)) and _FIRST_YEAR <= datetime.fromisoformat(text).year <= _LAST_YEAR
    except ValueError:
        good = False
    if not good:
        raise ValueError(f"given {text[:60]!r}, expected a time such as 2026-11-21T01:23:45+00:00 (ISO 8601)")
    return text


Utc = Annotated[str, AfterValidator(_moment), Field(json_schema_extra={"format": "date-time"})]
"""A time as ISO 8601 writes it, kept as it is written."""


def _known(value: Any) -> Any:
    """A number that JSON lacks is not known; a larger one than any machine has is refused."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int) and abs(value) > 16 * MOST:  # limits of 64 bits, such as 'no limit', are kept
        raise ValueError(f"given a number of {len(str(value))} digits, expected at most {len(str(16 * MOST))}")
    return value


MachineFact = Annotated[str | int | float | bool | None, BeforeValidator(_known)]
"""Something known of a machine; None where it is not."""
