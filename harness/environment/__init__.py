"""What machine this is: hardware, software, the settings that change timings, and how two differ.

Imports nothing of ours, and never TensorFlow: package versions come from their metadata.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from harness.environment import gpu, hardware, settings, software
from harness.environment.advice import warnings
from harness.environment.difference import Change, Severity, difference, other_machine
from harness.environment.fact import Fact, Facts, fact_words
from harness.environment.limits import (
    available_memory_bytes,
    free_descriptors,
    memory_limit_bytes,
    own_peak_bytes,
    usable_cores,
)

__all__ = [
    "Change",
    "Description",
    "Fact",
    "Facts",
    "Severity",
    "available_memory_bytes",
    "describe",
    "difference",
    "fact_words",
    "facts",
    "free_descriptors",
    "memory_limit_bytes",
    "other_machine",
    "own_peak_bytes",
    "usable_cores",
    "warnings",
]


@dataclass(frozen=True)
class Description:
    """Facts by dotted name, with units in the names, and what to do about bad settings."""

    facts: Mapping[str, Fact]
    warnings: tuple[str, ...]


def describe() -> Description:
    """This machine now. Takes about 0.25 s, most of it spent watching for stolen processor time."""
    found = facts()
    return Description(facts=found, warnings=tuple(warnings(found)))


def facts() -> Facts:
    """Everything known of this machine, flat; None where this system does not tell. Never raises for that.

    Holds no host name, user name or secret: the machine is told apart by a hash (`machine.id`).
    """
    before, started = settings.stolen_ticks(), time.monotonic()
    found: Facts = {}
    for describe_part in (hardware.facts, software.facts, settings.facts, gpu.facts):
        found.update(describe_part())
    # The other facts are read inside the interval over which the stolen time is counted.
    time.sleep(max(0.0, settings.STEAL_INTERVAL_S - (time.monotonic() - started)))
    found["cpu.steal_fraction"] = settings.steal_fraction(before, settings.stolen_ticks())
    return found
