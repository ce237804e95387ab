"""Trials of a group live together and take turns, window by window, whatever happens to one of them."""

import signal
from pathlib import Path

import pytest

from harness.protocol.messages import Outcome
from harness.record import load_run
from harness.run.progress import Quiet
from harness.run.turns import group as turns
from harness.run.turns import live
from harness.spec import Cell
from harness.spec.work import OwnStepCell
from tests.record.examples import cell
from tests.run.fakes import PROVED, Actor, Bench, Play, all_play, only

TWO, THREE = cell(), cell(replicas=3, global_batch_size=96)
BASE = TWO.base
CELLS = [BASE, TWO, THREE]


def events(bench: Bench, kind: str) -> list[tuple[int, str]]:
    """(position in the diary, cell id) of every event of a kind."""
    return [(at, who) for at, (who, what) in enumerate(bench.zygote.diary) if what.startswith(kind)]


def rounds(bench: Bench) -> dict[int, list[str]]:
    """Who had a turn in each round, in order."""
    found: dict[int, list[str]] = {}
    for who, what in bench.zygote.diary:
        if what.startswith("window"):
            found.setdefault(int(what.split()[1]), []).append(who)
    return found


def test_all_trials_of_a_group_live_before_the_first_window(tmp_path: Path) -> None:
    bench = Bench(tmp_path, CELLS)
    bench.start()
    assert len(events(bench, "ready")) == 3
    assert events(bench, "ready")[-1] < events(bench, "window")[0]


def test_every_live_trial_has_one_window_a_round_in_an_order_that_changes(tmp_path: Path) -> None:
    bench = Bench(tmp_path, CELLS, sweep={"windows": 12})
    bench.start()
    orders = rounds(bench)
    assert sorted(orders) == list(range(12))
    assert all(sorted(order) == sorted(item.cell_id for item in CELLS) for order in orders.values())
    assert len({tuple(order) for order in orders.values()}) > 2


def test_windows_that_follow_ones_own_are_told_from_those_that_follow_anothers(tmp_path: Path) -> None:
    bench = Bench(tmp_path, CELLS, sweep={"windows": 30})
    run = bench.start()
    who = [cell_id for _, order in sorted(rounds(bench).items()) for cell_id in order]
    for record in run.trials:
        mine = [place for place, cell_id in enumerate(who) if cell_id == record.cell_id]
        after_own = [number for number, place in enumerate(mine) if place and who[place - 1] == record.cell_id]
        assert record.windows is not None
        assert record.windows.after_own == after_own
    assert any(record.windows and record.windows.after_own for record in run.trials)


def test_the_order_of_turns_follows_from_the_seed(tmp_path: Path) -> None:
    found = []
    for name, seed in [("a", 1), ("b", 1), ("c", 2)]:
        (tmp_path / name).mkdir()
        bench = Bench(tmp_path / name, CELLS, sweep={"windows": 12, "seed": seed})
        bench.start()
        found.append(rounds(bench))
    assert found[0] == found[1] != found[2]


def test_one_trial_at_a_time_has_the_turn(tmp_path: Path) -> None:
    bench = Bench(tmp_path, CELLS)
    bench.start()
    turns_taken = [(who, what.split()) for who, what in bench.zygote.diary if what not in ("ready", "pilot")]
    for begin, end in zip(turns_taken[::2], turns_taken[1::2], strict=True):
        assert (begin[0], begin[1][0], begin[1][1]) == (end[0], "window", end[1][1])
        assert end[1][0] == "done"


def test_a_pilot_has_nobody_beside_it_and_comes_before_the_first_window(tmp_path: Path) -> None:
    bench = Bench(tmp_path, CELLS)
    bench.start()
    assert [what for _, what in bench.zygote.diary][:6] == ["ready"] * 3 + ["pilot"] * 3


def test_trials_of_a_group_share_its_name_and_groups_do_not(tmp_path: Path) -> None:
    run = Bench(tmp_path, CELLS, sweep={"trials": 2}).start()
    assert [len({t.group for t in run.trials if t.block == block}) for block in (0, 1)] == [1, 1]
    assert len({t.group for t in run.trials}) == 2
    assert {t.interleaving for t in run.trials} == {"turns"}


@pytest.mark.parametrize(
    ("at", "phase"), [("build", "start"), ("first_step", "check"), (0, "warmup"), (3, "steady"), ("finish", "check")]
)
def test_a_trial_that_dies_is_a_record_with_its_phase_and_signal_and_the_rest_goes_on(
    tmp_path: Path, at: str | int, phase: str
) -> None:
    dies = Play(at, lambda actor: actor.end(-signal.SIGSEGV))
    run = Bench(tmp_path, CELLS, only(TWO, dies), sweep={"max_warmup": 1}).start()
    records = {record.cell_id: record for record in run.trials}
    dead = records[TWO.cell_id]
    assert (dead.status, dead.phase) == ("crashed", phase)
    assert dead.reason == f"ended by SIGSEGV during {phase}"
    assert len(dead.windows.seconds if dead.windows else []) == (at if isinstance(at, int) else 6 * (at == "finish"))
    for other in (BASE, THREE):
        record = records[other.cell_id]
        assert record.status == "ok"
        assert record.windows is not None
        assert record.windows.rounds == [0, 1, 2, 3, 4, 5]


def test_a_trial_that_ends_without_a_word_is_a_record(tmp_path: Path) -> None:
    run = Bench(tmp_path, CELLS, only(TWO, Play(2, lambda actor: actor.end(3)))).start()
    [dead] = [record for record in run.trials if record.status != "ok"]
    assert dead.reason == "exit status 3 without a record during steady"


def test_the_last_line_that_a_trial_wrote_before_it_ended_without_a_word_is_in_the_reason(tmp_path: Path) -> None:
    def complains(actor: Actor) -> None:
        actor.log.write_text("I0 start\nF0000 00:00:1795.5   307 parse.cc:234] Unknown flag: \x1b[2J--x\n\n")
        actor.end(1)

    run = Bench(tmp_path, CELLS, only(TWO, Play("check", complains))).start()
    [dead] = [record for record in run.trials if record.status != "ok"]
    assert dead.reason == "exit status 1 without a record during build: Unknown flag: \ufffd[2J--x"


def test_a_trial_that_ends_well_before_it_was_measured_is_no_good_trial(tmp_path: Path) -> None:
    early = Play(1, lambda actor: actor.say("ok"))
    run = Bench(tmp_path, CELLS, only(TWO, early)).start()
    [record] = [record for record in run.trials if record.cell == TWO]
    assert record.status == "crashed"
    assert record.reason is not None
    assert "before all its windows were measured" in record.reason
    assert record.throughput_examples_per_s is None


@pytest.mark.parametrize(("at", "phase"), [("check", "build"), (2, "steady"), ("finish", "check")])
def test_a_trial_that_hangs_times_out_with_its_phase_and_stacks_and_the_rest_goes_on(
    tmp_path: Path, at: str | int, phase: str
) -> None:
    bench = Bench(tmp_path, CELLS, only(TWO, Play(at, Actor.hang)), sweep={"timeout": 0.3})
    run = bench.start()
    records = {record.cell_id: record for record in run.trials}
    hung = records[TWO.cell_id]
    assert (hung.status, hung.phase) == ("timeout", phase)
    assert hung.reason is not None
    assert hung.reason.startswith(f"no sign of life within 0.3 s during {phase}")
    assert hung.evidence is not None
    assert "most recent call first" in hung.evidence
    assert [records[item.cell_id].status for item in (BASE, THREE)] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("step", "at", "says"),
    [
        ("train.py --epochs 3", "check", "build: the script has not called a function that harness.mark_step marks"),
        ("train.py --epochs 3", 2, "steady"),
        ("mine:make_step", "check", "build"),
    ],
)
def test_a_script_that_goes_on_without_a_marked_step_times_out_with_what_it_lacks(
    tmp_path: Path, step: str, at: str | int, says: str
) -> None:
    own = OwnStepCell(step=step)
    [hung] = Bench(tmp_path, [own], only(own, Play(at, Actor.hang)), sweep={"timeout": 0.3}).start().trials
    assert hung.reason == f"no sign of life within 0.3 s during {says}"


def says_that_kernels_are_compiled(actor: Actor) -> None:
    actor.log.write_text(
        "W0000 00:00:1753232013.685876   24341 gpu_device.cc:2431] TensorFlow was not built with CUDA kernel binaries "
        "compatible with compute capability 9.0. CUDA kernels will be jit-compiled from PTX, which could take 30 "
        "minutes or longer.\n" + "I0000 more of it\n" * 200
    )


def test_a_trial_whose_cards_kernels_are_compiled_first_may_take_longer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def compiles(actor: Actor) -> None:
        says_that_kernels_are_compiled(actor)
        actor.killed.wait(1.0)

    run = Bench(tmp_path, CELLS, only(TWO, Play("check", compiles)), sweep={"timeout": 0.3}).start()
    assert [record.reason for record in run.trials] == [None] * 3
    assert capsys.readouterr().err.count("harness: kernels are compiled for this card, once, which TensorFlow") == 1


def test_a_trial_that_hangs_after_its_kernels_had_their_time_times_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hangs(actor: Actor) -> None:
        says_that_kernels_are_compiled(actor)
        actor.hang()

    monkeypatch.setattr(live, "KERNELS_S", 0.5)
    run = Bench(tmp_path, CELLS, only(TWO, Play("check", hangs)), sweep={"timeout": 0.3}).start()
    [hung] = [record for record in run.trials if record.status != "ok"]
    assert hung.status == "timeout"
    assert "nor in 0.5 s more, in which kernels were compiled for its card" in (hung.reason or "")


def test_a_wrong_result_has_no_throughput(tmp_path: Path) -> None:
    wrong = Outcome(status="wrong_result", reason="update: off", checks=PROVED.model_copy(update={"update": False}))
    run = Bench(tmp_path, CELLS, only(TWO, Play(outcome=wrong))).start()
    [record] = [record for record in run.trials if record.cell == TWO]
    assert (record.status, record.reason) == ("wrong_result", "update: off")
    assert record.throughput_examples_per_s is None
    assert record.step_time_s is None


def test_what_was_left_unproved_is_measured_all_the_same_and_says_why(tmp_path: Path) -> None:
    blind = Outcome(status="ok", checks=PROVED.model_copy(update={"sight": {"missing": 0.5}}))
    run = Bench(tmp_path, CELLS, only(TWO, Play(outcome=blind))).start()
    [record] = [record for record in run.trials if record.cell == TWO]
    assert (record.status, record.phase, record.measured) == ("unproved", None, True)
    assert record.reason == "sight: a missing replica would be 0.5 of what is allowed"


def test_waiting_is_in_no_other_phase_not_even_of_a_trial_that_died(tmp_path: Path) -> None:
    def die_slowly(actor: Actor) -> None:
        actor.killed.wait(0.4)
        actor.end(1)

    run = Bench(tmp_path, CELLS, only(BASE, Play(3, die_slowly)), sweep={"max_warmup": 4}).start()
    [dead] = [record for record in run.trials if record.cell == BASE]
    assert dead.phases.waiting_s == pytest.approx(3 * 0.25)
    assert dead.phases.warmup_s == pytest.approx(3 * 0.1, abs=0.1)
    assert dead.phases.steady_s == 0
    assert dead.windows is not None
    assert dead.windows.measured_from == 3


def test_figures_follow_from_the_windows(tmp_path: Path) -> None:
    run = Bench(tmp_path, [TWO], all_play(Play(seconds=lambda _: 0.2))).start()
    [record] = run.trials
    assert record.step_time_s == pytest.approx(0.2 / 4)
    assert record.throughput_examples_per_s == pytest.approx(64 / 0.05)
    assert record.cpu_seconds_per_example == pytest.approx(0.05 / 4 / 64)
    assert record.interleaving == "none"


def test_the_windows_after_so_many_of_warm_up_are_measured_whatever_they_look_like(tmp_path: Path) -> None:
    growing = Play(seconds=lambda number: 0.1 * 1.2**number)
    run = Bench(tmp_path, CELLS, only(TWO, growing), sweep={"windows": 10, "max_warmup": 4}).start()
    for record in run.trials:
        assert (record.status, record.phase) == ("ok", None)
        assert record.windows is not None
        assert (record.windows.measured_from, len(record.windows.seconds)) == (4, 14)
        assert record.windows.steady is None
        assert record.phases.warmup_s is not None
        assert record.phases.warmup_s >= sum(record.windows.seconds[:4])


def test_what_memory_has_no_room_for_runs_next_beside_its_base_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns.TurnGroup, "_another_fits", lambda group, *_: group._waiting and len(group._live) < 2)
    four = cell(replicas=4, global_batch_size=128)
    bench = Bench(tmp_path, [*CELLS, four])
    run = bench.start()
    groups: dict[str, list[str]] = {}
    for record in run.trials:
        groups.setdefault(record.group, []).append(record.cell.label)
    assert {len(group) for group in groups.values()} == {2}
    assert all(BASE.label in group for group in list(groups.values())[1:])
    assert {record.cell_id for record in run.trials} == {item.cell_id for item in [*CELLS, four]}
    assert len(load_run(bench.path).trials) == len(run.trials)
    assert len({(record.cell_id, record.block, record.attempt) for record in run.trials}) == len(run.trials)


def test_two_trials_live_together_however_little_memory_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "available_memory_bytes", lambda: 0)
    run = Bench(tmp_path, CELLS).start()
    sizes = [sum(t.group == group for t in run.trials) for group in {t.group for t in run.trials}]
    assert set(sizes) == {2}


class Hearing(Quiet):
    """Keeps the phases that it is told of."""

    def __init__(self) -> None:
        super().__init__()
        self.phases: dict[str, list[str]] = {}

    def phase(self, cell: Cell, phase: str) -> None:
        self.phases.setdefault(cell.cell_id, []).append(phase)


def test_progress_hears_of_every_phase_of_every_trial_as_it_begins(tmp_path: Path) -> None:
    hearing = Hearing()
    Bench(tmp_path, CELLS, only(TWO, Play("first_step", lambda actor: actor.end(1))), progress=hearing).start()
    assert hearing.phases[TWO.cell_id] == ["start", "build", "check"]
    assert hearing.phases[BASE.cell_id][:6] == ["start", "build", "check", "first_step", "check", "warmup"]
