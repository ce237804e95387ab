"""After how many blocks a decision between two sides is looked at."""

QUIET_BLOCKS = 12
"""Most blocks where the machine is known to be quiet: the noise floor of a validation is at most `verdict.DELTA`."""
MAX_BLOCKS = 18
"""Most blocks elsewhere."""
MOST_BLOCKS = 1000
"""More than that nobody can ask for: each is in the plan by name, and the plan is sealed before the first runs."""
FIRST_LOOK = 5
"""Fewest blocks of a look that is not the only one: with four the boundary is 9 standard errors."""
PACE = 1.5
"""How many times the blocks of a look the next one has, about."""


def looks_within(most: int) -> tuple[int, ...]:
    """The blocks after which a decision of at most `most` is looked at: 5, 8, 12 and 18 of eighteen."""
    after = [most]
    while (earlier := round(most / PACE ** len(after))) >= FIRST_LOOK:
        after.insert(0, earlier)
    return tuple(after)
