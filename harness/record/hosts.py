"""What several machines that measured together are, as one: equal only to the same machines."""

from collections.abc import Mapping

Fact = str | int | float | bool | None
OF_THE_SWEEP = ("git.revision",)
"""Facts of the folder that the sweep was started in, whoever measures; hosts elsewhere have none or their own."""
BETWEEN = " | "


def together(started: Mapping[str, Fact], hosts: Mapping[str, Mapping[str, Fact]]) -> dict[str, Fact]:
    """Facts of the machines that measured: those of `hosts`, or without any those of where the run was started.

    What differs between hosts is the text of each value once, in order, with BETWEEN between them; so `machine.id`
    is that of just these machines.
    """
    if not hosts:
        return dict(started)
    found: dict[str, Fact] = {}
    for key in dict.fromkeys(key for facts in hosts.values() for key in facts):
        values = [facts.get(key) for facts in hosts.values()]
        alike = all(value == values[0] and type(value) is type(values[0]) for value in values)
        found[key] = values[0] if alike else BETWEEN.join(sorted({_text(value) for value in values}))
    return found | {key: started[key] for key in OF_THE_SWEEP if key in started}


def _text(value: Fact) -> str:
    return "unknown" if value is None else str(value)
