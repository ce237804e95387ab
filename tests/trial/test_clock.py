"""The clock: single steps for the gate, a pilot that chooses K, then one window a turn."""

import math
import mmap
import socket
import time
from collections.abc import Callable, Sequence

import pytest

from harness.protocol.channel import Channel
from harness.protocol.messages import Report, Turn
from harness.trial import clock
from harness.trial.clock import PILOT_WINDOWS, Clock


class Bench:
    """A clock over a socket pair, and a workload that takes `step_s` a step."""

    def __init__(self, step_s: float = 0.002, window_s: float = 0.02, gate_steps: int = 2, a_call: int = 1) -> None:
        ours, theirs = socket.socketpair()
        self.parent, self.step_s = Channel(ours), step_s
        self.gated: list[int] = []
        self.synchronised = 0
        self.work: Callable[[int], None] = lambda _steps: None
        self.clock = Clock(Channel(theirs), self._synchronise, window_s, gate_steps, self.gated.append, a_call=a_call)

    def _synchronise(self) -> None:
        self.synchronised += 1

    def run(self, *turns: Turn) -> list[int]:
        """Run a loop to its end with all turns said beforehand; returns the steps of each window."""
        for turn in turns:
            self.parent.send(turn)
        windows = []
        while steps := self.clock.begin():
            windows.append(steps)
            time.sleep(self.step_s * steps)
            self.work(steps)
            self.clock.end(1.5)
        return windows

    def reports(self) -> list[Report]:
        found = []
        while line := self.parent.receive_line(0.0):
            found.append(Report.model_validate_json(line))
        return found


def turns(count: int) -> list[Turn]:
    return [Turn(do="pilot"), *(Turn(do="window", round=i) for i in range(count)), Turn(do="finish")]


def test_the_first_steps_are_single_and_go_to_the_gate() -> None:
    bench = Bench(gate_steps=2)
    windows = bench.run(*turns(1))
    assert windows[:2] == [1, 1]
    assert bench.gated == [1, 2]


def test_the_pilot_chooses_windows_of_about_the_length_asked_for() -> None:
    bench = Bench(step_s=0.002, window_s=0.02)
    windows = bench.run(*turns(3))
    assert len(windows) >= 2 + PILOT_WINDOWS + 3
    [pilot] = [report for report in bench.reports() if report.ready]
    assert pilot.step_seconds is not None
    assert pilot.step_seconds >= 0.002  # and no more where the machine is not busy
    assert {pilot.steps, *windows[-3:]} == {math.ceil(0.02 / pilot.step_seconds)}


@pytest.mark.parametrize("asked", [None, 23])
def test_after_the_gate_all_steps_come_in_whole_calls_whatever_was_asked_for(asked: int | None) -> None:
    bench = Bench(step_s=0.001, window_s=0.012, gate_steps=2, a_call=7)
    given = [Turn(do="pilot"), *(Turn(do="window", round=i, steps=asked) for i in range(2)), Turn(do="finish")]
    gate, rest = (windows := bench.run(*given))[:2], windows[2:]
    assert gate == [1, 1]
    assert all(steps % 7 == 0 for steps in rest)
    told = [report.window.steps for report in bench.reports() if report.window]
    assert told == (rest[-2:] if asked is None else [28, 28])
    assert bench.clock.scheduled == sum(windows)


def test_short_windows_of_a_cold_step_do_not_tell_the_pilot_how_long_a_step_takes() -> None:
    # five windows, the first two of them cold, and after the first what may wait; then what a synchronisation takes,
    # middle and least
    agreed = iter([0.004, 0, 0.008, 0.012, 0.011, 0.010, 0.0, 0.0])
    bench = Bench(step_s=0.0, window_s=0.02)
    bench.clock.agree = lambda _: next(agreed)
    windows = bench.run(*turns(1))
    assert windows == [1, 1, 1, 2, 4, 4, 4, 8]


def test_every_turn_gives_one_window_with_its_round_and_steps() -> None:
    bench = Bench()
    windows = bench.run(*turns(3))
    reports = bench.reports()
    assert [bool(report.set_up) for report in reports[:2]] == [True, False]
    assert reports[1].ready
    measured = [report.window for report in reports[2:]]
    assert [window.round for window in measured if window] == [0, 1, 2]
    assert all(window and window.steps == windows[-1] and window.seconds > 0 for window in measured)


def test_every_step_is_counted_and_every_window_ends_with_a_synchronisation() -> None:
    bench = Bench()
    windows = bench.run(*turns(2))
    assert bench.clock.scheduled == sum(windows)
    assert bench.synchronised >= len(windows)
    assert bench.clock.losses == [1.5] * len(windows)


def test_pages_that_a_step_asks_the_kernel_for_are_counted_with_their_window() -> None:
    bench, pages = Bench(step_s=0.001, window_s=0.01), 200

    def touch(steps: int) -> None:
        with mmap.mmap(-1, steps * pages * mmap.PAGESIZE) as memory:
            for page in range(steps * pages):
                memory[page * mmap.PAGESIZE] = 1

    bench.work = touch
    steps = bench.run(*turns(1))[-1]
    window = bench.reports()[-1].window
    assert window is not None
    assert steps * pages <= window.page_faults < 2 * steps * pages
    assert 0 <= window.system_seconds <= window.cpu_seconds


def test_the_time_spent_waiting_for_a_turn_is_in_no_window() -> None:
    bench = Bench(step_s=0.001, window_s=0.01)
    sent = []

    def slow_parent(turn: Turn) -> None:
        sent.append(turn)
        bench.parent.send(turn)

    begun = time.perf_counter()
    bench.parent.send(Turn(do="pilot"))
    slow_parent(Turn(do="window", round=0))
    while steps := bench.clock.begin():
        time.sleep(bench.step_s * steps)
        bench.clock.end(1.0)
        if not bench.clock._piloting and bench.clock.scheduled > 2 and len(sent) == 1:
            time.sleep(1)
            slow_parent(Turn(do="finish"))
    window = bench.reports()[-1].window
    assert window is not None
    assert window.seconds <= time.perf_counter() - begun - 1


def test_an_update_is_proved_before_a_window_that_says_so_and_is_in_none() -> None:
    bench = Bench(step_s=0.001, window_s=0.01)
    proved: list[int] = []

    def prove() -> None:
        proved.append(bench.clock.scheduled)
        bench.clock.scheduled += 1
        time.sleep(0.2)

    bench.clock.prove = prove
    said = [Turn(do="window", round=0), Turn(do="window", round=1, prove=True), Turn(do="finish")]
    windows = bench.run(*said)
    measured = [report.window for report in bench.reports() if report.window]
    assert [window.round for window in measured] == [0, 1]
    assert [window.check_seconds >= 0.2 for window in measured] == [False, True]
    assert proved == [sum(windows[:-2])], "a window that is not reported follows the proof"
    assert bench.clock.scheduled == sum(windows) + 1


def test_as_many_steps_as_asked_for_by_the_agreed_pace_come_before_every_window_and_are_in_none() -> None:
    paces: list[float] = []

    def before(seconds: float) -> int:
        paces.append(seconds)
        return 3

    bench = Bench(step_s=0.001, window_s=0.01)
    bench.clock.before = before
    bench.clock.agree = lambda _: 0.02  # what all processes have agreed on, whatever this one measured
    windows = bench.run(*turns(4))
    reports = bench.reports()
    [ready] = [report for report in reports if report.ready]
    assert paces == [ready.step_seconds]
    assert windows[-8:] == [3, ready.steps] * 4
    told = [(report.window.steps, report.window.untimed_steps) for report in reports if report.window]
    assert told == [(ready.steps, 3)] * 4
    assert bench.clock.scheduled == sum(windows)


class FakeTracer:
    """Takes a while, and remembers what had been reported when it began."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.reported, self.ended = bench, [], False

    def begin(self, window_steps: int) -> int:
        self.reported = self.bench.reports()
        time.sleep(0.1)
        return min(2, window_steps)

    def end(self) -> None:
        self.ended = True


def test_a_trace_begins_after_the_last_window_and_is_in_none() -> None:
    bench = Bench(step_s=0.001, window_s=0.01)
    tracer = FakeTracer(bench)
    bench.clock.tracer = tracer  # type: ignore[assignment]
    windows = bench.run(*turns(3))
    reported = [report.window for report in tracer.reported if report.window]
    assert len(reported) == 3, "every window was told before the profiler began"
    assert [window.steps for window in reported] == windows[-4:-1]
    assert tracer.ended
    assert windows[-1] == 2
    assert bench.clock.scheduled == sum(windows), "the gate counts the traced steps' updates too"
    assert not bench.reports(), "the traced steps are no window"


def test_a_parent_that_is_gone_ends_the_trial() -> None:
    bench = Bench()
    bench.parent.close()
    with pytest.raises((EOFError, BrokenPipeError)):
        bench.run()


class Fed(Bench):
    """A step that takes `step_s` once it has its batch; each is made in `batch_s`, at most `ahead` before they are
    asked for. The time is the bench's own, so that nothing depends on the machine's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step_s: float, batch_s: float, ahead: int) -> None:
        super().__init__(step_s)
        self.now = self.made = 0.0
        self.ready, self.ahead, self.batch_s = 0.0, ahead, batch_s
        self.slowed = 1.0
        self.slowed_rounds: Sequence[int] = ()
        monkeypatch.setattr(clock.time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(clock.time, "sleep", self.passes)
        self.clock.ahead = lambda: ahead

    def passes(self, seconds: float) -> None:
        """Time passes, in which batches are made."""
        self.now += seconds
        self.ready = min(self.ahead, self.ready + seconds / self.batch_s)

    def paces(self, count: int, others_s: float) -> list[float]:
        """Seconds a step of each window, where another trial has `others_s` before each."""
        for turn in turns(count):
            self.parent.send(turn)
        while steps := self.clock.begin():
            for _ in range(steps):
                if self.ready < 1:
                    self.passes((1 - self.ready) * self.batch_s)
                self.ready -= 1
                slow = self.clock._piloting or (not self.clock._untimed and self.clock._round in self.slowed_rounds)
                self.passes(self.step_s * (self.slowed if slow else 1))
            self.clock.end(1.5)
            if self.clock._announced and not (self.clock._piloting or self.clock._in_turn):
                self.passes(others_s)
        self.windows = [report.window for report in self.reports() if report.window]
        return [window.seconds / window.steps for window in self.windows]


@pytest.mark.parametrize("ahead", [4, 40])
def test_batches_that_were_made_in_anothers_turn_make_no_window_faster(
    monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    bench = Fed(monkeypatch, step_s=0.001, batch_s=0.004, ahead=ahead)
    assert bench.paces(5, others_s=0.5) == pytest.approx([0.004] * 5, rel=0.05)
    assert ahead < bench.clock._lead < 2 * ahead


@pytest.mark.parametrize("batch_s", [0.047, 0.05, 0.06])
def test_an_input_that_is_slower_by_a_little_than_the_step_is_seen(
    monkeypatch: pytest.MonkeyPatch, batch_s: float
) -> None:
    bench = Fed(monkeypatch, step_s=0.04, batch_s=batch_s, ahead=5)
    bench.ready = bench.ahead
    assert bench.paces(6, others_s=0.5) == pytest.approx([batch_s] * 6, rel=0.02)


def test_where_the_input_keeps_up_no_step_is_without_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Fed(monkeypatch, step_s=0.004, batch_s=0.003, ahead=4)
    assert bench.paces(5, others_s=0.5) == pytest.approx([0.004] * 5)
    assert bench.clock._lead == 0


@pytest.mark.parametrize(("batch_s", "a_call", "steps"), [(0.003, 1, 0), (0.008, 1, 8), (0.008, 5, 10)])
def test_each_window_tells_how_many_steps_came_before_it(
    monkeypatch: pytest.MonkeyPatch, batch_s: float, a_call: int, steps: int
) -> None:
    bench = Fed(monkeypatch, step_s=0.004, batch_s=batch_s, ahead=4)
    bench.clock.a_call = a_call
    bench.paces(3, others_s=0.5)
    assert [window.untimed_steps for window in bench.windows] == [steps] * 3


def test_a_pilot_that_something_slowed_does_not_make_every_later_window_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Fed(monkeypatch, step_s=0.004, batch_s=0.003, ahead=4)
    bench.slowed = 1.5
    assert bench.paces(5, others_s=0.5) == pytest.approx([0.004] * 5)
    assert len(bench.clock._waiting) == 1
    assert bench.clock._lead == 0


def test_dear_steps_come_before_every_window_where_each_of_three_turns_asks_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Fed(monkeypatch, step_s=0.5, batch_s=2.0, ahead=4)
    assert bench.paces(6, others_s=20) == pytest.approx([2.0] * 6, rel=0.05)
    assert len(bench.clock._waiting) == clock.PROBES
    assert 4 < bench.clock._lead < 8


@pytest.mark.parametrize(("step_s", "lead"), [(0.5, 0), (0.004, 12)])
def test_slow_windows_beside_one_that_is_not_make_only_cheap_steps_come_before_every_window(
    monkeypatch: pytest.MonkeyPatch, step_s: float, lead: int
) -> None:
    bench = Fed(monkeypatch, step_s, batch_s=step_s / 5, ahead=4)
    bench.slowed, bench.slowed_rounds = 1.5, (0, 2)
    bench.paces(6, others_s=5)
    assert bench.clock._lead == lead


def test_steps_that_are_nothing_but_their_input_wait_for_it_whatever_the_pilot_sees(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Fed(monkeypatch, step_s=0.004, batch_s=0.003, ahead=4)
    bench.clock.waits = True
    assert bench.paces(5, others_s=0.5) == pytest.approx([0.004] * 5)
    assert bench.clock._lead == 4 / clock.WAITING


def test_a_slow_input_of_which_nothing_was_made_in_short_turns_has_no_more_steps_before_a_window_than_may_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Fed(monkeypatch, step_s=0.0001, batch_s=2.5, ahead=5)
    bench.clock.waits = True
    assert bench.paces(5, others_s=0.1) == pytest.approx([2.5] * 5, rel=0.05)
    assert bench.clock._lead == 5


def test_without_those_steps_they_would_have(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Fed(monkeypatch, step_s=0.001, batch_s=0.004, ahead=4)
    bench.clock.ahead = int
    assert max(bench.paces(5, others_s=0.5)) < 0.003
