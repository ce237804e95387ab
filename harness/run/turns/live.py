"""One live trial as the parent sees it: phases, turns, how it ended, and its record."""

import contextlib
import datetime
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NoReturn

from harness.files import END_OF_LOG
from harness.protocol.messages import PROOF_PHASES, Outcome, Report, Request, Turn
from harness.record.trial import MEASURED, PhaseName, Phases, Status, TrialRecord, Windows
from harness.registry import is_script
from harness.run.interrupts import Interrupts
from harness.run.process.processors import processor_seconds
from harness.run.process.spawning import spawn
from harness.run.process.stacks import at_data, last_words, settled
from harness.run.process.zygote import SLICE_S, Zygote
from harness.run.progress import say_line
from harness.run.turns.figures import Taken, figures_of, gpus_of, phases_of, windows_of
from harness.spec.work import Cell

PROVE_EVERY_S = 60.0
"""At most so often an update is proved between two windows of a trial."""
PROVE_SHARE = 0.05
"""At most about this share of a trial's time goes into such proofs."""
FROM_PTX = "CUDA kernels will be jit-compiled from PTX"
"""What TensorFlow logs on a card that it has no kernels for: the driver makes them at their first use, and keeps them
for later processes."""
KERNELS_S = 1800.0
"""How much longer a trial may then take: TensorFlow says 30 minutes or longer."""
BUSY_SHARE = 0.5
"""Of its time, from which on one that is ended is said to have computed."""
ALONE_BLOCKS = 3
"""Blocks in whose trials workers also time what each computes alone. Which host is slow does not change from block to
block, and tracing the pass would be a good part of every trial's fixed cost."""


@dataclass(frozen=True)
class Slot:
    """Where a trial stands in the run."""

    run_id: str
    block: int
    group: str
    order: int
    attempt: int
    interleaving: Literal["turns", "blocks", "none"]


class Ended(Exception):
    """The trial is over; `LiveTrial.status` says how."""


@dataclass
class LiveTrial:
    """A trial from its spawn to its record. Methods raise Ended when the trial is over early."""

    cell: Cell
    slot: Slot
    zygote: Zygote
    request: Request
    timeout_s: float
    interrupts: Interrupts
    side: str | None = None
    """Which side of a comparison it is."""
    status: Status | None = None
    reason: str | None = None
    evidence: str | None = None
    phase: PhaseName = "start"
    outcome: Outcome | None = None
    taken: Taken = field(default_factory=Taken)
    steps: int | None = None
    """Steps of a window: what the trial's pilot chose, unless the group agreed on another number."""
    pilot: Report | None = None
    """What its pilot found, once it waits for its first window."""
    company: int = 1
    """Trials that are set up, or seen out, beside each other, with itself: a phase may take as many times longer."""
    beside_others: bool = False
    """Whether another trial of its group was alive at some time of its life."""
    watch: Callable[[Cell, str], None] | None = None
    """Told of every phase that the trial enters."""

    def start(self) -> None:
        """Fork the process; the clock of its phases starts."""
        self._seconds: dict[str, float] = {}
        self._kernels_until: float | None = None
        self._started_utc = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        self._since = time.perf_counter()
        self._taking_turns = False
        self.zygote.check = self.interrupts.check
        of_block = {"times_alone": self._times_alone, "proof_phase": self.slot.block % PROOF_PHASES}
        self.child = spawn(self.request.model_copy(update=of_block), self.zygote)
        self.deadline = self._limit()
        """When its phase counts as hung. Waiting for hosts, which has a limit of its own, is before it."""

    def set_up(self) -> None:
        """Follow the trial through build, gate and pilot until it waits for its first window."""
        while not self.set_up_step():
            pass
        self.take_pilot()

    def set_up_step(self, wait: bool = True) -> bool:
        """Take in one report of a trial being set up; True once it waits for its pilot. Without `wait` there may be
        none: what has arrived of one of its processes, or half a line, is no report yet."""
        report = self._receive() if wait else self._received(0.0)
        if report is None or not report.set_up:
            return False
        self._close_phase()
        self._taking_turns = True
        return True

    def take_pilot(self) -> None:
        """Let the trial find out how many steps a window has, while nobody else computes."""
        self._close_phase()
        self._taking_turns, self.company = False, 1
        self._tell(Turn(do="pilot"))
        self.deadline = self._limit()
        while not (report := self._receive()).ready:
            pass
        self._close_phase()
        self._taking_turns = True
        self.taken.sync_seconds = report.sync_seconds or 0.0
        self.pilot, self.steps = report, report.steps
        self._unproved_s, self._prove_after_s = 0.0, PROVE_EVERY_S

    def take_turn(self, round_number: int) -> None:
        """One window; now and then an update is proved before it."""
        prove = self._unproved_s >= self._prove_after_s
        self._tell(Turn(do="window", round=round_number, steps=self.steps, prove=prove))
        self.deadline = time.monotonic() + self.timeout_s * (1 + prove)
        while (report := self._receive()).alive:
            pass
        if report.window is not None:
            self.taken.windows.append(report.window)
            if prove:
                self._unproved_s = 0.0
                self._prove_after_s = max(PROVE_EVERY_S, report.window.check_seconds / PROVE_SHARE)
            self._unproved_s += report.window.seconds

    def measure_from(self, first_round: int) -> None:
        """From this round on its windows are measured."""
        self.taken.measured_from = first_round
        self.phase = "steady"

    def finish(self) -> None:
        """Let the trial prove what can only be shown afterwards, and see it out."""
        self.begin_to_finish()
        self.finish_task()

    def begin_to_finish(self) -> None:
        """Ask for what can only be proved afterwards."""
        self._since = time.perf_counter()
        self._taking_turns = False
        self._tell(Turn(do="finish"))
        self.deadline = self._limit()

    def finish_step(self, wait: bool = True) -> bool:
        """Take in one report of a trial that finishes, if there is one or where it is to `wait`; Ended is raised by the
        last."""
        self._received(SLICE_S if wait else 0.0)
        return False

    @property
    def timed_at_its_end(self) -> bool:
        """Whether something is still timed once it is told to finish: a profile, or what each worker computes alone."""
        several = self.cell.training_asked is not None and self.cell.shape.workers > 1
        return self.request.trace is not None or (several and self._times_alone)

    @property
    def _times_alone(self) -> bool:
        """Whether workers also time what each computes alone; an instrument ends with its last window."""
        return self.slot.block < ALONE_BLOCKS and not self.request.instrument

    def finish_task(self) -> None:
        """See it out, which is all of a task that takes no turns, such as preparing data."""
        self.deadline = self._limit()
        with contextlib.suppress(Ended):
            while True:
                self._receive()

    def failed_before_start(self, cell: Cell, order: int, reason: str) -> TrialRecord:
        """A record for a trial of `cell` that this failed task left without its data, as `reason` says."""
        return TrialRecord(
            run_id=self.slot.run_id,
            cell_id=cell.cell_id,
            cell=cell,
            block=0,
            group=self.slot.group,
            order=order,
            interleaving="none",
            status="unsupported",
            phase="start",
            reason=reason,
            started_utc=self._started_utc,
            evidence=self.evidence,
        )

    def interrupt(self) -> None:
        """End the trial because the person asked; what it measured is kept. Ended is raised."""
        if self.status is None:
            with contextlib.suppress(EOFError):
                while line := self.child.channel.receive_line(0.0):  # it may be through already
                    if (window := self._take_in(line).window) is not None:
                        self.taken.windows.append(window)
            self._close_phase()
            self.child.kill()
            self._end("interrupted", "interrupted before it was complete")

    def _tell(self, turn: Turn) -> None:
        """Of one that is gone, what it said last, or which of its processes went, is still to be read."""
        with contextlib.suppress(OSError):
            self.child.channel.send(turn)

    def _limit(self) -> float:
        """When a phase that begins now counts as hung."""
        self._limited_at, self._used = time.monotonic(), processor_seconds(self.child.pids)
        return self._limited_at + self.timeout_s * self.company

    def _receive(self) -> Report:
        while (report := self._received(SLICE_S)) is None:
            pass
        return report

    def _received(self, wait_s: float) -> Report | None:
        """What it reports next, if it does within so long; Ended is raised of one that is gone or overdue."""
        self.interrupts.check()  # each time: a trial with short windows never keeps the parent waiting
        try:
            line = self.child.channel.receive_line(max(0.0, min(wait_s, self.deadline - time.monotonic())))
        except EOFError:
            self._died()
        if line is None:
            if time.monotonic() >= self.deadline and not self._makes_kernels():
                self._hung()
            return None
        report = self._take_in(line)
        if report.alive:
            self.deadline = max(self.deadline, self._limit())
        return report

    def _makes_kernels(self) -> bool:
        """Whether it may hang for the driver's making its card's kernels, for which it gets more time, in all phases
        until its first window."""
        now = time.monotonic()
        if self._kernels_until is None:
            if self.taken.windows or FROM_PTX not in self.child.stderr_tail(END_OF_LOG):
                return False
            self._kernels_until = now + KERNELS_S
            words = f"kernels are compiled for this card, once, which TensorFlow says takes {KERNELS_S / 60:g} minutes"
            say_line(f"harness: {words} or longer", sys.stderr)
        self.deadline = self._kernels_until
        return now < self.deadline and not self.taken.windows

    def _take_in(self, line: str) -> Report:
        report = Report.model_validate_json(line)
        if report.phase is not None:
            self._close_phase()
            self.phase = report.phase
            self.deadline = self._limit()
            if self.watch is not None:
                self.watch(self.cell, report.phase)
        if report.note is not None:
            say_line(f"harness: {report.note}", sys.stderr)
        if report.outcome is not None:
            self._see_out(report.outcome)
        return report

    def _close_phase(self) -> None:
        """Add what the phase took; between turns the windows tell, and the rest is waiting."""
        now = time.perf_counter()
        if not self._taking_turns:
            self._seconds[self.phase] = self._seconds.get(self.phase, 0.0) + now - self._since
        self._since = now

    def _see_out(self, outcome: Outcome) -> NoReturn:
        self._close_phase()
        failed_in, self.phase = self.phase, "exit"
        too_early, self._taking_turns = self._taking_turns or self.taken.measured_from is None, False
        self.outcome = outcome
        if self.child.wait() is None:
            self.child.kill()
        self._close_phase()
        self.phase = failed_in
        self.evidence = outcome.evidence
        if outcome.well and self.request.task == "trial":
            if too_early:
                self._end("crashed", f"it ended by itself during {self.phase}, before all its windows were measured")
            together = None if outcome.updates is None else outcome.updates.unproved(self.cell.shape.workers)
            left = "; ".join(filter(None, (outcome.checks.unproved, together)))
            if outcome.status == "ok" and left:
                self._end("unproved", left)
        self._end(outcome.status, outcome.reason)

    def _died(self) -> NoReturn:
        self._close_phase()
        status = self.child.wait()
        who = self.child.who
        self.evidence = self.child.stderr_tail() or None
        if status is None and self.child.lost:
            self._end("crashed", f"{self.child.gone} during {self.phase}")
        if status is None:
            self.child.kill()
            self._end("crashed", f"closed its channel without a record during {self.phase}, and did not end")
        if self.child.out_of_memory:
            self._end("out_of_memory", f"{who}ended by the kernel for want of memory during {self.phase}")
        if status < 0:
            self._end("crashed", f"{who}ended by {_signal_name(-status)} during {self.phase}")
        said = "" if who else last_words(self.evidence or "")  # of several processes each has words of its own
        self._end("crashed", f"{who}exit status {status} without a record during {self.phase}{said}")

    def _hung(self) -> NoReturn:
        self._close_phase()
        missing = self.child.awaited()
        computed = "" if missing else self._computed()
        self.child.signal(signal.SIGUSR1)
        self.evidence = settled(self.child.stderr_tail) or None
        data = at_data(self.child.stderr_tail(END_OF_LOG), self.cell.data_set) if self.cell.data_set else ""
        self.child.kill()
        reason = f"no sign of life within {self.timeout_s:g} s during {self.phase}"
        if self.company > 1:
            reason += f", nor within {self.timeout_s * self.company:g} s, as {self.company} may share the cores"
        if self._kernels_until is not None:
            reason += f", nor in {KERNELS_S:g} s more, in which kernels were compiled for its card"
        self._end("timeout", ": ".join(filter(None, (reason, missing, data or self._unmarked() or computed))))

    def _computed(self) -> str:
        """What to do where it may be slow, and not hang: one of its processes used a processor for half of the time."""
        now = processor_seconds(self.child.pids)
        used = max((seconds - self._used.get(pid, 0.0) for pid, seconds in now.items()), default=0.0)
        if self._taking_turns or used < BUSY_SHARE * (time.monotonic() - self._limited_at):
            return ""
        return f"it computed ({used:.0f} s of processor time), for which a longer --timeout may be all that it needs"

    def _unmarked(self) -> str:
        """Why a script of the user's own that goes on and on is never set up; empty where it is no script."""
        waits = self.phase == "build" and is_script(str(self.cell.get("step")))
        return "the script has not called a function that harness.mark_step marks" if waits else ""

    def _end(self, status: Status, reason: str | None) -> NoReturn:
        self.status, self.reason = status, reason
        self.child.release()
        raise Ended(status)

    def record(self) -> TrialRecord:
        """The trial's record; call once it has ended."""
        outcome = self.outcome or Outcome(status="crashed")
        windows = windows_of(self.taken)
        cluster = outcome.cluster or self.child.cluster()
        here = cluster is None and self.child.host is None
        return TrialRecord(
            run_id=self.slot.run_id,
            cell_id=self.cell.cell_id,
            cell=self.cell,
            block=self.slot.block,
            group=self.slot.group,
            order=self.slot.order,
            attempt=self.slot.attempt,
            interleaving=self.slot.interleaving,
            side=self.side,
            plant=self.request.plant,
            status=self.status or "crashed",
            phase=None if self.status in MEASURED else self.phase,
            reason=self.reason,
            may_pass=outcome.may_pass,
            started_utc=self._started_utc,
            phases=Phases(**phases_of(self.taken, self._seconds)),
            windows=windows,
            peak_memory_bytes=outcome.peak_memory_bytes,
            peak_device_memory_bytes=outcome.peak_device_memory_bytes,
            final_loss=outcome.final_loss,
            checks=outcome.checks,
            executed=outcome.executed,
            resources=outcome.resources,
            gpus=gpus_of(self.taken, outcome.resources.gpus),
            host=self.child.host,
            zygote=self.zygote.start_record if here else None,
            cluster=cluster,
            updates=outcome.updates,
            trace=outcome.trace,
            evidence=self.evidence,
            **self._figures(windows),
        )

    def _figures(self, windows: Windows | None) -> dict[str, float]:
        """What its windows come to; nothing of a trial that did not end well."""
        return figures_of(self.cell, windows) if self.status in MEASURED and windows is not None else {}


def _signal_name(number: int) -> str:
    """`SIGSEGV`; real-time signals have numbers only."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
