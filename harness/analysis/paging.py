"""What a step pays for memory that the C library has given back and takes again (`docs/figures.md#page-faults`)."""

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.environment import Fact
from harness.record.trial import TrialRecord
from harness.spec.work import Cell

MUCH = 0.2
"""From this share of the processor time on, the kernel's is told."""
MANY = 20_000
"""If a second of processor time has so many page faults or more: below, the kernel is busy with something else."""
VARIABLE, KEPT_BYTES = "MALLOC_TOP_PAD_", 2**26
"""glibc's setting of how much free memory at the end of a thread's heap is kept, and the size of such a heap: all."""
KEEPS_MEMORY = f"{VARIABLE}={KEPT_BYTES}"


@dataclass(frozen=True)
class Paging:
    """Of a cell's measured windows, medians over its trials."""

    system_share: float
    """Of the processor time, in the kernel."""
    page_faults_per_step: float
    page_faults_per_cpu_s: float
    kept: bool = False
    """Whether the run had VARIABLE in its environment, so that something else asks for pages."""

    @property
    def is_much(self) -> bool:
        """Whether keeping the memory may make the step faster."""
        return not self.kept and self.system_share >= MUCH and self.page_faults_per_cpu_s >= MANY

    @property
    def share_words(self) -> str:
        """`39 %`."""
        return f"{100 * self.system_share:.0f} %"

    @property
    def words(self) -> str:
        """`39 % of its processor time in the kernel, with 14,500 page faults a step`."""
        faults = float(f"{self.page_faults_per_step:.3g}")
        return f"{self.share_words} of its processor time in the kernel, with {faults:,.0f} page faults a step"


def tried_by(cell: Cell) -> str:
    """The command that measures what VARIABLE gives to a cell."""
    return "explain --try" if cell.TAKEN_APART else f"ab … --b env.{KEEPS_MEMORY}"


def paging_of(trials: Iterable[TrialRecord], facts: Mapping[str, Fact]) -> Paging | None:
    """None where no trial counted any, as in earlier records; `facts` are the machine's."""
    told = []
    for windows in (trial.windows for trial in trials if trial.windows is not None):
        share, faults, cpu_s = windows.system_share, windows.page_faults_per_step, windows.cpu_s_per_step
        if share is not None and faults is not None and cpu_s:
            told.append((share, faults, faults / cpu_s))
    if not told:
        return None
    share, a_step, a_second = map(statistics.median, zip(*told, strict=True))
    return Paging(share, a_step, a_second, f"env.{VARIABLE}" in facts)
