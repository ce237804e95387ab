"""The verdict so far, while a sweep runs: what leads, what cannot be told apart from it, and whether distributing pays.

It is looked at only: a sweep's plan is sealed, so nothing that is said here can end it or make it longer.
"""

from collections.abc import Sequence

from harness.analysis import Interval, RunSummary, WorkloadSummary, summarise
from harness.errors import HarnessError
from harness.record.manifest import RunManifest
from harness.record.trial import TrialRecord
from harness.report.words.text import plural, significant
from harness.spec.cell import TrainingCell
from harness.visible import printable


def summary_so_far(manifest: RunManifest | None, trials: Sequence[TrialRecord]) -> RunSummary | None:
    """What the records of a sweep under way come to; None where nothing may be said of them yet, or can be."""
    if manifest is None or not trials or manifest.kind != "sweep":
        return None  # a decision is looked at when its plan says, and no sooner
    try:
        return summarise(manifest, trials)
    except HarnessError:
        return None  # the report will say which record cannot be compared


def so_far(summary: RunSummary) -> tuple[str, ...]:
    """A line for each workload of which anything was measured."""
    several = len(summary.workloads) > 1
    lines = []
    for work in summary.workloads:
        if work.ranking:
            name = f"{work.workload.label}: " if several else ""
            training = any(isinstance(cell.trials.cell, TrainingCell) for cell in work.cells)
            lines.append(printable(f"{name}{_leader(work)}" + (f"; {_pays(work)}" if training else "")))
    return tuple(lines)


def _leader(work: WorkloadSummary) -> str:
    best = work.ranking[0]
    assert best.measured is not None
    throughput = best.measured.throughput
    lead = f"{best.label} leads with {significant(throughput.value)} {work.workload.quantity.unit}"
    if len(work.ranking) == 1:
        return lead
    following = work.ranking[1]
    if best.measured.trials < 2:
        return f"{lead}, next {following.label}, and one trial each cannot tell them apart"
    tied = len(work.answer.tied_ids)
    if not tied:
        return f"{lead}, beyond doubt"
    if following.place is not None and following.place.with_best:
        more = f" (nor {plural(tied - 1, 'other')})" if tied > 1 else ""
        return f"{lead}, not to be told apart from {following.label}{more}"
    return f"{lead}; {plural(tied, 'cell')} cannot be told apart from it"


def _pays(work: WorkloadSummary) -> str:
    answer = work.answer
    if answer.speed_up is None:
        return "no distributed cell to compare with no strategy yet"
    size = f"{significant(answer.speed_up.value)}× no strategy{_give_or_take(answer.speed_up)}"
    match answer.verdict:
        case "pays":
            return f"distributing pays: {size}"
        case "beats_one_device":
            return f"{size}, of one device"
        case "do_not_distribute":
            return f"distributing does not pay: {size}"
        case _:
            return f"undecided whether distributing pays: {size}"


def _give_or_take(interval: Interval) -> str:
    half = interval.relative_half_width
    return "" if half is None or half > 1 else f" ± {significant(100 * half, 2)} %"
