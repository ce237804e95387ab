"""What several processes report becomes the report of one trial."""

import contextlib
import socket
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from harness.protocol.channel import Channel
from harness.protocol.messages import Membership, Outcome, Report, Turn, Usage, WindowTimes
from harness.record.checks import Checks
from harness.record.trial import Executed
from harness.run.launchers import Placement, Seat
from harness.run.process.cluster import ClusterChannel, ClusterChild
from harness.run.process.cluster_report import Merged, Process
from harness.run.process.waiting import awaited_words
from harness.run.process.zygote import ForkedChild, Zygote

PROVED = Checks(
    reduction=True, update=True, replicas_agree=True, updates_applied=4, updates_scheduled=4, loss_finite=True
)
CLUSTER = {"worker": ["127.0.0.1:1", "127.0.0.1:2"]}
SERVED = {"chief": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"], "ps": ["127.0.0.1:3"]}


class Told(Process):
    """A process that only remembers what it was told."""

    def tell(self, turn: Turn) -> None:
        """Remember it."""
        self.__dict__.setdefault("heard", []).append(turn.do)


def merged(cluster: dict[str, list[str]]) -> Merged:
    """The trial of a cluster whose processes have just started."""
    zygote, spawned = Zygote(), object.__new__(ForkedChild)
    members = [
        Membership(task=task, index=i, cluster=cluster)  # type: ignore[arg-type]
        for task, addresses in cluster.items()
        for i in range(len(addresses))
    ]
    seats = [Seat(member, zygote) for member in members]
    return Merged([Told(seat, spawned) for seat in seats], Placement(seats), "local")


def window(seconds: float, cpu: float = 0.1) -> Report:
    """A window of ten steps."""
    times = WindowTimes(
        round=3, steps=10, seconds=seconds, cpu_seconds=cpu, waiting_seconds=1.0, waiting_cpu_seconds=0.0
    )
    return Report(window=times)


def ended(status: str = "ok", reason: str | None = None, **more: object) -> Report:
    """How a process says that it ended."""
    values = {"status": status, "reason": reason, "checks": PROVED, "peak_memory_bytes": 100, **more}
    return Report(outcome=Outcome.model_validate(values))


def tell(trial: Merged, *reports: Report) -> list[Report]:
    """Each process's next report, in order; what the trial reports then."""
    for process, report in zip(trial.processes, reports, strict=True):
        trial.take_in(process, report)
    found, trial.out[:] = list(trial.out), []
    return found


def test_a_trial_is_ready_when_all_its_processes_are() -> None:
    trial = merged(CLUSTER)
    trial.take_in(trial.processes[1], Report(ready=True, sync_seconds=0.2, steps=4))
    assert trial.out == []
    trial.take_in(trial.processes[0], Report(ready=True, sync_seconds=0.1, steps=4))
    assert trial.out == [Report(ready=True, sync_seconds=0.2, steps=4)]


@pytest.mark.parametrize(("second", "labels"), [(["b"], ["a", "b"]), ([], [])])
def test_the_batches_of_all_workers_are_on_record_in_their_order_or_those_of_none(
    second: list[str], labels: list[str]
) -> None:
    executed = {"fingerprint": "f", "labels": ["a"]}
    [report] = tell(merged(CLUSTER), ended(executed=executed), ended(executed={"labels": second}))
    assert report.outcome is not None
    assert report.outcome.executed == Executed(fingerprint="f", labels=labels)


def test_a_window_takes_as_long_as_the_slowest_worker_and_every_workers_time_is_kept() -> None:
    [report] = tell(merged(CLUSTER), window(1.0, 0.4), window(1.5, 0.5))
    assert report.window is not None
    assert (report.window.seconds, report.window.workers) == (1.5, [1.0, 1.5])
    assert report.window.cpu_seconds == pytest.approx(0.9)


def test_what_every_process_has_said_is_taken_in_though_the_time_for_it_is_over() -> None:
    """As it is after Ctrl-Z and fg, and for one that is ended by Ctrl-C."""
    trial = merged(CLUSTER)
    with contextlib.ExitStack() as ends:
        for process, seconds in zip(trial.processes, (1.0, 1.5), strict=True):
            ours, theirs = (Channel(ends.enter_context(end)) for end in socket.socketpair())
            process.child = SimpleNamespace(channel=ours)  # type: ignore[assignment]
            theirs.send(Report(phase="steady"))
            theirs.send(window(seconds))
        channel = ClusterChannel(trial)
        assert channel.receive_line(0.0) == Report(phase="steady").model_dump_json(exclude_none=True)
        taken = Report.model_validate_json(channel.receive_line(0.0) or "").window
        assert taken is not None
        assert taken.workers == [1.0, 1.5]
        assert channel.receive_line(0.0) is None


def test_the_servers_processor_time_of_a_window_is_part_of_it() -> None:
    trial = merged(SERVED)
    assert tell(trial, Report(ready=True, steps=4), Report(ready=True), Report(ready=True)) == []
    for server, used in zip(trial.servers, (5.0, 7.0), strict=True):
        trial.take_in(server, Report(usage=Usage(cpu_seconds=used, system_seconds=1.0, page_faults=100)))
    assert trial.out.pop().ready
    trial.take_in(trial.processes[0], window(1.0, 0.25))
    assert trial.out == []
    for server, used in zip(trial.servers, (5.5, 7.25), strict=True):
        trial.take_in(server, Report(usage=Usage(cpu_seconds=used, system_seconds=1.25, page_faults=107)))
    [report] = trial.out
    assert report.window is not None
    assert report.window.cpu_seconds == pytest.approx(0.25 + 0.5 + 0.25)
    assert (report.window.system_seconds, report.window.page_faults) == (0.5, 14)


def test_a_trial_ends_well_when_all_workers_did_and_hold_the_same_variables() -> None:
    [report] = tell(merged(CLUSTER), ended(digests={"weight 'a'": "1"}), ended(digests={"weight 'a'": "1"}))
    assert report.outcome is not None
    assert report.outcome.cluster is not None
    assert (report.outcome.status, report.outcome.peak_memory_bytes) == ("ok", 200)
    assert [member.name for member in report.outcome.cluster.members] == ["worker 0", "worker 1"]


def test_workers_that_hold_different_weights_are_a_wrong_result_that_names_the_variable() -> None:
    [report] = tell(merged(CLUSTER), ended(digests={"weight 'a'": "1"}), ended(digests={"weight 'a'": "2"}))
    assert report.outcome is not None
    assert report.outcome.status == "wrong_result"
    assert report.outcome.checks.replicas_agree is False
    assert report.outcome.reason == "replicas_agree: weight 'a' on worker 1 differs from that on worker 0"


def test_a_failure_names_the_process_and_a_telling_one_comes_before_a_lost_connection() -> None:
    [report] = tell(merged(CLUSTER), ended("crashed", "UnavailableError: gone"), ended("wrong_result", "update: off"))
    assert report.outcome is not None
    assert (report.outcome.status, report.outcome.reason) == ("wrong_result", "worker 1: update: off")


def test_a_refusal_that_every_process_gives_is_said_once() -> None:
    [report] = tell(merged(CLUSTER), ended("unsupported", "no NCCL"), ended("unsupported", "no NCCL"))
    assert report.outcome is not None
    assert report.outcome.reason == "no NCCL"


def test_a_failure_on_a_network_that_broke_names_the_network_first() -> None:
    trial = merged(CLUSTER)
    trial.placement = replace(trial.placement, trouble=lambda: "the process that holds its network is gone")
    [report] = tell(trial, ended("crashed", "UnavailableError: failed to connect"), ended("crashed", "the same"))
    assert report.outcome is not None
    assert report.outcome.reason is not None
    assert report.outcome.reason.startswith("the process that holds its network is gone; worker 0: Unavailable")


def test_who_has_not_reported_is_named_with_where_it_is() -> None:
    trial = merged(CLUSTER)
    trial.take_in(trial.processes[0], Report(ready=True, steps=4))
    trial.take_in(trial.processes[1], Report(phase="build"))
    assert awaited_words(trial) == "worker 1 in build has not reported"
    trial.take_in(trial.processes[1], Report(ready=True, steps=4))
    assert awaited_words(trial) == ""


def test_a_sign_of_life_of_any_process_is_the_trials() -> None:
    trial = merged(CLUSTER)
    trial.take_in(trial.processes[1], Report(alive=True))
    assert trial.out == [Report(alive=True)]


@pytest.mark.parametrize("victim", [0, 1])
def test_a_worker_that_is_lost_ends_the_trial_in_its_own_phase_wherever_the_others_are(victim: int) -> None:
    trial = merged(CLUSTER)
    for index, process in enumerate(trial.processes):
        trial.take_in(process, Report(phase="first_step" if index == victim else "build"))
    trial.end_in_phase_of(trial.processes[victim])
    assert trial.out[-1] == Report(phase="first_step")


@pytest.mark.parametrize("starved", [True, False])
def test_a_trial_is_ended_for_want_of_memory_where_the_process_that_went_was(starved: bool) -> None:
    trial = ClusterChild(merged(CLUSTER))
    assert not trial.out_of_memory
    there: Any = SimpleNamespace(out_of_memory=starved)
    trial.channel.lost = replace(trial.merged.processes[1], child=there)
    assert trial.out_of_memory == starved


def test_a_worker_that_is_lost_in_a_turn_ends_it_in_the_phase_of_that_turn() -> None:
    trial = merged(CLUSTER)
    assert tell(trial, Report(phase="warmup"), Report(phase="check")) == [Report(phase="warmup")]
    trial.asked = "window"
    trial.end_in_phase_of(trial.processes[1])
    assert trial.out == []


def test_what_the_others_report_once_a_server_is_lost_is_not_why_the_trial_ended() -> None:
    trial = merged(SERVED)
    for process in trial.processes[:2]:
        trial.take_in(process, ended("crashed", "UnavailableError: failed to connect"))
    trial.give_up()
    assert [bool(report.outcome) for report in trial.out[-1:]] == [True]
    trial.end_in_phase_of(trial.processes[2])
    assert [report for report in trial.out if report.outcome] == []


def test_in_a_window_the_server_is_named_only_once_the_workers_have_reported() -> None:
    trial = merged(SERVED)
    tell(trial, Report(ready=True, steps=4), Report(ready=True), Report(ready=True))
    for server in trial.servers:
        trial.take_in(server, Report(usage=Usage(cpu_seconds=1.0)))
    trial.asked = "window"
    assert awaited_words(trial) == "coordinator in start has not reported"
    trial.take_in(trial.processes[0], window(1.0))
    assert awaited_words(trial) == "worker 0 in start and ps 0 in start have not reported"


def test_at_the_end_those_without_an_outcome_are_named_and_of_many_the_first_few() -> None:
    trial = merged({"worker": [f"127.0.0.1:{port}" for port in range(1, 8)]})
    trial.asked = "finish"
    trial.take_in(trial.processes[0], ended())
    words = awaited_words(trial)
    assert words.startswith("worker 1 in start, worker 2 in start, ")
    assert words.endswith(" and 2 more have not reported")
