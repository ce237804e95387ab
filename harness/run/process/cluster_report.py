"""What the processes of one trial report, made one report: the trial as its turns and its record see it."""

import itertools
import math
from dataclasses import dataclass, field
from typing import Literal

from harness.protocol.hosting import Child
from harness.protocol.messages import Membership, Outcome, Report, Turn, Usage, WindowTimes
from harness.record.cluster import ClusterRecord, MemberRecord
from harness.record.trial import PhaseName
from harness.run.launchers.base import Placement, Seat
from harness.run.process.processors import resources_of


@dataclass
class Process:
    """One process of the trial."""

    seat: Seat
    child: Child
    phase: PhaseName = "start"
    set_up: bool = False
    ready: Report | None = None
    window: WindowTimes | None = None
    outcome: Outcome | None = None
    used: Usage | None = None
    """What a server said last; None while it is asked."""
    used_before: Usage = field(default_factory=Usage)
    hung_up: bool = False

    @property
    def member(self) -> Membership:
        """Its place in the cluster."""
        return self.seat.member

    def tell(self, turn: Turn) -> None:
        """Send `turn`; OSError when it is gone."""
        self.child.channel.send(turn)


@dataclass
class Merged:
    """Takes in the reports of every process and gives out those of the trial."""

    processes: list[Process]
    placement: Placement
    launcher: str
    out: list[Report] = field(default_factory=list)
    asked: Literal["pilot", "window", "finish", "usage", "leave"] | None = None
    """What the workers were told last; None before their first turn."""
    _outcome_due: bool = False
    _phase: PhaseName = "start"

    def __post_init__(self) -> None:
        self.servers = [process for process in self.processes if process.member.serves]
        self.workers = [process for process in self.processes if not process.member.serves]
        self._lead = next(worker for worker in self.workers if worker.member.leads)

    def take_in(self, process: Process, report: Report) -> None:
        """One report of one process."""
        if report.phase is not None:
            process.phase = report.phase
            if process.member.leads:
                self._enter(report.phase)
        elif report.alive:
            self.out.append(report)
        elif report.set_up or report.ready:
            process.set_up = True
            process.ready = report if report.ready else None
            self._when_all_are_set_up()
        elif report.window is not None:
            process.window = report.window
            if self._window_is_over():
                self._ask_servers()
                self._when_servers_have_answered()
        elif report.usage is not None:
            process.used = report.usage
            self._when_servers_have_answered()
        elif report.outcome is not None:
            process.outcome = report.outcome
            self._when_all_have_ended()

    @property
    def failed(self) -> bool:
        """Whether some process has said that the trial did not go well."""
        return any(process.outcome is not None and not process.outcome.well for process in self.processes)

    def end_in_phase_of(self, lost: Process) -> None:
        """What the others have reported of the end is not given out: this one is the cause of it. A worker that is lost
        before the first turn ends the trial in its own phase: the lead's may be another."""
        self.out[:] = [report for report in self.out if report.outcome is None]
        if self.asked is None and not lost.member.serves and lost.phase != self._phase:
            self._enter(lost.phase)

    def _enter(self, phase: PhaseName) -> None:
        self._phase = phase
        self.out.append(Report(phase=phase))

    def give_up(self) -> None:
        """Give out the failure that was reported, without waiting for those that cannot go on."""
        self.out.append(Report(outcome=self._failure()))

    def _when_all_are_set_up(self) -> None:
        """Servers are ready as soon as they listen; the workers are when their pilot is over."""
        if all(process.ready for process in self.processes):
            self._ask_servers()
            self._when_servers_have_answered()
        elif all(process.set_up for process in self.processes) and not any(worker.ready for worker in self.workers):
            self.out.append(Report(set_up=True))

    def _window_is_over(self) -> bool:
        """Whether every worker has told its window; else the servers are asked before the first."""
        return all(worker.window for worker in self.workers)

    def _ask_servers(self) -> None:
        for server in self.servers:
            server.used_before, server.used = server.used or server.used_before, None
            server.tell(Turn(do="usage"))

    def _when_servers_have_answered(self) -> None:
        if any(server.used is None for server in self.servers):
            return
        if self._window_is_over():
            self.out.append(Report(window=self._window()))
            for worker in self.workers:
                worker.window = None
        else:
            sync = max((worker.ready.sync_seconds or 0.0) for worker in self.workers if worker.ready)
            ready = self._lead.ready or Report(ready=True)
            self.out.append(ready.model_copy(update={"sync_seconds": sync}))

    def _window(self) -> WindowTimes:
        """Every worker's time of the same steps: the largest is the window's; what all have used adds up."""
        taken = [worker.window for worker in self.workers if worker.window is not None]
        servers = [server.used.since(server.used_before) for server in self.servers if server.used is not None]
        used: list[Usage | WindowTimes] = [*taken, *servers]
        return WindowTimes(
            round=taken[0].round,
            steps=taken[0].steps,
            seconds=max(window.seconds for window in taken),
            cpu_seconds=math.fsum(one.cpu_seconds for one in used),
            waiting_seconds=min(window.waiting_seconds for window in taken),
            waiting_cpu_seconds=math.fsum(window.waiting_cpu_seconds for window in taken),
            check_seconds=max(window.check_seconds for window in taken),
            system_seconds=math.fsum(one.system_seconds for one in used),
            page_faults=sum(one.page_faults for one in used),
            untimed_steps=taken[0].untimed_steps,  # all have agreed on what it follows from
            workers=[window.seconds for window in taken] if len(taken) > 1 else [],
        )

    def _when_all_have_ended(self) -> None:
        if any(worker.outcome is None for worker in self.workers):
            return
        if not self.failed and not self._outcome_due:
            self._outcome_due = True
            for server in self.servers:
                server.tell(Turn(do="leave"))
        if any(server.outcome is None for server in self.servers) and not self.failed:
            return
        self.out.append(Report(outcome=self._failure() if self.failed else self._success()))

    def _success(self) -> Outcome:
        assert self._lead.outcome is not None
        labels = [worker.outcome.executed.labels for worker in self.workers if worker.outcome is not None]
        told = {"labels": list(itertools.chain.from_iterable(labels)) if all(labels) else []}
        outcome = self._lead.outcome.model_copy(
            update={
                "executed": self._lead.outcome.executed.model_copy(update=told),
                "cluster": self.record(),
                "peak_memory_bytes": self._memory(),
                "resources": resources_of(self.processes, self._lead.outcome.resources),
            }
        )
        if (different := self._difference()) is None:
            return outcome
        detail = {**outcome.checks.detail, "replicas_agree": different}
        checks = outcome.checks.model_copy(update={"replicas_agree": False, "detail": detail})
        reason = f"replicas_agree: {different}"
        return outcome.model_copy(update={"status": "wrong_result", "reason": reason, "checks": checks})

    def _difference(self) -> str | None:
        """Which variable two workers hold differently, or None."""
        first = self.workers[0]
        assert first.outcome is not None
        for other in self.workers[1:]:
            assert other.outcome is not None
            for name, digest in first.outcome.digests.items():
                if other.outcome.digests.get(name) != digest:
                    return f"{name} on {other.member.name} differs from that on {first.member.name}"
        return None

    def _failure(self) -> Outcome:
        """The failure that explains the most: a wrong result or a refusal rather than a lost connection."""
        said = [p for p in self.processes if p.outcome is not None and not p.outcome.well]
        telling = [p for p in said if p.outcome is not None and p.outcome.status != "crashed"]
        first = (telling or said)[0]
        assert first.outcome is not None
        reason = first.outcome.reason
        if not (telling and all(p.outcome and p.outcome.reason == reason for p in said)):
            reason = f"{first.member.name}: {reason}"
        if (trouble := self.placement.trouble()) is not None:
            reason = f"{trouble}; {reason}"
        lead = self._lead.outcome or first.outcome
        return first.outcome.model_copy(
            update={
                "reason": reason,
                "checks": lead.checks if first.outcome.checks.failures == () else first.outcome.checks,
                "executed": lead.executed,
                "resources": lead.resources,
                "updates": lead.updates,
                "cluster": self.record(),
                "peak_memory_bytes": self._memory(),
            }
        )

    def _memory(self) -> int | None:
        known = [p.outcome.peak_memory_bytes for p in self.processes if p.outcome and p.outcome.peak_memory_bytes]
        return sum(known) or None

    def record(self) -> ClusterRecord:
        """The processes as they are now."""
        return ClusterRecord(
            launcher=self.launcher,
            isolated=self.placement.isolated,
            network=self.placement.network,
            members=[_member_record(process) for process in self.processes],
        )


def _member_record(process: Process) -> MemberRecord:
    member, outcome = process.member, process.outcome
    ended_well = outcome is not None and outcome.well
    return MemberRecord(
        name=member.name,
        address=member.cluster[member.task][member.index],
        host=process.child.host,
        phase=None if ended_well else process.phase,
        reason=outcome.reason if outcome is not None else None,
        peak_memory_bytes=outcome.peak_memory_bytes if outcome is not None else None,
        compute_s=outcome.compute_s if outcome is not None else [],
    )
