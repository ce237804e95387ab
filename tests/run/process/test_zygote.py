"""The real fork server without TensorFlow: how trials end, what a kill leaves, and how it restarts."""

import errno
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import psutil
import pytest

from harness.errors import Interrupted
from harness.files import LONGEST_LOG
from harness.protocol.control import Death
from harness.protocol.messages import Report, Request
from harness.run.data import preparation
from harness.run.process.leavings import Leavings
from harness.run.process.renewal import renew
from harness.run.process.startup import Startup
from harness.run.process.zygote import RENEWED_AFTER, ForkedChild, Zygote, ZygoteError
from tests.run.process.zygotes import HANGS, WITHOUT_TENSORFLOW, gone, pid_of, request, spawn

LEAVES_A_DAEMON = 101
PRINTS_WITHOUT_END = 102
STREAMS = {"none": 103, "without a flush": 104, "closed": 105}
"""What a trial makes of its standard output and error."""


def without_tensorflow(folder: Path) -> str:
    """The path of what starts WITHOUT_TENSORFLOW as an interpreter would a zygote."""
    script, path = folder / "zygote.py", folder / "python"
    script.write_text(WITHOUT_TENSORFLOW)
    # not as the script's first line, which cannot name an interpreter below a folder with a space
    path.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(script))} "$@"\n')
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def python(tmp_path: Path) -> str:
    return without_tensorflow(tmp_path)


@pytest.fixture
def zygote(python: str) -> Iterator[Zygote]:
    with Zygote(Startup(python=python)) as started:
        yield started


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """One for all tests that leave it as it was, without a trial."""
    with Zygote(Startup(python=without_tensorflow(tmp_path_factory.mktemp("shared")))) as started:
        yield started


def wait_until_cut(child: ForkedChild) -> None:
    deadline = time.monotonic() + 20
    while b"bytes of this log are left out" not in child._stderr.read_bytes() and time.monotonic() < deadline:
        time.sleep(0.05)


def daemon_of(child: ForkedChild) -> psutil.Process:
    """What a trial with LEAVES_A_DAEMON leaves."""
    line = child.channel.receive_line(10)
    assert line is not None
    outcome = Report.model_validate_json(line).outcome
    assert outcome is not None
    return psutil.Process(int(outcome.reason or ""))


def running(process: psutil.Process) -> bool:
    """Whether a process has not ended."""
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def test_versions_are_told_at_the_start(shared: Zygote) -> None:
    assert shared.versions == {"tensorflow": "none"}
    assert shared.alive


def test_who_asks_to_stop_while_a_dead_fork_server_starts_again_does_not_wait_for_its_import(
    zygote: Zygote, tmp_path: Path
) -> None:
    def asked_to_stop() -> None:
        raise Interrupted("interrupted")

    os.kill(zygote._process.pid, signal.SIGKILL)  # type: ignore[union-attr]
    (tmp_path / "zygote.py").write_text("import time\ntime.sleep(30)\n")  # and ends without having been ready
    zygote.check = asked_to_stop
    while zygote.alive:
        time.sleep(0.01)
    with pytest.raises(Interrupted):
        spawn(zygote, 0)


def test_a_trial_that_leaves_normally_has_status_zero(shared: Zygote) -> None:
    child = spawn(shared, 0)
    assert child.wait() == 0
    assert child.stderr_tail() == "the trial says 0\n"


def test_a_process_that_a_trial_leaves_is_ended_once_no_trial_lives_and_that_is_said(
    zygote: Zygote, capfd: pytest.CaptureFixture[str]
) -> None:
    other = spawn(zygote, HANGS)
    child = spawn(zygote, LEAVES_A_DAEMON)
    daemon = daemon_of(child)
    assert child.wait(10) == 0
    assert running(daemon)  # it may be the other trial's
    other.kill()
    other.wait(10)
    assert gone(daemon.pid)
    assert "harness: ended what mnist_cnn had left running: python" in capfd.readouterr().err


def test_of_several_processes_that_were_left_their_number_is_said_and_of_several_models_none_is_accused(
    zygote: Zygote, capfd: pytest.CaptureFixture[str]
) -> None:
    others = [spawn(zygote, HANGS), spawn(zygote, HANGS, model="mlp")]
    children = [spawn(zygote, LEAVES_A_DAEMON) for _ in range(2)]
    assert [child.wait(10) for child in children] == [0, 0]
    for other in others:
        other.kill()
    assert "harness: ended what a process had left running: 2 processes 'python" in capfd.readouterr().err
    spawn(zygote, LEAVES_A_DAEMON, model="mlp").wait(10)
    assert "harness: ended what mlp had left running: python" in capfd.readouterr().err


def test_what_a_trial_leaves_and_this_user_may_not_end_is_named_as_what_stays(
    capfd: pytest.CaptureFixture[str],
) -> None:
    leavings = Leavings()
    leavings.begun(request(HANGS))
    leavings.tell(Death(number=0, status=0, left=["cat"], stays=("sudo", "sudo")), of_last=True)
    assert capfd.readouterr().err.splitlines() == [
        "harness: ended what mnist_cnn had left running: cat",
        "harness: mnist_cnn has left running what this user may not end, so that it stays: 2 processes 'sudo'",
    ]


def test_a_process_that_a_trial_leaves_is_ended_with_a_fork_server_whose_last_words_nobody_reads(
    zygote: Zygote,
) -> None:
    spawn(zygote, HANGS)
    daemon = daemon_of(spawn(zygote, LEAVES_A_DAEMON))
    assert running(daemon)
    zygote.stop()  # as an interrupt does, while that the trials are born is still unread
    assert gone(daemon.pid)


def test_a_path_that_is_no_text_is_refused_and_costs_no_other_trial(shared: Zygote) -> None:
    other = spawn(shared, HANGS)
    with pytest.raises(ZygoteError, match=r"a path that trials are told .* has bytes that are no UTF-8"):
        shared.spawn(request(0, data_dir=os.fsdecode(b"/data \xff")))
    assert other.status is None
    assert spawn(shared, 0).wait() == 0
    other.kill()


def test_a_trial_for_which_no_more_files_may_be_open_is_refused_and_costs_no_other(
    shared: Zygote, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused() -> NoReturn:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    other = spawn(shared, HANGS)
    with monkeypatch.context() as patched:
        patched.setattr("socket.socketpair", refused)
        with pytest.raises(ZygoteError, match=r"^no socket for a process: Too many open files; .* \(ulimit -n\)$"):
            shared.spawn(request(0))
    assert other.status is None
    assert spawn(shared, 0).wait() == 0
    other.kill()


def test_a_trial_that_raises_leaves_its_traceback(shared: Zygote) -> None:
    child = spawn(shared, 1)
    assert child.wait() == 1
    assert child.stderr_tail().endswith("ValueError: so be it\n")


@pytest.mark.parametrize("seed", STREAMS.values(), ids=STREAMS)
def test_a_trial_whose_streams_cannot_be_flushed_costs_no_other_one_and_its_log_says_how_it_ended(
    shared: Zygote, seed: int
) -> None:
    other = spawn(shared, HANGS)
    assert spawn(shared, seed).wait() == 0
    child = shared.spawn(request(seed, data_dir="raises"))
    assert child.wait() == 1
    assert child.stderr_tail().endswith("ValueError: so be it\n")
    assert other.status is None
    assert Path(shared.scratch).is_dir()
    assert spawn(shared, 0).wait() == 0
    other.kill()


def test_of_a_log_without_end_the_end_is_read(shared: Zygote) -> None:
    child = spawn(shared, 0)
    assert child.wait() == 0
    os.truncate(child._stderr, 2**40)
    with child._stderr.open("a") as log:
        log.write("\nlast words\n")
    assert child.stderr_tail().endswith("\nlast words\n")


def test_what_a_trial_prints_without_end_is_cut_while_it_prints_and_that_is_said_once(
    zygote: Zygote, capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        child = spawn(zygote, PRINTS_WITHOUT_END)
        wait_until_cut(child)
        child.kill()
        log = child._stderr.read_text()
        assert len(log) <= LONGEST_LOG
        assert log.startswith("the trial says 102\nstep 0\nstep 1\n")
        assert re.search(r"\n\[harness: [1-9][0-9,]* bytes of this log are left out\]\n", log)
        assert re.search(r"step \d{5,}\n", child.stderr_tail())
    said = re.findall(
        r"harness: mnist_cnn prints too much: [0-9,.]+ MiB of the log of a trial are left out", capfd.readouterr().err
    )
    assert len(said) == 1


def test_of_data_that_are_made_ready_and_print_without_end_the_data_are_named_and_a_trial_is_told_of_later(
    zygote: Zygote, capfd: pytest.CaptureFixture[str]
) -> None:
    def cut(*requests: Request) -> list[str]:
        children = [zygote.spawn(one) for one in requests]
        for child in children:
            wait_until_cut(child)
        for child in children:
            child.kill()
        return re.sub(r"[0-9,.]+ MiB", "all", capfd.readouterr().err).splitlines()

    digits, prose = (preparation(request(PRINTS_WITHOUT_END, data=data)) for data in ("digits", "prose"))
    left_out = "prints too much: all of the log of making data ready are left out"
    assert cut(digits) == [f"harness: data 'digits' {left_out}"]
    assert cut(digits) == []
    assert cut(digits, prose) == [f"harness: a process {left_out}"]
    of_trial = "prints too much: all of the log of a trial are left out; what a step prints is timed, too"
    assert cut(request(PRINTS_WITHOUT_END)) == [f"harness: mnist_cnn {of_trial}"]
    both = [request(PRINTS_WITHOUT_END, model=model) for model in ("mnist_cnn", "mlp")]
    assert cut(*both) == [f"harness: a process {of_trial}"]


def test_a_trial_has_no_log_of_another_open(shared: Zygote) -> None:
    one, two = spawn(shared, HANGS), spawn(shared, HANGS)
    files = {file.resolve().name for file in Path(f"/proc/{pid_of(shared, two)}/fd").iterdir()}
    assert two._stderr.name in files
    assert one._stderr.name not in files
    one.kill()
    two.kill()


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT, 40])
def test_a_trial_that_is_ended_by_a_signal_tells_which(shared: Zygote, number: int) -> None:
    assert spawn(shared, number).wait() == -number


@pytest.mark.parametrize(("number", "kills"), [(signal.SIGKILL, 1), (signal.SIGKILL, 0), (signal.SIGSEGV, 1)])
def test_a_trial_is_ended_for_want_of_memory_where_the_kernel_has_ended_a_process_for_it_in_its_life(
    shared: Zygote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kills: int
) -> None:
    vmstat = tmp_path / "vmstat"
    vmstat.write_text("oom_kill 3\n")
    monkeypatch.setattr("harness.run.process.memory.SOURCES", (vmstat,))
    child = spawn(shared, HANGS)
    vmstat.write_text(f"oom_kill {3 + kills}\n")
    child.signal(number)
    assert child.wait() == -number
    vmstat.write_text("oom_kill 9\n")
    assert child.out_of_memory == (number == signal.SIGKILL and kills > 0)


def test_several_trials_live_at_once_and_are_told_apart(shared: Zygote) -> None:
    one, two, three = (spawn(shared, HANGS) for _ in range(3))
    two.kill()
    assert (one.status, two.status, three.status) == (None, -signal.SIGKILL, None)
    assert gone(pid_of(shared, two))
    assert not gone(pid_of(shared, one), within_s=0.1)
    one.kill()
    three.kill()


def test_a_trial_that_does_not_end_is_waited_for_only_so_long(shared: Zygote) -> None:
    child = spawn(shared, HANGS)
    assert child.wait(0.2) is None
    assert not gone(pid_of(shared, child), within_s=0.1)
    assert not child.lost
    child.kill()


def test_a_fork_server_that_is_killed_takes_its_trials_along_and_a_new_one_goes_on(zygote: Zygote) -> None:
    child = spawn(zygote, HANGS)
    pid = pid_of(zygote, child)
    assert zygote._process is not None
    os.kill(zygote._process.pid, signal.SIGKILL)
    with pytest.raises(EOFError):
        child.channel.receive_line(5)
    assert gone(pid)
    assert child.wait() is None
    assert child.lost
    assert spawn(zygote, 0).wait() == 0
    assert child.lost
    assert child.wait(3600) is None  # without waiting: nobody knows its end


def test_the_end_of_the_fork_server_ends_every_trial_and_removes_the_scratch_folder(python: str) -> None:
    with Zygote(Startup(python=python)) as zygote:
        pids = [pid_of(zygote, spawn(zygote, HANGS)) for _ in range(2)]
        scratch = Path(zygote.scratch)
        assert scratch.is_dir()
    assert all(gone(pid) for pid in pids)
    assert not scratch.exists()


@pytest.mark.parametrize("stopped", [False, True])
def test_a_parent_that_is_killed_leaves_no_process_and_no_scratch_folder_behind(python: str, stopped: bool) -> None:
    if stopped and not hasattr(os, "pidfd_open"):
        pytest.skip("this system does not tell of the end of a process that is not a child")
    code = f"""
import sys, time
from harness.run.process.startup import Startup
from harness.run.process.zygote import Zygote
from tests.run.process.zygotes import HANGS, pid_of, spawn
zygote = Zygote(Startup(python={python!r}))
zygote.start()
print(zygote._process.pid, *[pid_of(zygote, spawn(zygote, HANGS)) for _ in range(2)], zygote.scratch, flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    *said, scratch = parent.stdout.readline().split()
    pids = [int(word) for word in said]
    assert len(pids) == 3
    assert Path(scratch).is_dir()
    family = psutil.Process(parent.pid).children(recursive=True)
    if stopped:
        os.kill(pids[0], signal.SIGSTOP)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert all(gone(pid, 10.0) for pid in pids)
    deadline = time.monotonic() + 5.0
    while (Path(scratch).exists() or any(map(running, family))) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not Path(scratch).exists()
    assert not any(map(running, family))


def test_tensorflow_that_cannot_be_imported_is_said_in_one_line(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\necho 'Traceback' >&2\necho \"ModuleNotFoundError: No module named 'tensorflow'\" >&2\n"
    )
    python.chmod(0o755)
    with pytest.raises(ZygoteError) as caught, Zygote(Startup(python=str(python))):
        pass
    assert str(caught.value) == (
        f"TensorFlow could not be imported by {python}: ModuleNotFoundError: No module named 'tensorflow'"
    )


def test_keras_on_another_framework_is_refused_with_the_variable_before_anything_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    with pytest.raises(ZygoteError) as caught, Zygote():
        pass
    assert str(caught.value) == (
        f"TensorFlow could not be imported by {sys.executable}: KERAS_BACKEND: given 'jax', and engine 'tensorflow' "
        "trains with Keras on TensorFlow; unset that variable"
    )


def test_a_machine_without_a_place_for_temporary_files_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(**_: object) -> None:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr("harness.run.process.scratch.tempfile.TemporaryDirectory", nowhere)
    with pytest.raises(ZygoteError, match=r"TMPDIR: .*No usable temporary directory"):
        Zygote()


# another process in its place


def shown(zygote: Zygote) -> dict[str, str]:
    """The environment that the process was started with."""
    assert zygote._process is not None
    return psutil.Process(zygote._process.pid).environ()


def test_each_process_has_an_environment_of_another_size_and_another_hash_seed_and_says_which(python: str) -> None:
    with Zygote(Startup(python=python)) as zygote:
        before = [zygote.start_record]
        assert zygote.start_record is not None
        environment = shown(zygote)
        assert len(environment["HARNESS_PADDING"]) == zygote.start_record.padding_bytes
        assert int(environment["PYTHONHASHSEED"]) == zygote.start_record.hash_seed
        for _ in range(3):
            renew([zygote])
            before.append(zygote.start_record)
        spawn(zygote, 0).kill()
    assert len({one.number for one in before if one}) == 4
    assert len({one.padding_bytes for one in before if one}) > 1
    assert len({one.hash_seed for one in before if one}) > 1


@pytest.mark.parametrize(("given", "known"), [("7", 7), ("random", None)])
def test_a_hash_seed_that_is_given_stays(python: str, given: str, known: int | None) -> None:
    with Zygote(Startup({"PYTHONHASHSEED": given}, python=python)) as zygote:
        assert zygote.start_record is not None
        assert zygote.start_record.hash_seed == known
        assert shown(zygote)["PYTHONHASHSEED"] == given


def test_a_process_is_due_once_another_one_costs_little(python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Zygote(Startup(python=python)) as zygote:
        took, began = zygote._ready - zygote._launched, zygote._ready
        for served, due in ((RENEWED_AFTER - 1, False), (RENEWED_AFTER + 1, True)):
            monkeypatch.setattr(time, "monotonic", lambda served=served: began + served * took)
            assert zygote.due == due
        monkeypatch.undo()
        renew([zygote])
        assert not zygote.due
