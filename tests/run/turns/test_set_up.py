"""Trials that are set up at the same time: each is followed by itself, and the group waits for them all."""

import itertools
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.errors import Interrupted
from harness.protocol.messages import Report, Request, TraceRequest
from harness.run.progress import Quiet
from harness.run.turns import group as turns
from harness.run.turns.group import TurnGroup, TurnRules
from harness.run.turns.live import LiveTrial
from harness.spec import Cell
from tests.record.examples import cell
from tests.run.fakes import Actor, Play, Plays, all_play
from tests.run.turns.groups import Group

CELLS = [cell(replicas=n, global_batch_size=32 * n) for n in range(2, 7)]


def meeting(barrier: threading.Barrier, limit_s: float, at: str = "build") -> Play:
    """A trial that is only built (or seen out) once another is too; alone it waits in vain and dies."""

    def wait(actor: Actor) -> None:
        try:
            barrier.wait(limit_s)
        except threading.BrokenBarrierError:
            actor.end(1)

    return Play(at, wait)


def of_cell(who: Cell, play: Play) -> Plays:
    return lambda request: play if request.cell == who else Play()


def test_two_trials_are_set_up_at_once(tmp_path: Path) -> None:
    group = Group(tmp_path, all_play(meeting(threading.Barrier(2), 20)), CELLS[:4], together=2)
    group.run()
    assert set(group.statuses().values()) == {"ok"}


def test_sides_that_are_compared_all_begin_at_once(tmp_path: Path) -> None:
    group = Group(tmp_path, all_play(meeting(threading.Barrier(3), 20)), CELLS[:3], together=3)
    group.turns._rules = TurnRules(5, 0, 1, together=3, at_first=3)
    group.run()
    assert set(group.statuses().values()) == {"ok"}


def test_trials_whose_channels_close_with_their_preloaded_process_have_crashed(tmp_path: Path) -> None:
    class Closing(Quiet):
        def phase(self, cell: Cell, phase: str) -> None:
            if phase == "first_step" and cell == CELLS[1]:
                for trial in group.turns._live:
                    trial.child.channel.close()

    hangs = of_cell(CELLS[0], Play("first_step", Actor.hang))
    group = Group(tmp_path, hangs, CELLS[:2], together=2)
    group.turns._progress = Closing()
    group.run()
    assert group.statuses() == {CELLS[0].cell_id: "crashed", CELLS[1].cell_id: "crashed"}


def test_two_trials_are_seen_out_at_once(tmp_path: Path) -> None:
    group = Group(tmp_path, all_play(meeting(threading.Barrier(2), 20, "finish")), CELLS[:4], together=2)
    group.run()
    assert set(group.statuses().values()) == {"ok"}


def test_what_is_timed_once_more_at_its_end_is_seen_out_alone(tmp_path: Path) -> None:
    group = Group(tmp_path, all_play(meeting(threading.Barrier(2), 0.2, "finish")), CELLS[:2], together=2)
    for trial in group.turns._waiting:
        trial.request = trial.request.model_copy(update={"trace": TraceRequest(run="", path="")})
    group.run()
    assert set(group.statuses().values()) == {"crashed"}


def test_ctrl_c_keeps_a_trial_that_is_through_while_another_is_seen_out(tmp_path: Path) -> None:
    def press_ctrl_c(actor: Actor) -> None:
        while not group.zygote.statuses:  # the other one's word is in its channel
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
        actor.hang()

    group = Group(tmp_path, of_cell(CELLS[1], Play("finish", press_ctrl_c)), CELLS[:2], together=2)
    with pytest.raises(Interrupted):
        group.run()
    assert group.statuses() == {CELLS[0].cell_id: "ok", CELLS[1].cell_id: "interrupted"}


def test_one_at_a_time_is_the_rule_unless_it_is_said_otherwise(tmp_path: Path) -> None:
    assert TurnRules(5, 0, 1).together == 1
    group = Group(tmp_path, all_play(meeting(threading.Barrier(2), 0.2)), CELLS[:2], together=1)
    group.run()
    assert set(group.statuses().values()) == {"crashed"}


@pytest.mark.parametrize("together", [2, 4])
def test_the_next_begins_when_one_is_through_and_the_first_window_when_all_are(tmp_path: Path, together: int) -> None:
    """However many may be set up together: of the first two nobody knows yet how much memory one takes."""
    started: list[tuple[str, set[str]]] = []

    def watching(request: Request) -> Play:
        ready = {who for who, what in group.zygote.diary if what == "ready"}
        started.append((request.cell.cell_id, ready))
        return Play()

    group = Group(tmp_path, watching, CELLS[:5], together)
    group.run()
    ids = [one.cell_id for one in CELLS]
    assert [who for who, _ in started] == ids
    for number, (_, ready) in enumerate(started):
        assert len(ready) >= (number - 1 if together == 2 else min(1, number // 2))
    last_ready = max(group.at(one, "ready") for one in CELLS)
    assert last_ready < min(group.at(one, "window 0") for one in CELLS)


@pytest.mark.parametrize("phase", ["build", "first_step", "warmup"])
def test_one_that_dies_while_it_is_set_up_does_not_hurt_the_one_beside_it(tmp_path: Path, phase: str) -> None:
    dies = of_cell(CELLS[0], Play(phase, lambda actor: actor.end(-signal.SIGSEGV)))
    group = Group(tmp_path, dies, CELLS[:3], together=2)
    group.run()
    assert group.statuses() == {CELLS[0].cell_id: "crashed", CELLS[1].cell_id: "ok", CELLS[2].cell_id: "ok"}
    [dead] = [record for record in group.kept if record.status == "crashed"]
    assert (dead.reason or "").startswith("ended by SIGSEGV during ")


def test_what_is_no_whole_report_yet_keeps_nobody_from_hearing_the_others(tmp_path: Path) -> None:
    started, begun, heard = threading.Event(), threading.Event(), threading.Event()

    class Hearing(Quiet):
        def phase(self, cell: Cell, phase: str) -> None:
            if (cell, phase) == (CELLS[0], "start"):
                started.set()
            if (cell, phase) == (CELLS[1], "warmup"):
                heard.set()

    def say_half(actor: Actor) -> None:
        started.wait(20)
        actor.channel.connection.sendall(b'{"alive":')
        begun.set()
        if not heard.wait(20):
            actor.end(1)
        actor.channel.connection.sendall(b"true}\n")

    def go_on_after_that(actor: Actor) -> None:
        begun.wait(20)
        actor.killed.wait(0.1)  # so that the parent looks at the half

    def plays(request: Request) -> Play:
        return Play("build", say_half if request.cell == CELLS[0] else go_on_after_that)

    group = Group(tmp_path, plays, CELLS[:2], together=2, timeout_s=60.0)
    group.turns._progress = Hearing()
    group.run()
    assert set(group.statuses().values()) == {"ok"}


@pytest.mark.parametrize("at", ["first_step", "finish"])
def test_one_that_says_half_a_line_and_no_more_is_ended_in_time_beside_another(tmp_path: Path, at: str) -> None:
    def say_half_and_hang(actor: Actor) -> None:
        actor.channel.connection.sendall(b'{"alive":')
        actor.hang()

    plays = of_cell(CELLS[1], Play(at, say_half_and_hang))
    group = Group(tmp_path, plays, CELLS[:2], together=2, timeout_s=0.4)
    group.run()
    assert group.statuses() == {CELLS[0].cell_id: "ok", CELLS[1].cell_id: "timeout"}


def test_one_that_hangs_is_ended_though_the_others_go_on_reporting(tmp_path: Path) -> None:
    group = Group(tmp_path, of_cell(CELLS[1], Play("first_step", Actor.hang)), CELLS[:3], together=3, timeout_s=0.4)
    group.run()
    assert group.statuses() == {CELLS[0].cell_id: "ok", CELLS[1].cell_id: "timeout", CELLS[2].cell_id: "ok"}
    [hung] = [record for record in group.kept if record.status == "timeout"]
    assert hung.reason == ("no sign of life within 0.4 s during check, nor within 1.2 s, as 3 may share the cores")


def test_one_that_is_ended_while_it_computes_is_told_of_the_longer_limit_that_it_may_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.run.turns.live.processor_seconds", lambda _: {1: time.monotonic()})
    group = Group(tmp_path, of_cell(CELLS[0], Play("first_step", Actor.hang)), CELLS[:1], together=1, timeout_s=0.4)
    group.run()
    assert re.fullmatch(
        r"no sign of life within 0\.4 s during check: it computed \(\d+ s of processor time\), "
        r"for which a longer --timeout may be all that it needs",
        group.kept[0].reason or "",
    )


def test_the_limit_in_time_is_of_each_phase_and_not_of_all_of_set_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later, now = [0.0], time.monotonic

    def check_for_long(actor: Actor) -> None:
        later[0] += 600.0
        actor.killed.wait(0.1)  # so that the parent looks at its clock

    monkeypatch.setattr(
        "harness.run.turns.live.time",
        SimpleNamespace(monotonic=lambda: now() + later[0], perf_counter=time.perf_counter),
    )
    group = Group(tmp_path, all_play(Play("check", check_for_long)), CELLS[:1], together=1, timeout_s=1000.0)
    group.run()
    assert later == [1200.0]
    assert set(group.statuses().values()) == {"ok"}


@pytest.mark.parametrize("at", ["check", 2, "finish"])
def test_what_takes_longer_than_the_limit_goes_on_as_long_as_it_gives_a_sign_of_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str | int
) -> None:
    later, now = [0.0], time.monotonic

    def take_long(actor: Actor) -> None:
        for _ in range(4):
            later[0] += 600.0
            actor.channel.send(Report(alive=True))
            actor.killed.wait(0.1)  # so that the parent looks at its clock

    monkeypatch.setattr(
        "harness.run.turns.live.time",
        SimpleNamespace(monotonic=lambda: now() + later[0], perf_counter=time.perf_counter),
    )
    group = Group(tmp_path, all_play(Play(at, take_long)), CELLS[:1], together=1, timeout_s=1000.0)
    group.run()
    assert later[0] >= 2400.0
    assert set(group.statuses().values()) == {"ok"}


def test_ctrl_c_while_several_are_set_up_ends_them_all(tmp_path: Path) -> None:
    def press(actor: Actor) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        actor.hang()

    plays = {CELLS[0].cell_id: Play("build", Actor.hang), CELLS[1].cell_id: Play("check", press)}
    group = Group(tmp_path, lambda request: plays[request.cell.cell_id], CELLS[:2], together=2)
    with pytest.raises(Interrupted):
        group.run()
    assert group.statuses() == {one.cell_id: "interrupted" for one in CELLS[:2]}


def shrinking(group: Callable[[], Group], fit: float) -> Callable[[], int]:
    """Memory that has room for `fit` trials; each takes its share as soon as it is started."""
    each = 2**30
    return lambda: int((fit - len(group().zygote.spawned)) * each)


@pytest.mark.parametrize(("together", "fit", "live"), [(2, 5.5, 4), (2, 3.5, 2), (3, 6.5, 5), (1, 4.5, 3), (2, 1.0, 2)])
def test_there_must_be_room_for_one_more_and_it_is_what_one_took_whoever_was_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: int, fit: float, live: int
) -> None:
    monkeypatch.setattr(turns, "available_memory_bytes", shrinking(lambda: group, fit))
    monkeypatch.setattr(TurnGroup, "_reserve", lambda _: 2**30)
    group = Group(tmp_path, all_play(Play()), CELLS, together)
    waiting = group.run()
    assert len(group.kept) == live
    assert [trial.cell for trial in waiting] == CELLS[live:]


def test_there_must_be_room_for_what_one_took_for_a_time_and_not_for_what_it_keeps_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "available_memory_bytes", shrinking(lambda: group, 5.5))
    monkeypatch.setattr(turns, "own_peak_bytes", lambda _: 2 * 2**30)
    monkeypatch.setattr(TurnGroup, "_reserve", lambda _: 2**30)
    group = Group(tmp_path, all_play(Play()), CELLS, together=1)
    assert [trial.cell for trial in group.run()] == CELLS[3:], "of 2.5 GiB one takes 2, and 1 stays free"


SMALL = int(2**30 / turns.MEMORY_RESERVE)
"""Bytes of memory of which one GiB is the reserve."""


@pytest.mark.parametrize(("limit", "total"), [(SMALL, 2**40), (None, SMALL)], ids=["container", "machine"])
def test_what_stays_free_is_a_share_of_what_there_is_and_in_a_container_of_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int | None, total: int
) -> None:
    monkeypatch.setattr(turns, "available_memory_bytes", shrinking(lambda: group, 5.5))
    monkeypatch.setattr(turns, "memory_limit_bytes", lambda: limit)
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(total=total))
    group = Group(tmp_path, all_play(Play()), CELLS, together=2)
    assert [trial.cell for trial in group.run()] == CELLS[4:]


def test_memory_that_goes_between_two_looks_at_it_leaves_the_rest_to_a_group_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = itertools.chain([8 * 2**30] * 4, itertools.repeat(0))
    monkeypatch.setattr(turns, "available_memory_bytes", lambda: next(free))
    monkeypatch.setattr(TurnGroup, "_reserve", lambda _: 2**30)
    group = Group(tmp_path, all_play(Play()), CELLS, together=1)
    waiting = group.run()
    assert [trial.cell for trial in waiting] == CELLS[3:]
    assert set(group.statuses().values()) == {"ok"}


@pytest.mark.parametrize(("left", "live"), [(0, 2), (9, 4), (100, 5)])
def test_where_few_files_may_be_open_the_rest_is_left_to_a_group_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int, live: int
) -> None:
    most = turns.DESCRIPTOR_RESERVE + left
    monkeypatch.setattr(turns, "free_descriptors", lambda: most - 2 * len(group.zygote.spawned))
    group = Group(tmp_path, all_play(Play()), CELLS, together=1)
    waiting = group.run()
    assert [trial.cell for trial in waiting] == CELLS[live:]
    assert set(group.statuses().values()) == {"ok"}


def test_the_group_agrees_on_steps_once_all_are_set_up_and_before_the_first_window(tmp_path: Path) -> None:
    asked: list[list[int | None]] = []

    def agree(trials: Sequence[LiveTrial]) -> None:
        assert not any(what.startswith("window") for _, what in group.zygote.diary)
        asked.append([trial.steps for trial in trials])
        for trial in trials:
            trial.steps = 7

    chosen = {one.cell_id: n for n, one in enumerate(CELLS, 1)}
    group = Group(tmp_path, lambda request: Play(steps=chosen[request.cell.cell_id]), CELLS[:3], together=2)
    group.turns._agree = agree
    group.run()
    assert asked == [[1, 2, 3]]
    assert {record.windows.steps_per_window for record in group.kept if record.windows} == {7}
