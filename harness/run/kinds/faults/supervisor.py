"""The supervisor of a job: hears that something is wrong, and starts again what has to be.

It does what Kubernetes' Job controller, Slurm's requeue or a cluster manager would do, with one difference that the
report names: processes are forked from one that has the framework imported, so a restart costs no import.
"""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, assert_never

from harness.protocol.messages import JobReport
from harness.record.faults import DetectedBy, Detection
from harness.run.interrupts import Interrupts
from harness.run.kinds.faults.crew import Crew, Event, Hand
from harness.run.kinds.faults.history import History
from harness.run.process.stacks import settled

SLICE_S = 0.1
START_LIMIT_S = 60.0
"""A process that neither trains nor serves by then did not start."""
SETTLE_S = 0.5
"""How long the other processes may still say what they noticed before all are ended and started again."""
WORKER_SETTLE_S = 0.1
"""The same where only workers are missing that the coordinator goes on without: the rest may be about to end, too."""
PREEMPTED_S = 10.0
"""How long the rest of a preempted job may take to save and leave."""
ASK_S = 1.0
SILENT_S = 2.0
"""A server that has not answered for so long is what a stalled job is put down to."""
MOST_RESTARTS = 3


@dataclass(frozen=True)
class Strike:
    """What is done to the job once `step` steps are done; `heal` takes it back after `outage_s`."""

    step: int
    hits: Callable[[Crew], None]
    heals: Callable[[Crew], None] | None = None
    outage_s: float = 0.0
    targets: tuple[str, ...] = ()
    """Names of the processes that it is done to."""


@dataclass(frozen=True)
class Rules:
    """Limits in seconds, and how the engine's word is recorded."""

    stall_s: float
    limit_s: float
    engine: DetectedBy = "tensorflow"
    """Whose word it is when the engine says that something is wrong."""


@dataclass
class Supervisor:
    """Runs one job to its end. `run` raises Interrupted when the person asked to stop; nothing is left then either."""

    crew: Crew
    rules: Rules
    strike: Strike | None
    interrupts: Interrupts
    clock: Callable[[], float] = time.monotonic
    history: History = field(default_factory=History)
    _heal_at_s: float | None = None
    _alive_at_s: float = 0.0
    """When the job last showed that it goes on."""
    _trouble: dict[str, Hand] = field(default_factory=dict)
    """Processes that something is wrong with, by name; several are named when nobody knows which it is."""
    _trouble_since_s: float | None = None
    _pending: set[str] = field(default_factory=set)
    """Processes that were started again and are not ready yet."""
    _restarts: int = 0
    _ended: bool = False

    def run(self) -> History:
        """Start the job and stay with it until it has ended and nothing of it is left."""
        self.history.began_s = self._alive_at_s = self.clock()
        try:
            for hand in self.crew.hands:
                self.crew.start(hand)
            while not self._over():
                self.interrupts.check()
                for event in self.crew.hear(SLICE_S):
                    self._take_in(event)
                self._strike_when_due()
                self._look()
                if self._trouble and self._settled():
                    self._mend()
        finally:
            # A killed process needs no thawing, and a network that was cut is not used again: nothing to heal.
            left = self.crew.end(self.crew.hands)
            self.history.ended_s = self.clock()
        if left:
            self._end("failed", f"did not end: {', '.join(left)}")
        return self.history

    def _over(self) -> bool:
        if self._ended:
            return True
        trainers = [hand for hand in self.crew.hands if not hand.serves]
        if all(hand.outcome is not None and hand.outcome.status == "ok" for hand in trainers):
            self.crew.leave()
            missed = self.strike is not None and not self.history.was_struck
            self._end("failed" if missed else "done", "done before the fault came; more steps help" if missed else None)
        elif self.clock() - self.history.began_s > self.rules.limit_s:
            for hand in self.crew.hands:
                self.crew.signal(hand, signal.SIGUSR1)
            self.history.evidence = settled(self.crew.words)
            where = self.history.steps[-1][1] if self.history.steps else 0
            self._end("hung", f"not done within {self.rules.limit_s:g} s; the last step was {where}")
        return self._ended

    def _end(self, end: Literal["done", "hung", "failed", "unsupported"], reason: str | None) -> None:
        self._ended = True
        self.history.end, self.history.reason = end, reason

    # what processes say

    def _take_in(self, event: Event) -> None:
        hand, report = event.hand, event.report
        if report is None:
            self._gone(event)
        elif report.job is not None:
            self._heard(hand, report.job)
        elif report.ready:
            self._ready(hand, event.at_s)
        elif report.usage is not None:
            hand.asked_at_s, hand.heard_at_s = None, event.at_s
        elif report.outcome is not None:
            hand.outcome = report.outcome
            if report.outcome.status == "unsupported":
                self._end("unsupported", report.outcome.reason)
            elif report.outcome.status != "ok":
                self._detected(self.rules.engine, hand, event.at_s, report.outcome.reason)
                self.history.evidence = report.outcome.evidence

    def _gone(self, event: Event) -> None:
        """A process has ended. What it said before is the better reason."""
        hand = event.hand
        if hand.outcome is not None or self._ended:
            return
        if hand.preempted:
            self._in_trouble(hand)
            return
        status = self.crew.status(hand)
        hit = self.strike is not None and hand.name in self.strike.targets
        # the runtime ends a process that lost its peers, too: then it is the engine that noticed
        by: DetectedBy = "process_end" if hit or self.history.fault_s is None else self.rules.engine
        said = "ended" if status is None else _ended_by(-status) if status < 0 else f"exit status {status}"
        self._detected(by, hand, event.at_s, said)

    def _heard(self, hand: Hand, report: JobReport) -> None:
        self._alive_at_s = max(self._alive_at_s, report.at_s)
        match report.what:
            case "training":
                self._ready(hand, report.at_s)
                if hand.leads:
                    self.history.trainings.append((report.at_s, report.step))
            case "step":
                if hand.leads:
                    self.history.steps.append((report.at_s, report.step))
            case "saved":
                if hand.leads:
                    self.history.checkpoint_s.append(report.seconds)
            case "preempted":
                hand.preempted = True
                self._detected("preemption_handler", hand, report.at_s, f"saved at step {report.step}")
            case "done":
                if hand.leads:
                    self.history.updates, self.history.cost = report.updates, report.cost
            case "measuring":
                pass  # that it lives is all that is asked
            case _:
                assert_never(report.what)

    def _ready(self, hand: Hand, at_s: float) -> None:
        hand.ready_at_s = at_s
        if hand.name in self._pending:
            self._pending.discard(hand.name)
            if not self._pending:
                self.history.back_s = at_s

    def _detected(self, by: DetectedBy, hand: Hand, at_s: float, said: str | None = None) -> None:
        if self.history.fault_s is not None:
            after = self.history.after_fault(at_s)
            self.history.detections.append(Detection(by=by, who=hand.name, after_s=after, said=said))
        elif self.strike is None or self._restarts == 0:
            self._end("failed", f"{hand.name}, before any fault: {said}")
        self._in_trouble(hand)

    def _in_trouble(self, hand: Hand) -> None:
        self._trouble[hand.name] = hand
        if self._trouble_since_s is None:
            self._trouble_since_s = self.clock()

    # what the supervisor does

    def _strike_when_due(self) -> None:
        now = self.clock()
        if self._heal_at_s is not None and now >= self._heal_at_s:
            self._heal()
        if self.strike is None or self.history.fault_s is not None or not self.history.steps:
            return
        if self.history.steps[-1][1] >= self.strike.step:
            self.history.fault_s = self.clock()
            self.strike.hits(self.crew)
            if self.strike.heals is not None:
                self._heal_at_s = self.history.fault_s + self.strike.outage_s

    def _heal(self) -> None:
        if self._heal_at_s is not None and self.strike is not None and self.strike.heals is not None:
            self._heal_at_s = None
            self.strike.heals(self.crew)

    def _look(self) -> None:
        """Notice what is silent: a server that does not answer, a job without steps, a process that does not start."""
        if self._trouble or self._ended:
            return
        now = self.clock()
        servers = [hand for hand in self.crew.hands if hand.serves and hand.ready_at_s is not None and not hand.gone]
        for hand in servers:
            if hand.asked_at_s is None and now - max(hand.ready_at_s or 0.0, hand.heard_at_s) >= ASK_S:
                self.crew.ask(hand)
        stall_s = self.rules.stall_s
        limit_s = stall_s if all(hand.ready_at_s for hand in self.crew.hands) else START_LIMIT_S
        stalled = now - self._alive_at_s >= limit_s
        silent = [(now - hand.asked_at_s, hand) for hand in servers if hand.asked_at_s is not None]
        for since_s, hand in silent:
            if since_s >= (SILENT_S if stalled else stall_s):
                self._detected("heartbeat", hand, now, f"no answer for {since_s:.0f} s")
        lead = next(hand for hand in self.crew.hands if hand.leads)
        if stalled and not self._trouble and lead.outcome is None:
            self._detected("stalled_steps", lead, now, f"no step for {limit_s:g} s")

    def _settled(self) -> bool:
        """Whether everybody has said what they noticed, or had the time to."""
        assert self._trouble_since_s is not None
        trainers = [hand for hand in self.crew.hands if not hand.serves]
        if all(hand.gone or hand.outcome for hand in trainers):
            return True
        patience = PREEMPTED_S if any(hand.preempted for hand in trainers) else SETTLE_S
        if self._only_workers_that_serve():
            patience = WORKER_SETTLE_S
        return self.clock() - self._trouble_since_s >= patience

    def _only_workers_that_serve(self) -> bool:
        """Whether the coordinator goes on without those that are in trouble: workers, not parameter servers."""
        return all(hand.serves and hand.member and hand.member.task == "worker" for hand in self._trouble.values())

    def _mend(self) -> None:
        """End what is broken, and start it again: the workers of a coordinator by themselves, else everything."""
        if self._restarts >= MOST_RESTARTS:
            last = self.history.detections[-1]
            self._end("failed", f"still failing after {MOST_RESTARTS} restarts: {last.who}: {last.said}")
            return
        self._restarts += 1
        broken = list(self._trouble.values()) if self._only_workers_that_serve() else self.crew.hands
        if left := self.crew.end(broken):
            self._end("failed", f"did not end: {', '.join(left)}")
            return
        self._heal()  # whoever starts it again picks a host that works
        for hand in broken:
            self.crew.start(hand)
            self._pending.add(hand.name)
            self.history.restarted.append(hand.name)
        self._trouble, self._trouble_since_s = {}, None
        self._alive_at_s = self.clock()


def _ended_by(number: int) -> str:
    try:
        return f"ended by {signal.Signals(number).name}"
    except ValueError:
        return f"ended by signal {number}"
