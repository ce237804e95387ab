"""A sweep from its plan to its last record: what is run again, and what is not."""

import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UsageError
from harness.protocol.messages import Outcome, Report, Request
from harness.record import RunStore, TrialRecord, load_run
from harness.run.launchers import launchers
from harness.run.progress import Quiet
from harness.run.request import request_for
from harness.spec import sweep_from
from tests.record.examples import cell
from tests.run.fakes import Actor, Bench, Play, Plays, all_play, only
from tests.run.swept import BASE, CELLS, THREE, TWO

OUT_OF_MEMORY = Outcome(status="out_of_memory", reason="ResourceExhaustedError: OOM")


def statuses(trials: list[TrialRecord], item: Any) -> list[str]:
    return [record.status for record in trials if record.cell == item]


def test_every_planned_trial_is_recorded_once_and_the_run_is_finished(tmp_path: Path) -> None:
    bench = Bench(tmp_path, CELLS, sweep={"trials": 3})
    run = bench.start()
    stored = load_run(bench.path)
    assert stored.trials == run.trials
    assert sorted((t.cell_id, t.block, t.attempt) for t in stored.trials) == sorted(
        (item.cell_id, block, 1) for item in CELLS for block in range(3)
    )
    assert {t.status for t in stored.trials} == {"ok"}
    assert stored.manifest.status == "finished"
    assert stored.manifest.finished_utc is not None


def test_on_gpus_a_trial_is_set_up_once_the_one_before_is_so_that_kernels_are_chosen_without_company(
    tmp_path: Path,
) -> None:
    cells = [cell(device="gpu", strategy="none", replicas=1), cell(device="gpu")]
    building = Play("build", lambda actor: actor.zygote.note(actor, "builds"))
    bench = Bench(tmp_path, cells, all_play(building), sweep={"trials": 1})
    bench.start()
    met = [what for _, what in bench.zygote.diary if what in ("builds", "ready")]
    assert met == ["builds", "ready"] * 2


@pytest.mark.parametrize(
    ("ends", "reason"),
    [
        (lambda actor: actor.say("out_of_memory", "ResourceExhaustedError: OOM"), "ResourceExhaustedError: OOM"),
        (Actor.starve, "ended by the kernel for want of memory during warmup"),
    ],
    ids=["framework", "kernel"],
)
def test_a_trial_that_runs_out_of_memory_in_company_runs_again_alone(
    tmp_path: Path, ends: Callable[[Actor], None], reason: str
) -> None:
    def fail_in_company(actor: Actor) -> None:
        if actor.attempt == 1:
            ends(actor)

    listening = Quiet()
    run = Bench(tmp_path, CELLS, only(TWO, Play("pilot", fail_in_company)), progress=listening).start()
    first, again = [record for record in run.trials if record.cell == TWO]
    assert (first.status, first.attempt, first.interleaving) == ("out_of_memory", 1, "turns")
    assert first.reason == reason
    assert (again.status, again.attempt, again.interleaving) == ("ok", 2, "blocks")
    assert again.group != first.group
    assert (listening.done, listening.total) == (4, 4)


def test_a_trial_that_runs_out_of_memory_alone_is_left_at_that(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path,
        [TWO],
        only(TWO, Play(outcome=OUT_OF_MEMORY, at="build", happens=lambda a: a.say("out_of_memory", "OOM"))),
    )
    assert statuses(bench.start().trials, TWO) == ["out_of_memory"]


def test_a_cell_that_ran_out_of_memory_alone_is_not_tried_alone_again(tmp_path: Path) -> None:
    sick = only(TWO, Play("pilot", lambda actor: actor.say("out_of_memory", "OOM")))
    listening = Quiet()
    run = Bench(tmp_path, CELLS, sick, sweep={"trials": 3}, progress=listening).start()
    tries = [(record.block, record.attempt) for record in run.trials if record.cell == TWO]
    assert tries == [(0, 1), (0, 2), (1, 1), (2, 1)]
    assert listening.done == listening.total


def test_a_cell_whose_group_has_only_it_left_is_not_tried_alone_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.run.kinds.sweep.usable_cores", lambda: 1)  # each is set up before the next begins
    ends = {TWO: "out_of_memory", BASE: "unsupported", THREE: "unsupported"}

    def plays(request: Request) -> Play:
        return (
            Play("build", lambda actor: actor.say(ends[request.cell], "no room")) if request.task == "trial" else Play()
        )

    listening = Quiet()
    run = Bench(tmp_path, CELLS, plays, sweep={"trials": 2}, progress=listening).start()
    tries = [(record.block, record.attempt) for record in run.trials if record.cell == TWO]
    assert tries == [(0, 1), (1, 1)]
    assert listening.done == listening.total


def test_a_model_that_raises_costs_its_own_trials_and_the_sweep_goes_on(tmp_path: Path) -> None:
    def raises(actor: Actor) -> None:
        actor.log.write_text("Traceback (most recent call last):\nValueError: no such layer\n")
        actor.end(1)

    own = cell(model="my.models:net")

    def plays(request: Request) -> Play:
        if request.cell != own or request.task == "prepare":
            return Play()
        return Play(happens=raises) if request.task == "preflight" else Play("build", raises)

    run = Bench(tmp_path, [*CELLS, own], plays).start()
    assert statuses(run.trials, own) == ["crashed"]
    assert statuses(run.trials, TWO) == ["ok"]


def test_data_that_nobody_knows_are_bad_usage_and_nothing_is_kept(tmp_path: Path) -> None:
    def plays(request: Request) -> Play:
        return (
            Play(happens=lambda actor: actor.say("crashed", "has no 'mnits'")) if request.task == "prepare" else Play()
        )

    bench = Bench(tmp_path, CELLS, plays)
    with pytest.raises(UsageError, match="data 'digits' is not available: has no 'mnits'"):
        bench.start()
    assert not bench.path.exists()


def test_what_is_unsupported_is_not_tried_in_later_blocks(tmp_path: Path) -> None:
    refuse = Play("build", lambda actor: actor.say("unsupported", "no GPU here"))
    listening = Quiet()
    bench = Bench(tmp_path, CELLS, only(TWO, refuse), sweep={"trials": 3}, progress=listening)
    run = bench.start()
    assert statuses(run.trials, TWO) == ["unsupported"]
    assert statuses(run.trials, THREE) == ["ok"] * 3
    assert bench.zygote.trials().count(TWO.cell_id) == 1
    assert (listening.done, listening.total) == (7, 7)


def refused_for_now(times: int) -> Play:
    """A trial whose launcher has no place for it, so often."""
    left = [times]

    def refuse(actor: Actor) -> None:
        if left[0]:
            left[0] -= 1
            outcome = Outcome(status="unsupported", reason="1 of 2 hosts joined", may_pass=True)
            actor.channel.send(Report(outcome=outcome))
            actor.end(0)

    return Play("build", refuse)


def test_what_is_refused_for_a_reason_that_may_pass_is_tried_in_later_blocks(tmp_path: Path) -> None:
    listening = Quiet()
    run = Bench(tmp_path, CELLS, only(TWO, refused_for_now(1)), sweep={"trials": 3}, progress=listening).start()
    assert statuses(run.trials, TWO) == ["unsupported", "ok", "ok"]
    assert [record.may_pass for record in run.trials if record.cell == TWO] == [True, False, False]
    assert (listening.done, listening.total) == (9, 9)
    assert run.left == 0


def test_a_resumed_run_tries_again_what_was_refused_for_a_reason_that_may_pass(tmp_path: Path) -> None:
    bench = Bench(tmp_path, CELLS, only(TWO, refused_for_now(2)), sweep={"trials": 2})
    bench.start()
    assert statuses(load_run(bench.path).trials, TWO) == ["unsupported", "unsupported"]
    again = bench.resume()
    found = [record for record in again.trials if record.cell == TWO]
    assert [(record.status, record.block, record.attempt) for record in found] == [
        ("unsupported", 0, 1),
        ("unsupported", 1, 1),
        ("ok", 0, 2),
        ("ok", 1, 2),
    ]
    assert again.complete


@pytest.mark.parametrize(("launcher", "tasks"), [("local", ["prepare", "trial"]), ("attach", ["trial"])])
def test_data_are_prepared_here_only_for_trials_that_run_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launcher: str, tasks: list[str]
) -> None:
    monkeypatch.setattr("harness.run.runner.open_launchers", lambda *_: None)  # which would wait for hosts to join
    monkeypatch.setattr(launchers()["attach"], "fork_server_for", lambda _, zygote: zygote)
    bench = Bench(tmp_path, [TWO], sweep={"launcher": launcher})
    bench.start()
    assert [request.task for request in bench.zygote.spawned] == tasks


def test_files_of_several_numbers_are_written_beside_each_other_once_the_first_has_made_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.run.runner.usable_cores", lambda: 2)
    meet, met = threading.Barrier(2, timeout=20), []

    def plays(request: Request) -> Play:
        def waits(_: Actor) -> None:
            assert request.cell.data_files is not None
            if request.cell.data_files.shards > 1:
                meet.wait()
            met.append(request.cell.data_files.shards)

        return Play(happens=waits) if request.task == "prepare" else Play()

    cells = [cell(shards=number) for number in (1, 2, 3)]
    run = Bench(tmp_path, cells, plays).start()
    assert met[0] == 1
    assert sorted(met) == [1, 2, 3]
    assert {record.status for record in run.trials} == {"ok"}


def test_a_base_case_that_is_unsupported_is_not_tried_in_later_blocks_either(tmp_path: Path) -> None:
    refuse = Play("build", lambda actor: actor.say("unsupported", "needs a strategy"))
    bench = Bench(tmp_path, CELLS, only(BASE, refuse), sweep={"trials": 3})
    run = bench.start()
    assert statuses(run.trials, BASE) == ["unsupported"]
    assert statuses(run.trials, TWO) == ["ok"] * 3


def test_an_unsupported_base_case_is_tried_once_though_several_groups_have_it(tmp_path: Path) -> None:
    refuse = Play("build", lambda actor: actor.say("unsupported", "needs a strategy"))
    run = Bench(tmp_path, CELLS, only(BASE, refuse), sweep={"live_trials": 2}).start()
    assert statuses(run.trials, BASE) == ["unsupported"]


def test_a_crash_is_tried_again_in_the_next_block(tmp_path: Path) -> None:
    bench = Bench(tmp_path, CELLS, only(TWO, Play(1, lambda actor: actor.end(-11))), sweep={"trials": 2})
    assert statuses(bench.start().trials, TWO) == ["crashed", "crashed"]


def test_cells_whose_data_cannot_be_prepared_are_unsupported_and_no_trial_is_started(tmp_path: Path) -> None:
    def plays(request: Request) -> Play:
        fails = request.task == "prepare" and request.cell.data == "digits"
        return Play(happens=lambda actor: actor.say("unsupported", "no room")) if fails else Play()

    other = cell(data="synthetic")
    listening = Quiet()
    bench = Bench(tmp_path, [*CELLS, other], plays, sweep={"trials": 2}, progress=listening)
    run = bench.start()
    assert bench.zygote.trials() == [other.cell_id] * 2
    for item in CELLS:
        [record] = [record for record in run.trials if record.cell == item]
        assert (record.status, record.reason) == ("unsupported", "data 'digits' is not available: no room")
    assert (listening.done, listening.total) == (5, 5)


def test_data_whose_module_hangs_hold_the_sweep_no_longer_than_a_trial_may(tmp_path: Path) -> None:
    def plays(request: Request) -> Play:
        return Play(happens=Actor.hang) if request.task != "trial" else Play()

    own = cell(data="my.data:examples")
    [record] = Bench(tmp_path, [own], plays, sweep={"timeout": 0.3}).start().trials
    assert (record.status, record.reason) == (
        "unsupported",
        "data 'my.data:examples' is not available: no sign of life within 0.3 s during start",
    )


def test_data_are_prepared_once_for_each_data_set_before_any_trial(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [*CELLS, cell(data="synthetic")], sweep={"trials": 2})
    bench.start()
    prepared = [(request.task, request.cell.data) for request in bench.zygote.spawned[:2]]
    assert prepared == [("prepare", "digits"), ("prepare", "synthetic")]
    assert all(request.task == "trial" for request in bench.zygote.spawned[2:])


def test_data_that_a_model_by_name_wants_too_and_may_refuse_are_made_ready_for_ones_own(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [*CELLS, cell(model="my.models:net")])
    bench.start()
    assert [request.cell.model for request in bench.zygote.spawned if request.task == "prepare"] == ["my.models:net"]


def test_a_virtual_replica_has_one_thread_and_the_other_pool_is_left_to_the_trials_host(tmp_path: Path) -> None:
    eight = cell(replicas=8, global_batch_size=256)
    gpu = cell(device="gpu")
    bench = Bench(tmp_path, [eight, gpu])
    bench.start()
    requests = {request.cell: request for request in bench.zygote.spawned if request.task == "trial"}
    assert (requests[eight].intra_op_threads, requests[eight].inter_op_threads) == (1, 0)
    assert (requests[gpu].intra_op_threads, requests[gpu].inter_op_threads) == (0, 0)


def noisy() -> Plays:
    """Trials of one cell differ from each other by some per cent."""
    numbers = itertools.count()

    def plays(_: Request) -> Play:
        spread = 0.01 * (next(numbers) % 5)
        return Play(seconds=lambda _: 0.1 * (1 + spread))

    return plays


def test_a_second_stage_is_planned_from_the_first_ones_spread_and_sealed(tmp_path: Path) -> None:
    bench = Bench(tmp_path, CELLS, noisy(), sweep={"trials": 3, "half_width": 0.02, "max_trials": 6})
    bench.start()
    stored = load_run(bench.path)
    one, two = stored.manifest.plans
    assert (one.stage, two.stage, two.first_block) == (1, 2, 3)
    assert len(two.sha256) == 64
    assert two.blocks
    assert len(two.blocks) <= 3
    planned = sum(len(group) for plan in (one, two) for block in plan.blocks for group in block)
    assert len(stored.trials) == planned
    assert max(t.block for t in stored.trials) == 2 + len(two.blocks)


def test_without_a_half_width_there_is_one_stage(tmp_path: Path) -> None:
    bench = Bench(tmp_path, CELLS, noisy(), sweep={"trials": 3})
    bench.start()
    assert len(load_run(bench.path).manifest.plans) == 1


def test_a_run_that_was_killed_between_its_stages_is_not_complete(tmp_path: Path) -> None:
    bench = Bench(tmp_path, CELLS, noisy(), sweep={"trials": 3, "half_width": 0.02, "max_trials": 6})
    run = bench.start()
    assert run.complete
    manifest = load_run(bench.path).manifest
    with RunStore.open_for_resume(bench.path) as store:
        store.update_manifest(manifest.model_copy(update={"plans": manifest.plans[:1], "status": "running"}))
    lines = (bench.path / "trials.jsonl").read_text().splitlines()
    (bench.path / "trials.jsonl").write_text("\n".join(lines[:9]) + "\n")
    run.trials = load_run(bench.path).trials
    run.store.manifest = load_run(bench.path).manifest
    assert run.left == 0
    assert not run.complete
    bench.resume()
    assert load_run(bench.path).manifest.plans == manifest.plans


def test_threads_are_those_of_the_cell_or_of_a_run_in_which_they_were_a_setting() -> None:
    plain = cell(device="virtual-cpu")
    threads = [
        request_for(of, sweep_from({"intra_op_threads": asked}), Path()).intra_op_threads
        for of, asked in ((plain, 0), (plain.model_copy(update={"intra_op_threads": 3}), [0, 3]), (plain, 2))
    ]
    assert threads == [1, 3, 2]


# preloaded processes


def test_trials_say_which_preloaded_process_they_come_from_and_a_due_one_is_replaced_between_blocks(
    tmp_path: Path,
) -> None:
    def due_in_the_second_block(_: Request) -> Play:
        bench.zygote.due = len(bench.zygote.trials()) > 2
        return Play()

    bench = Bench(tmp_path, [BASE, TWO], due_in_the_second_block, {"trials": 3})
    bench.start()
    of_block: dict[int, set[int]] = {}
    for trial in load_run(bench.path).trials:
        assert trial.zygote is not None
        of_block.setdefault(trial.block, set()).add(trial.zygote.number)
    first, second, third = (of_block[block] for block in range(3))
    assert all(len(numbers) == 1 for numbers in (first, second, third))
    assert first == second
    assert third != second
    # nobody is measured while another one is started
    told = [what for _, what in bench.zygote.diary]
    place = told.index("is launched")
    assert told[place : place + 2] == ["is launched", "is ready"]
    assert told.count("is launched") == 1
