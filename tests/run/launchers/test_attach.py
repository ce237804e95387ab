"""Real trials on hosts that joined by the printed command, and what becomes of them when a host goes away."""

import contextlib
import io
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.environment import usable_cores
from harness.protocol.messages import LauncherOptions, Request
from harness.record.trial import TrialRecord
from harness.run.interrupts import Interrupts
from harness.run.launchers import launchers
from harness.run.launchers.agents.identity import own_identity
from harness.run.launchers.agents.session import Session
from harness.run.launchers.attach import Attach
from harness.run.launchers.base import Placement
from harness.run.network import loopback_available
from harness.run.process.startup import Startup
from harness.run.process.zygote import Zygote
from harness.run.turns.live import Ended, LiveTrial, Slot
from tests.cli.real import ON_ALL_CORES, ROOT, SMALL, only_run
from tests.cli.real import start as start_harness
from tests.preloaded import handed_in
from tests.record.examples import cell
from tests.run.launchers.agents.conftest import TOKEN, comes_true

PAIR = {"strategy": "multi_worker_mirrored", "workers": 2, "replicas": 1, "data": "synthetic", "model": "mlp"}
ALONE = {"strategy": "none", "replicas": 1, "data": "synthetic", "model": "mlp", "global_batch_size": 32}
COMMAND = re.compile(r"^  (HARNESS_TOKEN=\S+ python -m harness worker .*)$", re.MULTILINE)
NOBODY_S = 0.3


def request_of(timeout_s: float = 120.0, **keys: Any) -> Request:
    """A trial that agents are to run."""
    options = LauncherOptions(join_timeout_s=timeout_s)
    return Request(
        cell=cell(**keys),
        seed=1,
        data_dir="",
        window_s=0.02,
        intra_op_threads=1,
        inter_op_threads=4,
        launcher="attach",
        launcher_options=options,
    )


def live(zygote: Zygote, request: Request) -> LiveTrial:
    """A trial that has not started."""
    return LiveTrial(request.cell, Slot("r", 0, "g", 0, 1, "none"), zygote, request, 60, Interrupts())


def measured(trial: LiveTrial, windows: int = 2) -> TrialRecord:
    """The record of a short trial."""
    with contextlib.suppress(Ended):
        trial.start()
        trial.set_up()
        trial.measure_from(0)
        for number in range(windows):
            trial.take_turn(number)
        trial.finish()
    return trial.record()


@pytest.fixture(scope="module")
def workers() -> Iterator[tuple[Zygote, list["subprocess.Popen[bytes]"]]]:
    """Two agents with TensorFlow that have joined a run, and the run's own preloaded process, which is not needed.

    One for all tests; the last of them kills an agent.
    """
    launcher = launchers()["attach"]
    assert isinstance(launcher, Attach)
    with pytest.MonkeyPatch.context() as patch, handed_in(), contextlib.closing(Zygote()) as zygote:
        patch.setenv("HARNESS_TOKEN", TOKEN)
        session = launcher.session(request_of(**PAIR), zygote)
        started = [
            subprocess.Popen(
                [sys.executable, "-m", "harness", "worker", "--connect", session.meeting.address(), "--token", TOKEN]
            )
            for _ in range(2)
        ]
        try:
            yield zygote, started
        finally:
            for process in started:
                process.kill()
                process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("isolate", [True, False])
def test_agents_of_this_machine_are_isolated_unless_that_is_not_wanted(
    workers: tuple[Zygote, list["subprocess.Popen[bytes]"]], isolate: bool
) -> None:
    zygote, _ = workers
    launcher = launchers()["attach"]
    placement = launcher.place(request_of(**PAIR).model_copy(update={"isolate": isolate}), zygote)
    wanted = isolate and loopback_available() is None
    assert placement.isolated == wanted
    assert all(bool(seat.member.namespace) == wanted for seat in placement.seats)
    placement.release()


@pytest.mark.skipif(loopback_available() is not None, reason="the kernel refuses network namespaces")
def test_what_a_trial_leaves_of_a_network_is_the_next_ones_and_those_that_live_together_have_one_each() -> None:
    launcher, request = Attach(), request_of(**PAIR)
    agents: list[Any] = [SimpleNamespace(identity=own_identity(), address="127.0.0.1")] * 2
    session = Session("attach", "", request.launcher_options, io.StringIO())

    def placed() -> Placement:
        placement = launcher._private_placement(request, agents, session)
        assert placement is not None
        return placement

    first, beside = placed(), placed()
    first.release()
    after = placed()
    spaces = [{seat.member.namespace for seat in placement.seats} for placement in (first, beside, after)]
    assert spaces[0] == spaces[2] != spaces[1]
    assert first.seats[0].member.cluster != after.seats[0].member.cluster, "no port is used again"
    session.meeting.close()
    launcher.end(session)
    assert not any(Path(*space).exists() for space in spaces)


@pytest.mark.slow
def test_two_workers_on_two_agents_pass_the_gate_and_the_survivor_goes_on_when_one_is_killed(
    workers: tuple[Zygote, list["subprocess.Popen[bytes]"]],
) -> None:
    zygote, processes = workers
    record = measured(live(zygote, request_of(**PAIR)))
    assert (record.status, record.reason) == ("ok", None)
    assert record.cluster is not None
    assert (record.cluster.launcher, len(record.cluster.members)) == ("attach", 2)
    assert record.hosts == (socket.gethostname(),)
    assert zygote.hosts[socket.gethostname()]["cpu.usable_cores"] == usable_cores()
    assert record.checks.replicas_agree

    trial = live(zygote, request_of(**PAIR))
    trial.start()
    trial.set_up()
    processes[1].send_signal(signal.SIGKILL)
    with contextlib.suppress(Ended):
        for number in range(10_000):
            trial.take_turn(number)
    lost = trial.record()
    assert lost.status == "crashed"
    assert re.search(r"worker [01]: agent \d on .* is gone", str(lost.reason)), lost.reason

    # those that are missing are waited for, and then named in the record; a trial of one host goes on
    launcher = launchers()["attach"]
    assert isinstance(launcher, Attach)
    options = request_of(**PAIR).launcher_options
    session = launcher._sessions[options]
    session.launcher_options = LauncherOptions(join_timeout_s=NOBODY_S)
    missing = measured(live(zygote, request_of(**PAIR)))
    assert (missing.status, missing.may_pass) == ("unsupported", True)
    assert "1 of 2 hosts" in str(missing.reason)
    assert "is gone" in str(missing.reason)
    alone = measured(live(zygote, request_of(**ALONE)))
    assert (alone.status, alone.reason) == ("ok", None)
    assert (alone.host, alone.hosts) == (socket.gethostname(), (socket.gethostname(),))


def test_nobody_who_comes_is_a_record_that_says_how_many_are_missing_and_where_they_were_to_join() -> None:
    with contextlib.closing(Zygote()) as zygote:
        records = [measured(live(zygote, request_of(NOBODY_S, **keys))) for keys in (PAIR, ALONE)]
    assert [record.status for record in records] == ["unsupported", "unsupported"]
    assert re.search(
        rf"launcher 'attach': 0 of 2 hosts joined at 127\.0\.0\.1:\d+ within {NOBODY_S:g} s; 2 missing",
        str(records[0].reason),
    )


def test_a_port_in_use_is_a_record_with_the_reason() -> None:
    with contextlib.closing(Zygote()) as zygote:
        launcher = Attach()
        first = launcher.session(request_of(NOBODY_S, **PAIR), zygote)
        taken = LauncherOptions(join_timeout_s=NOBODY_S, listen=first.meeting.address())
        request = request_of(NOBODY_S, **PAIR).model_copy(update={"launcher_options": taken})
        record = measured(live(zygote, request))
    assert record.status == "unsupported"
    assert "listen: nothing can listen at" in str(record.reason)
    assert "in use" in str(record.reason)


def test_a_token_that_could_be_guessed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_TOKEN", "secret")
    with contextlib.closing(Zygote()) as zygote:
        record = measured(live(zygote, request_of(NOBODY_S, **PAIR)))
    assert "HARNESS_TOKEN has 6 characters, expected at least 16" in str(record.reason)


def test_a_side_with_an_environment_of_its_own_is_refused_with_the_remedy() -> None:
    with contextlib.closing(Zygote(Startup({"TF_ENABLE_ONEDNN_OPTS": "0"}))) as zygote:
        record = measured(live(zygote, request_of(NOBODY_S, **PAIR)))
    assert record.status == "unsupported"
    assert "needs launcher 'local'" in str(record.reason)


@pytest.mark.slow
def test_the_printed_command_works_as_it_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HARNESS_TOKEN", raising=False)  # that of the agents which other tests of this file share
    sweep = start_harness(
        "sweep",
        "--launcher=attach",
        "--strategy=multi_worker_mirrored",
        "--workers=2",
        "--replicas=1",
        *SMALL,
        ON_ALL_CORES,
        folder=tmp_path,
    )
    said = ""
    assert sweep.stderr is not None
    while not COMMAND.search(said):
        line = sweep.stderr.readline()
        assert line, said
        said += line
    found = COMMAND.search(said)
    assert found is not None
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    hosts = [
        subprocess.Popen(["sh", "-c", found[1]], env=environment, cwd=tmp_path, stdout=subprocess.DEVNULL)
        for _ in range(2)
    ]
    _, error = sweep.communicate(timeout=180)
    assert sweep.returncode == 0, error
    assert [host.wait(10) for host in hosts] == [0, 0]
    trials = only_run(tmp_path / "results").trials
    assert {(trial.cell.strategy, trial.status) for trial in trials} == {
        ("none", "ok"),
        ("multi_worker_mirrored", "ok"),
    }
    assert comes_true(lambda: all(host.poll() is not None for host in hosts))
    described = only_run(tmp_path / "results").manifest.hosts
    assert list(described) == [socket.gethostname()]
    assert described[socket.gethostname()].facts["cpu.usable_cores"] == usable_cores()
    assert {trial.hosts for trial in trials} == {(socket.gethostname(),)}
