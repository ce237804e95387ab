"""What a sweep tells while it runs, to a pipe and to a terminal."""

import io
from typing import Any

import pytest
from rich.console import Console

from harness.cli._live import TerminalProgress
from harness.run.kinds.faults.progress import FaultLines
from harness.run.progress import PlainLines, Progress, duration
from tests.faulted import job
from tests.record.examples import cell, failed_trial, trial


class FakeClock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def test_at_first_the_time_left_is_the_estimate(clock: FakeClock) -> None:
    eta = Progress(clock)
    eta.started("run", 10, 60.0)
    assert eta.left_s() == 60.0
    clock.now += 20
    assert eta.left_s() == 40.0


def test_an_estimate_that_is_used_up_gives_way_to_the_pace_and_is_all_to_come_where_nothing_is_done(
    clock: FakeClock,
) -> None:
    eta = Progress(clock)
    eta.started("run", 20, 140.0)
    clock.now += 150
    assert eta.left_s() == 140.0
    eta.done = 1
    assert eta.left_s() == 19 * 150.0
    clock.now += 30
    eta.done = 3
    assert eta.left_s() == 17 * 60.0


def test_once_a_fifth_is_done_the_measured_pace_counts(clock: FakeClock) -> None:
    eta = Progress(clock)
    eta.started("run", 10, 60.0)
    clock.now += 20
    eta.done = 1
    assert eta.left_s() == 40.0
    eta.done = 2
    assert eta.left_s() == 80.0
    eta.done = 10
    assert eta.left_s() == 0.0


def test_trials_that_are_run_again_never_make_the_time_left_negative(clock: FakeClock) -> None:
    eta = Progress(clock)
    eta.started("run", 2, 60.0)
    clock.now += 10
    eta.done = 3
    assert eta.left_s() == 0.0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"), (3599.9, "1 h 0 min"), (7384, "2 h 3 min")],
)
def test_a_duration_is_said_as_people_say_it(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def tell(progress: Any) -> None:
    """A small run: two trials, of which one crashes, and one that is skipped."""
    progress.started("the-run", 3, 65.0)
    progress.block(0, 2, 2)
    progress.phase(cell(), "first_step")
    progress.round(0, 10, 2)
    progress.ended(trial())
    progress.ended(failed_trial(reason="ended by SIGSEGV during build"))
    progress.skipped(1)
    progress.more(2)
    progress.ended(trial(1))
    progress.finished()


def test_a_pipe_gets_one_plain_line_for_each_trial() -> None:
    out = io.StringIO()
    tell(PlainLines(out))
    assert out.getvalue().splitlines() == [
        "run the-run: 3 trials, about 1 min 5 s",
        "block 1 of 2: 2 trials take turns, about 1 min 5 s left",
        "[1/3] mirrored ×2 b32: 5,981 examples/s",
        "[2/3] mirrored ×2 b32: crashed: ended by SIGSEGV during build",
        "[3/4] mirrored ×2 b32: 5,981 examples/s",
    ]


def test_what_a_record_says_is_visible_and_stays_in_its_line() -> None:
    out = io.StringIO()
    lines = PlainLines(out)
    lines.ended(failed_trial(reason="one\ntwo\x1b[2J\u202e"))
    [line] = out.getvalue().splitlines()
    assert line.endswith("crashed: one two\N{REPLACEMENT CHARACTER}[2J\N{REPLACEMENT CHARACTER}")


def test_what_nobody_knows_before_makes_an_estimate_a_lower_limit_until_it_was_seen() -> None:
    out = io.StringIO()
    lines = PlainLines(out)
    lines.started("the-run", 3, 65.0, "building a larger model")
    lines.block(0, 2, 2)
    lines.ended(trial())
    lines.block(1, 2, 1)
    first, before, _, after = out.getvalue().splitlines()
    assert (
        first
        == "run the-run: 3 trials, about 1 min 5 s, and what building a larger model takes, which is not known before"
    )
    assert (before, after[:40]) == (
        "block 1 of 2: 2 trials take turns, more than 1 min 5 s left",
        "block 2 of 2: 1 trial, about 0 s left",
    )


class Broken(io.StringIO):
    def write(self, _: str) -> int:
        raise BrokenPipeError


def test_a_reader_that_is_gone_does_not_cost_the_measurement() -> None:
    tell(PlainLines(Broken()))
    closed = io.StringIO()
    closed.close()
    tell(PlainLines(closed))


def test_a_terminal_shows_the_cell_its_phase_and_how_much_is_done() -> None:
    out = io.StringIO()
    tell(TerminalProgress(Console(file=out, force_terminal=True, width=140, color_system=None)))
    text = out.getvalue()
    assert "run the-run: 3 trials, about 1 min 5 s" in text
    assert "crashed  mirrored ×2 b32: ended by SIGSEGV during build" in text
    assert "3/4" in text


def test_a_terminal_shows_what_was_said_as_it_was_said() -> None:
    out = io.StringIO()
    progress = TerminalProgress(Console(file=out, force_terminal=True, width=200, color_system=None))
    progress.started("the-run", 1, 5.0)
    progress.ended(failed_trial(reason="shape [2, 3] [/bold] is :smile: not [red]right"))
    progress.finished()
    assert "shape [2, 3] [/bold] is :smile: not [red]right" in out.getvalue()


def test_a_trial_by_itself_takes_no_turns() -> None:
    out = io.StringIO()
    lines = PlainLines(out)
    lines.started("run", 1, 60.0)
    lines.block(0, 2, 1)
    assert "block 1 of 2: 1 trial, about " in out.getvalue()


def test_the_lines_of_a_decision_say_which_look_comes_and_which_side_a_trial_was_of() -> None:
    out = io.StringIO()
    lines = PlainLines(out)
    lines.started("run", 10, 60.0)
    lines.look(2, 4, 8)
    lines.block(5, 8, 2)
    lines.ended(trial(side="b"))
    assert "block 6 of 8 (look 2 of 4 after 8): 2 trials take turns" in out.getvalue()
    assert "[1/10] B, mirrored" in out.getvalue()
    lines.look(1, 3, 5, "round 2 of 60")
    lines.block(0, 5, 3)
    assert "block 1 of 5 (round 2 of 60, look 1 of 3 after 5): 3 trials take turns" in out.getvalue()


def test_a_run_of_faults_says_the_time_left_as_every_run_does(
    monkeypatch: pytest.MonkeyPatch, clock: FakeClock
) -> None:
    monkeypatch.setattr("harness.run.kinds.faults.progress.Progress", lambda: Progress(clock))
    out = io.StringIO()
    lines = FaultLines(out=out)
    lines.started("run", 6, 60.0)
    for clock.now in (110.0, 140.0):
        lines.ended(job("multi_worker_mirrored", "kill_worker", 0))
    told = [line.partition("]")[0] for line in out.getvalue().splitlines()[1:]]
    assert told == ["[1/6, about 50 s left", "[2/6, about 1 min 20 s left"]
    lines.started("run", 20, 140.0)
    for clock.now in (200.0, 260.0, 320.0):
        lines.ended(job("multi_worker_mirrored", "kill_worker", 0))
    assert out.getvalue().splitlines()[-1].startswith("[3/20, about 17 min 0 s left]")


def test_the_terminal_says_which_look_comes_and_which_side_is_at_the_clock() -> None:
    progress = TerminalProgress(Console(file=io.StringIO(), width=100, force_terminal=True))
    progress.look(1, 4, 5)
    progress.block(0, 5, 2)
    assert progress.in_block == "block 1/5 · look 1 of 4 after 5"
    progress.turn(cell(), "a")
    assert progress.now.startswith("at the clock · A, mirrored")
