"""How two runs' machines differ, and whether the difference forbids comparing them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from harness.environment.fact import Fact, fact_words

Severity = Literal["refuse", "note", "asked"]

_VOLATILE = re.compile(
    r"load\..*|memory\.(available|swap_used)_bytes|cpu\.(steal_fraction|throttled_periods)"
    r"|gpu\.\d+\.(temperature_c|sm_clock_mhz|memory_clock_mhz|utilization_percent|memory_used_bytes|throttle_reasons|ecc_corrected)"
)
"""Conditions of the moment: they differ between two runs of any one machine."""

_REFUSES = re.compile(
    r"cpu\.(model|architecture|vector_flags|physical_cores|logical_cores|affinity_cores|quota_cores|usable_cores)"
    r"|cpu\.(governor|turbo|smt|hypervisor|max_mhz|numa_nodes)|power\.on_battery|memory\.limit_bytes"
    r"|os\.system|gpu\.count|gpu\.\d+\.(name|memory_bytes|power_limit_w|mig|ecc|sm_clock_max_mhz|pcie_generation_max|pcie_lanes|nvlinks)|gpu\.topology"
    r"|env\.(OMP_NUM_THREADS|TF_NUM_INTRAOP_THREADS|TF_NUM_INTEROP_THREADS|CUDA_VISIBLE_DEVICES|MKL_NUM_THREADS)"
)
"""What decides speed and is never what a comparison is about.

Software (TensorFlow, CUDA, the driver, flags of XLA or NCCL, this checkout) is a note only: comparing
two builds is what `compare` is for.
"""

_SAME_SIZE = 0.02
"""Memory totals of one kind of machine differ by what the kernel kept for itself."""


@dataclass(frozen=True)
class Change:
    """One fact that differs. `refuse`: a difference in speed could be this and nothing else; `asked`: it is what A and
    B are, as the person said."""

    key: str
    a: Fact
    b: Fact
    severity: Severity

    def __str__(self) -> str:
        a, b = (fact_words(value, unknown="unknown") for value in (self.a, self.b))
        return f"{self.key}: {a} → {b}"


def difference(a: Mapping[str, Fact], b: Mapping[str, Fact]) -> list[Change]:
    """What differs between two runs' facts, those that forbid a comparison first.

    A fact that is unknown on one side is a note, since nothing says that it differs. A variable that
    is set on one side only differs, and so does a GPU that only one side has.
    """
    changes = []
    for key in sorted(a.keys() | b.keys()):
        if _VOLATILE.fullmatch(key) or _same(key, a.get(key), b.get(key)):
            continue
        refuses = bool(_REFUSES.fullmatch(key)) and (
            key.startswith("env.") or (a.get(key) is not None and b.get(key) is not None) or key == "cpu.quota_cores"
        )
        changes.append(Change(key, a.get(key), b.get(key), "refuse" if refuses else "note"))
    return sorted(changes, key=lambda change: change.severity != "refuse")


def other_machine(a: Mapping[str, Fact], b: Mapping[str, Fact]) -> list[Change]:
    """What says that `a` and `b` are not of one machine in one state; nothing where they may be."""
    return [
        change
        for change in difference(a, b)
        if change.severity == "refuse" or (change.key == "machine.id" and None not in (change.a, change.b))
    ]


def _same(key: str, a: Fact, b: Fact) -> bool:
    if key == "memory.total_bytes" and isinstance(a, int) and isinstance(b, int):
        return abs(a - b) <= _SAME_SIZE * max(a, b)
    return a == b and isinstance(a, bool) == isinstance(b, bool)
