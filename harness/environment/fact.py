"""What is known about a machine: its type, and how a person reads it."""

Fact = str | int | float | bool | None
Facts = dict[str, Fact]


def fact_words(value: Fact, unknown: str = "not known") -> str:
    """A fact's value in words; `unknown` is said of one that this system does not tell."""
    if value is None:
        return unknown
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
