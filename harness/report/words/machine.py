"""The machine of a run in a few words, and whether it was too busy to measure speed."""

from collections.abc import Mapping
from typing import Any

from harness.visible import plural, printable

_BUSY = 2
"""Load a core from which what was measured is the other work as much as the cells."""


def machine_words(facts: Mapping[str, Any]) -> str:
    """`AMD EPYC, 16 cores, 1 GPU (NVIDIA H100 80GB HBM3)`; empty when that is not recorded."""
    model, cores, gpus = (facts.get(name) for name in ("cpu.model", "cpu.usable_cores", "gpu.count"))
    words = [str(model)] if model else []
    words += [plural(cores, "core")] if isinstance(cores, int) and cores else []
    if isinstance(gpus, int) and gpus:
        names = dict.fromkeys(str(name) for place in range(gpus) if (name := facts.get(f"gpu.{place}.name")))
        words.append(plural(gpus, "GPU") + (f" ({' and '.join(names)})" if names else ""))
    return printable(", ".join(words))


def busy_words(facts: Mapping[str, Any]) -> str:
    """That other work held the machine when the run began; empty where none did, or that is not known."""
    # the load is of the whole machine, of which a container may have a few cores
    load, cores = facts.get("load.1min"), facts.get("cpu.logical_cores") or facts.get("cpu.usable_cores")
    if not isinstance(load, int | float) or not isinstance(cores, int) or load <= _BUSY * cores:
        return ""
    return (
        f"Not a measurement of speed: other work held the machine, with a load of {load:g} on {plural(cores, 'core')} "
        "at the start."
    )
