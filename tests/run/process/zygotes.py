"""Fork servers, and what their children do."""

import sys
import time
from pathlib import Path

import psutil

from harness.protocol.messages import Report, Request
from harness.run.process.zygote import ForkedChild, Zygote
from tests.record.examples import cell

WITHOUT_TENSORFLOW = f"""#!{sys.executable}
import os, signal, sys, time, types
sys.path.insert(0, {str(Path.cwd())!r})
import harness.trial.zygote as zygote
from harness.protocol.messages import Outcome, Report
from harness.protocol.channel import Channel

def live(connection, request, engine):
    channel = Channel(connection)
    print("the trial says", request.seed)
    channel.send(Report(phase="build"))
    if request.seed == 102:
        for number in range(10**9):
            print("step", number)
    elif request.seed == 0 or request.task == "prepare":
        channel.send(Report(outcome=Outcome(status="ok")))
    elif request.seed == 1:
        raise ValueError("so be it")
    elif request.seed > 102:
        closed = open(os.devnull, "w")
        closed.close()
        sys.stdout = sys.stderr = {{103: None, 104: types.SimpleNamespace(write=len), 105: closed}}[request.seed]
        if request.data_dir:
            raise ValueError("so be it")
    elif request.seed < 100:
        os.kill(os.getpid(), request.seed)
    elif request.seed == 101:
        read, write = os.pipe()
        between = os.fork()
        if between == 0:
            os.setsid()
            if os.fork() == 0:
                os.write(write, str(os.getpid()).encode())
                time.sleep(60)
            os._exit(0)
        os.waitpid(between, 0)  # or it is left, too, for a moment
        channel.send(Report(outcome=Outcome(status="ok", reason=os.read(read, 20).decode())))
    else:
        open("/proc/self/comm", "w").write("hangs")
        time.sleep(60)

zygote.preload = lambda name: (name, {{"tensorflow": "none"}})
sys.modules["harness.trial.life"] = types.SimpleNamespace(live=live)
sys.argv = ["zygote", *sys.argv[sys.argv.index("harness.trial.zygote") + 1 :]]
zygote.main()
"""
HANGS = 100


def request(seed: int, data_dir: str = "", **of_cell: str) -> Request:
    """What a trial is asked that does what its seed says."""
    return Request(
        cell=cell(**of_cell), seed=seed, data_dir=data_dir, window_s=0.1, intra_op_threads=1, inter_op_threads=1
    )


def spawn(zygote: Zygote, seed: int, **of_cell: str) -> ForkedChild:
    """A trial that has said that it builds."""
    child = zygote.spawn(request(seed, **of_cell))
    line = child.channel.receive_line(10)
    assert line is not None
    assert Report.model_validate_json(line).phase == "build"
    return child


def pid_of(zygote: Zygote, child: ForkedChild) -> int:
    while child.pid is None:
        zygote.drain()
    return child.pid


def gone(pid: int, within_s: float = 5.0) -> bool:
    """Whether a process ends within a time; a zombie that nobody has reaped yet has ended."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False
