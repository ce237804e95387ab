"""From what happened to a job to its record: how it ended, and whether what it computed is right."""

import datetime
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import HarnessError
from harness.record.faults import UNDISTURBED, FaultRecord, FaultStatus, PlannedFault, UpdateCounts, WeightCheck
from harness.run.kinds.faults.history import History
from harness.spec.cell import TrainingCell
from harness.trial.job_state import compare_states, differences, read_state

if TYPE_CHECKING:
    from harness.trial.job_state import Arrays

LARGEST = 1e9
"""JSON has no infinity."""


class NoReference(HarnessError):
    """No undisturbed job of a cell came to its end, so there is nothing to hold final states against."""


@dataclass
class UndisturbedState:
    """The state that undisturbed jobs of a cell end with, and by how much two of them differ."""

    state: "Arrays"
    noise: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, states: "list[Arrays]") -> "UndisturbedState":
        """The first is the reference; what the others differ by is noise."""
        noise: dict[str, float] = {}
        for other in states[1:]:
            for name, norm in differences(states[0], other).items():
                noise[name] = max(noise.get(name, 0.0), norm)
        return cls(states[0], noise)


@dataclass(frozen=True)
class Case:
    """One job of the plan, for its record."""

    run_id: str
    job: PlannedFault
    cell: TrainingCell
    steps: int
    targets: tuple[str, ...] = ()


def fault_record(case: Case, history: History, state: Path, reference: "Callable[[], UndisturbedState]") -> FaultRecord:
    """The record of a job. `reference` is only asked for where updates have an order to compare."""
    weights = _weights(case, history, state, reference) if history.end == "done" else None
    status, reason = _status(case, history, weights)
    useful = history.useful_s
    times = history.step_times_s
    return _record(
        case,
        status,
        reason,
        target=_target(case.targets),
        fault_step=history.fault_step,
        detections=history.detections,
        useful_step_after_s=None if useful is None else history.after_fault(useful),
        standstill_s=history.standstill_s,
        interruption=history.interruption,
        resumed_from=history.resumed_from,
        steps_lost=history.steps_lost,
        restarted=history.restarted,
        all_back_after_s=None if history.back_s is None else history.after_fault(history.back_s),
        updates=history.updates,
        weights=weights,
        step_time_s=statistics.median(times) if times else None,
        checkpoint_s=history.checkpoint_s,
        cost=history.cost,
        job_s=history.ended_s - history.began_s,
        evidence=history.evidence if history.end != "done" else None,
    )


def failed(case: Case, reason: str) -> FaultRecord:
    """The record of a job that came to nothing: its network broke, or there is nothing to hold its state against."""
    return _record(case, "failed", reason)


def unsupported(case: Case, reason: str) -> FaultRecord:
    """The record of a job that makes no sense, or cannot be done here."""
    return _record(case, "unsupported", reason)


def _record(case: Case, status: FaultStatus, reason: str | None, **more: Any) -> FaultRecord:
    job = case.job
    return FaultRecord(
        run_id=case.run_id,
        scenario=job.scenario,
        cell_id=job.cell_id,
        cell=case.cell,
        fault=job.fault,
        checkpoint_every=job.checkpoint_every,
        repeat=job.repeat,
        steps=case.steps,
        status=status,
        reason=reason,
        started_utc=datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
        **more,
    )


def _target(targets: tuple[str, ...]) -> str | None:
    if not targets:
        return None
    return targets[0] if len(targets) == 1 else "every process"


def _status(case: Case, history: History, weights: WeightCheck | None) -> tuple[FaultStatus, str | None]:
    if history.end != "done":
        ends: dict[str, FaultStatus] = {"hung": "hung", "unsupported": "unsupported"}
        return ends.get(history.end, "failed"), history.reason
    if weights is not None and not weights.right:
        return "wrong_weights", weights.detail
    if case.job.fault == UNDISTURBED:
        return "undisturbed", None
    if history.resumed_from == 0 and history.steps_lost:
        return "lost_state", f"all {history.steps_lost} steps were done again: there was nothing to go on from"
    return "recovered", None


def _weights(
    case: Case, history: History, state: Path, reference: "Callable[[], UndisturbedState]"
) -> WeightCheck | None:
    if history.updates is None:
        return None
    if case.cell.asynchronous:
        return _every_update_once(history.updates)
    expected = reference()
    found = compare_states(read_state(state), expected.state, expected.noise, case.cell.precision)
    share = found.share if math.isfinite(found.share) else LARGEST
    right = share <= 1 and history.updates.applied == history.updates.scheduled
    return WeightCheck(
        criterion="undisturbed_run",
        right=right,
        share=share,
        identical=found.identical,
        detail=None if right else f"against an undisturbed job: {found.worst}",
    )


def _every_update_once(updates: UpdateCounts) -> WeightCheck:
    """Asynchronous updates have no order to compare weights by; that each came once can be shown."""
    wrong = [
        f"{count} {words}"
        for count, words in (
            (updates.repeated, "applied twice"),
            (updates.lost, "lost"),
            (updates.torn, "begun more often than finished"),
        )
        if count
    ]
    right = not wrong and updates.applied == updates.scheduled
    if not right and not wrong:
        wrong = [f"{updates.applied} on the step counter"]
    detail = None if right else f"of {updates.scheduled} updates: {', '.join(wrong)}"
    return WeightCheck(criterion="every_update_once", right=right, detail=detail)
