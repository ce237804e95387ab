"""Figures so far, while a sweep runs: the highest throughput, the next, and what distributing comes to.

Figures only. A verdict after every block would be wrong more often than it says, and an unfinished sweep has none
(`docs/protocol.md#how-many-blocks`).
"""

from collections.abc import Sequence

from harness.analysis import Interval, RunSummary, WorkloadSummary, summarise
from harness.analysis.collectives import of_collectives
from harness.errors import HarnessError
from harness.record.manifest import RunManifest
from harness.record.trial import TrialRecord
from harness.report.words.caveats import is_virtual
from harness.report.words.headline import without_strategy
from harness.report.words.text import IN_THESE_MINUTES, is_useless, plus_minus, significant
from harness.visible import printable


def summary_so_far(manifest: RunManifest | None, trials: Sequence[TrialRecord]) -> RunSummary | None:
    """What the records of a sweep under way come to; None where nothing may be said of them yet, or can be."""
    if manifest is None or not trials or manifest.what.kind.uncompared is not None:
        return None  # a decision is looked at when its plan says, and no sooner
    try:
        return summarise(manifest, trials)
    except HarnessError:
        return None  # the report will say which record cannot be compared


def so_far(summary: RunSummary) -> tuple[str, ...]:
    """A line for each workload of which anything was measured, but for collectives: of those there may be a hundred."""
    several = len(summary.workloads) > 1
    lines = []
    for work in summary.workloads:
        if work.ranking and not of_collectives(work):
            name = f"{work.workload.label}: " if several else ""
            lines.append(printable(name + "; ".join([_highest(work), *_speed_up(work)])))
    return tuple(lines)


def _highest(work: WorkloadSummary) -> str:
    first, *others = work.ranking
    assert first.measured is not None
    found = first.measured.throughput
    size = f"{significant(found.value)} {work.workload.quantity.unit}{_give_or_take(found, IN_THESE_MINUTES)}"
    words = f"{first.label} {size}"
    next_one = others[0].place.against_best if others and others[0].place is not None else None
    if next_one is None:
        return words
    return f"{words}, the highest so far, then {others[0].label} with {significant(100 * next_one.value)} % of that"


def _speed_up(work: WorkloadSummary) -> list[str]:
    """The highest distributed throughput over that of no strategy; nothing where one of them is not known yet."""
    answer = work.answer
    if answer.speed_up is None:
        return []
    base = next(cell.trials for cell in work.cells if cell.cell_id == answer.base_id)
    on_one = ", of one device" if is_virtual(work) and not base.all_cores else ""
    size = f"{significant(answer.speed_up.value)}× {without_strategy(work)}"
    return [f"distributed {size}{_give_or_take(answer.speed_up)}{on_one}"]


def _give_or_take(interval: Interval, when: str = "") -> str:
    if not interval.known or is_useless(interval):
        return ""
    return f" {plus_minus(interval)} {when}".rstrip()
