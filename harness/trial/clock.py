"""The clock of a trial: first the gate's single steps, then, each when it is its turn, a pilot and the windows.

A window is K steps between two synchronisations (`docs/protocol.md#timing`). Host time around one step
would measure enqueueing, so a window ends by bringing a value of every replica's last update to the
host.
"""

import contextlib
import math
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import SupportsFloat

from harness.protocol.channel import Channel
from harness.protocol.engine import Tracer
from harness.protocol.messages import Report, Turn, Usage, WindowTimes
from harness.trial.usage import usage

SYNC_MULTIPLE = 50
"""A window lasts at least so many synchronisations."""
MAX_STEPS = 100_000
SYNC_SAMPLES = 5
PILOT_WINDOWS = 3
"""So many windows of at least half the length asked for tell K: shorter ones are those of a cold step."""
WAITING = 0.1
"""Where a step after another trial's turn is shorter by more than this share than one in a row, batches were made in
that turn: steps wait for their input."""
PROBES = 3
"""So many turns tell whether steps wait for their input, where the first says so: one alone may be chance."""
DEAR_S = 2.0
"""Where the steps before a window take longer, one of these turns that says no is enough: beside other work steps of a
second scatter by more than `WAITING`, and such a trial once took ten times as long as its windows. Steps that are
nothing but their input are then as many as batches may wait."""
NANOSECONDS = 9
"""Decimals of a second that the clocks have. More are noise of their floats, and would be a third of a record."""


@dataclass(eq=False)
class Clock:
    """Paces a loop: see `harness.protocol.engine.Pace`."""

    channel: Channel
    synchronise: Callable[[], None]
    """Waits for every replica."""
    window_s: float
    gate_steps: int
    gate: Callable[[int], None]
    """Called with the step's number after each of the first `gate_steps` single steps; it raises to end the trial."""
    agree: Callable[[float], float] = float
    """Makes one number of what each process of a cluster has timed, so that all choose the same steps."""
    least_steps: int = 1
    """Of a window."""
    tracer: Tracer | None = None
    """Profiles a few steps more once the parent has said finish: every window of every live trial is timed by then."""
    prove: Callable[[], None] | None = None
    """Called where a turn says so, before its window; a window of steps that nobody times follows it, since what proves
    uses caches, and workers that wait for one that proves begin together again."""
    ahead: Callable[[], int] = int
    """As many batches as it says at the pilot can be made while it is another trial's turn, and would cost a window
    nothing. So many steps come before the first window, and where they are faster than those of the pilot, before each:
    what is timed is the input's own pace."""
    waits: bool = False
    """Whether steps are nothing but their input, and so wait for it, whatever the pilot sees."""
    resting: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext
    """Entered while it is another trial's turn."""
    before: Callable[[float], int] = lambda _: 0
    """How many steps that nobody times come before every window, given the seconds of one as all processes have agreed
    on them: of steps that are slower after a rest. Such steps have no input, so `ahead` is 0."""
    a_call: int = 1
    """After the gate all steps come in calls of so many, and are issued as a multiple of it."""

    scheduled: int = field(default=0, init=False)
    """Steps issued so far, the gate's included."""
    losses: list[float] = field(default_factory=list, init=False)
    """The loss at the end of every window."""
    _steps: int = field(default=1, init=False)
    _issued: int = field(default=1, init=False)
    _round: int = field(default=0, init=False)
    _tracing: bool = field(default=False, init=False)
    _finished: bool = field(default=False, init=False)
    _ahead: int = field(default=0, init=False)
    _lead: int = field(default=0, init=False)
    _untimed: list[int] = field(default_factory=list, init=False)
    """Steps before the window whose turn it is, which are not in it; one synchronisation after each number."""
    _probing: bool = field(default=False, init=False)
    """Whether the first of them tell if steps wait for their input."""
    _after_others: float = field(default=0.0, init=False)
    """Seconds that each of those took, where this turn has some."""
    _waiting: list[float] = field(default_factory=list, init=False)
    """What they told: the share of a step in a row by which one after another's turn was shorter."""
    _in_turn: bool = field(default=False, init=False)
    """Whether the window whose turn it is is still to come."""
    _proving_s: float = field(default=0.0, init=False)
    _piloting: bool = field(default=False, init=False)
    _announced: bool = field(default=False, init=False)
    _paces: list[float] = field(default_factory=list, init=False)
    _long_enough: int = field(default=0, init=False)
    _wall: float = field(default=0.0, init=False)
    _used: Usage = field(default_factory=Usage, init=False)
    """Before the first step of what is timed."""
    _idle_since: float = field(default=0.0, init=False)
    _idle_cpu_since: float = field(default=0.0, init=False)
    _waited: float = field(default=0.0, init=False)
    _waited_cpu: float = field(default=0.0, init=False)

    @property
    def pace(self) -> float:
        """Seconds that a step took in the pilot, the same in each process of a cluster; infinite before it."""
        return min(self._paces[-PILOT_WINDOWS:], default=math.inf)

    def begin(self) -> int:
        """Steps to run now; blocks until the parent gives the turn; 0 when it says finish."""
        if self._finished:
            return 0
        if self.scheduled >= self.gate_steps and not self._piloting and not self._in_turn:
            if not self._announced:  # here, since a loop may do something else between the gate and the pilot
                self._announced = True
                self.channel.send(Report(set_up=True))
                self._idle_since, self._idle_cpu_since = time.perf_counter(), time.process_time()
            with self.resting():
                line = self.channel.receive_line()
            turn = Turn.model_validate_json(line or "")
            if turn.do == "finish":
                return self._after_the_last_window()
            self._begin(turn)
        self._used, self._wall = usage(), time.perf_counter()
        due = self._untimed[0] if self._untimed else self._steps
        self._issued = due if self.scheduled < self.gate_steps else self._in_calls(due)
        return self._issued

    def _in_calls(self, steps: int) -> int:
        """So many steps, or more, that are whole calls."""
        return math.ceil(steps / self.a_call) * self.a_call

    def end(self, loss: SupportsFloat) -> None:
        """Close the window: synchronise, then read the clock."""
        self.synchronise()
        if self._tracing and self.tracer is not None:
            self._tracing = False
            self.tracer.end()
            self.losses.append(float(loss))
            return
        wall = time.perf_counter() - self._wall
        used = usage().since(self._used)
        self.scheduled += self._issued
        self.losses.append(float(loss))
        if self._untimed:
            del self._untimed[0]
            if self._probing:
                self._probe(self.agree(wall) / self._issued)
            return
        if self.scheduled <= self.gate_steps:
            self.gate(self.scheduled)
        elif self._piloting:
            self._pilot(wall)
        else:
            self._learn(wall)
            self._report(wall, used)
            self._in_turn = False
        self._idle_since, self._idle_cpu_since = time.perf_counter(), time.process_time()

    def _begin(self, turn: Turn) -> None:
        """What comes before the first step of a turn. The wait for the pilot counts with that for the first window."""
        now, cpu = time.perf_counter(), time.process_time()
        self._waited += now - self._idle_since
        self._waited_cpu += cpu - self._idle_cpu_since
        self._piloting, self._in_turn = turn.do == "pilot", turn.do == "window"
        self._round = turn.round
        self._steps = self._in_calls(turn.steps) if turn.steps else self._steps
        self._proving_s = 0.0
        if self._piloting:
            return
        self._untimed = [self._lead] if self._lead else []
        if turn.prove and self.prove is not None:
            self.prove()
            self._proving_s = time.perf_counter() - now
            self._untimed = [max(self._steps, self._lead)]
        elif self._ahead and (not self._waiting or (self._lead and len(self._waiting) < PROBES)):
            self._untimed, self._probing = [self._ahead], True

    def _probe(self, pace: float) -> None:
        """Steps after another's turn took `pace` seconds each. Until a window is beside them they are held against the
        pilot."""
        self._probing, self._after_others = False, pace
        if not self._waiting:
            self._lead = self._needed([1 - pace / statistics.median(self._paces[-PILOT_WINDOWS:])])
        if self._lead > self._ahead:
            self._untimed = [self._lead - self._ahead]

    def _learn(self, wall: float) -> None:
        """Whether steps wait for their input, where the window that took `wall` seconds comes after a probe."""
        if self._after_others:
            self._waiting.append(1 - self._after_others * self._steps / self.agree(wall))
            self._lead, self._after_others = self._needed(self._waiting), 0.0

    def _needed(self, told: Sequence[float]) -> int:
        """Steps after which no batch waits any more: while they use up what is ready, more is made."""
        waiting = statistics.median(told)
        steps = math.ceil(self._ahead / max(waiting, WAITING))
        dear = steps * self.pace > DEAR_S
        if self.waits:  # a slow input makes nothing in short turns, which looks like one that keeps up
            return self._ahead if dear else steps
        return steps if (min(told) if dear else waiting) > WAITING else 0

    def _after_the_last_window(self) -> int:
        self._finished = True
        if self.tracer is None:
            return 0
        self._tracing = True
        steps = self._in_calls(self.tracer.begin(self._steps))
        self.scheduled += steps
        return steps

    def _pilot(self, wall: float) -> None:
        """Double K until a window is long enough to choose K from, then announce readiness.

        K follows the fastest pace seen: the first steps after a gate are cold, and a K chosen from
        them would make every window too short. It follows the fastest synchronisation too: what delays one (another
        trial that is set up meanwhile) would make every window of the run too long (seen: nine times as long).
        """
        wall = self.agree(wall)
        if not self._paces:
            self._ahead = round(self.agree(self.ahead()))  # of hosts with unlike processors it is not the same
        self._paces.append(wall / self._issued)
        if wall < self.window_s / 2 and self._steps < MAX_STEPS:
            self._steps = 2 * self._issued
            return
        self._long_enough += self.scheduled > self.gate_steps + self._to_use_up
        if self._long_enough == PILOT_WINDOWS:
            self._choose()

    @property
    def _to_use_up(self) -> int:
        """Steps of the pilot after which what was ready at first is used up, also by steps that wait for a little more
        than `WAITING` of their time, where all these steps are not dear."""
        return max(2 * self._ahead, min(math.ceil(self._ahead / WAITING), int(DEAR_S / self.pace)))

    def _choose(self) -> None:
        """K, from windows for which no batch waited."""
        syncs = [self._time_of_sync() for _ in range(SYNC_SAMPLES)]
        sync, least, pace = self.agree(statistics.median(syncs)), self.agree(min(syncs)), self.pace
        needed = max(self.window_s, SYNC_MULTIPLE * least, self.least_steps * pace)
        self._steps = self._in_calls(math.ceil(needed / pace))
        self._lead = max(self._lead, self.before(pace))
        self._piloting = False
        self.channel.send(
            Report(ready=True, sync_seconds=sync, steps=self._steps, step_seconds=pace, window_seconds=needed)
        )

    def _time_of_sync(self) -> float:
        start = time.perf_counter()
        self.synchronise()
        return time.perf_counter() - start

    def _report(self, wall: float, used: Usage) -> None:
        self.channel.send(
            Report(
                window=WindowTimes(
                    round=self._round,
                    steps=self._steps,
                    seconds=round(wall, NANOSECONDS),
                    cpu_seconds=round(used.cpu_seconds, NANOSECONDS),
                    system_seconds=round(used.system_seconds, NANOSECONDS),
                    page_faults=used.page_faults,
                    untimed_steps=self._in_calls(self._lead),
                    waiting_seconds=round(self._waited, NANOSECONDS),
                    waiting_cpu_seconds=round(max(0.0, self._waited_cpu), NANOSECONDS),
                    check_seconds=round(self._proving_s, NANOSECONDS),
                )
            )
        )
        self._waited = self._waited_cpu = 0.0
