"""What is left of a run of clusters, or of trials with tf.data services, 10 s after each way that it can end, under
each launcher that can run here.

Promise: no process, namespace, port, scratch file or Slurm job, whether the run is done, is interrupted, or is killed,
or one of its workers, preloaded processes, agents or steps of Slurm is. The first row of each launcher is a program
that does leave one of everything, so that each column is seen to count. Words choose:
`cluster_cleanup.py attach slurm` tries these launchers, `cluster_cleanup.py slurm srun` ends with that in their name.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
from common import ROOT, scratch, table
from leftovers import Left, Watched, listening

LIMIT_S = 10.0
UP_LIMIT_S = 180.0
RECORDED_S = 2.0
"""For the sweep to notice that something was killed, and to go on."""
HARNESS = [sys.executable, "-m", "harness"]
SWEEP = [
    *HARNESS,
    "sweep",
    "--strategy",
    "multi_worker_mirrored,parameter_server",
    "--workers",
    "2",
    "--replicas",
    "1",
    "--model",
    "mlp",
    "--data",
    "synthetic",
    "--trials",
    "1",
    "--max-warmup",
    "0",
    "--quiet",
]
LONG = [*SWEEP, "--windows", "100", "--window", "1"]
SHORT = [*SWEEP, "--windows", "5", "--window", "0.02"]
SERVED = [
    *HARNESS,
    "sweep",
    "--strategy",
    "none,mirrored",
    "--replicas",
    "1,2",
    "--data",
    "photographs",
    "--cache",
    "none",
    "--deterministic",
    "false",
    "--data-service",
    "2",
    "--trials",
    "1",
    "--windows",
    "100",
    "--window",
    "1",
    "--quiet",
]
"""Trials each of which has a tf.data service."""
ON_TWO_HOSTS = ["--hosts", "2"]
"""Two workers and a server would otherwise have a host each."""
CLUSTER_OF_TWO = 2
"""Trials' processes that listen, from which on a cluster is up."""
ZYGOTE = ("-m", "harness.trial.zygote")
TOKEN = "cluster_cleanup of the benchmarks"
LEAKY = """
import os, socket, subprocess, sys
with socket.create_server(("127.0.0.1", 0)) as listening:
    os.set_inheritable(listening.fileno(), True)
    subprocess.Popen(["sleep", "300"], close_fds=False, start_new_session=True)
subprocess.Popen(["unshare", *sys.argv[1:], "--net", "sleep", "300"], start_new_session=True)
open(os.path.join(os.environ["TMPDIR"], "scratch"), "w").close()
import time; time.sleep(2)
"""
LEAKY_JOB = """
import subprocess, time
subprocess.run(["sbatch", "--output=/dev/null", "--wrap=sleep 300"], check=True, stdout=subprocess.DEVNULL)
time.sleep(3)
"""

End = Callable[["Going"], None]


@dataclass(frozen=True)
class Ground:
    """Where a launcher's runs are tried: what precedes their commands, and what Slurm says of its jobs."""

    launcher: str
    before: Callable[..., list[str]] = lambda *command: list(command)
    environment: dict[str, str] | None = None
    jobs: Callable[[], int] | None = None
    spared: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Way:
    """One way to end; without `end` the command comes to its end by itself. `agents` are started beside it."""

    name: str
    command: Sequence[str]
    end: End | None = None
    agents: int = 0
    leaves: bool = False
    """Whether it is a control, which leaves something on purpose."""


@dataclass
class Going:
    """A run under way."""

    run: "subprocess.Popen[bytes]"
    watched: Watched

    def find(self, *words: str) -> psutil.Process:
        """The process of the run whose program, a Python left out, begins with these words, and its parent's not."""
        for process in self.watched.processes():
            with contextlib.suppress(psutil.Error):
                if _is(process, words) and not _is(process.parent(), words):
                    return process
        raise SystemExit(f"no process {' '.join(words)} to end")

    @property
    def sweep(self) -> psutil.Process:
        """The process that a person started, or Slurm's salloc for them."""
        return self.find("-m", "harness", "sweep")

    def trials(self) -> list[psutil.Process]:
        """Processes of clusters that are up: forks of a preloaded process that listen."""
        found = []
        for process in self.watched.processes():
            with contextlib.suppress(psutil.Error):
                if _is(process.parent(), ZYGOTE) and listening(process.pid):
                    found.append(process)
        return found


def _is(process: psutil.Process | None, words: Sequence[str]) -> bool:
    if process is None:
        return False
    command = process.cmdline()
    return list(words) in (command[: len(words)], command[1 : 1 + len(words)])


def main() -> None:
    """Try every end and print what is left."""
    chosen = [word for word in sys.argv[1:] if word in GROUNDS] or list(GROUNDS)
    words = [word for word in sys.argv[1:] if word not in GROUNDS]
    rows = [
        (
            "launcher",
            "end",
            "exit",
            "gone after",
            "processes",
            "ports",
            "namespaces",
            "files",
            "jobs",
            "had (processes, ports, namespaces)",
        ),
    ]
    left_over = []
    for launcher in chosen:
        for ground, ways in GROUNDS[launcher]():
            for way in (way for way in ways if not words or any(word in way.name for word in words)):
                row, left = _ended(ground, way)
                rows.append(row)
                print("  ".join(row), flush=True)
                if not (left.nothing or way.leaves):
                    left_over.append(f"{launcher}: {way.name}")
    print()
    table(rows)
    print(f"\npromised: nothing left after {LIMIT_S:.0f} s; left something: {', '.join(left_over) or 'no run'}")
    sys.exit(bool(left_over))


def _ended(ground: Ground, way: Way) -> tuple[tuple[str, ...], Left]:
    """Run a command, end it once a cluster is up, and count what is left."""
    with scratch() as folder:
        watched = Watched(Path(folder), ground.jobs, ground.spared)
        environment = {
            **(ground.environment or os.environ),
            **watched.environment,
            "PYTHONPATH": str(ROOT),
            "HARNESS_TOKEN": TOKEN,
        }
        try:
            with (Path(folder) / "said").open("wb") as said:
                started = [
                    subprocess.Popen(
                        command,
                        cwd=watched.work,
                        env=environment,
                        stdin=subprocess.DEVNULL,
                        stdout=said,
                        stderr=said,
                        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
                        start_new_session=True,
                    )
                    for command in _commands(ground, way)
                ]
                going = Going(started[0], watched)
                _watch(going, way, Path(folder) / "said")
                if way.end is not None:
                    way.end(going)
                return _counted(ground, way, going, started)
        finally:
            watched.clear()


def _commands(ground: Ground, way: Way) -> Iterator[list[str]]:
    """The run itself, then agents that join it, where it has any."""
    if not way.agents:
        yield ground.before(*way.command)
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        at = f"127.0.0.1:{free.getsockname()[1]}"
    yield [*way.command, "--launcher", "attach", *ON_TWO_HOSTS, "--listen", at]
    for _ in range(way.agents):
        yield [*HARNESS, "worker", "--connect", at]


def _watch(going: Going, way: Way, said: Path) -> None:
    """Look at the run until a cluster is up or, where it shall end by itself, to its end."""
    deadline = time.monotonic() + UP_LIMIT_S
    while going.run.poll() is None and time.monotonic() < deadline:
        going.watched.look()
        if way.end is not None and len(going.trials()) >= CLUSTER_OF_TWO:
            time.sleep(1)  # the other cell's cluster, which takes turns with it
            going.watched.look()
            return
        time.sleep(0.1)
    if way.end is not None or going.run.poll() is None:
        raise SystemExit(f"{way.name}: no cluster came up:\n{said.read_text(errors='replace')[-2000:]}")


def _counted(
    ground: Ground, way: Way, going: Going, started: list["subprocess.Popen[bytes]"]
) -> tuple[tuple[str, ...], Left]:
    """The row: what is left at the end of the limit, or nothing, and since when."""
    ended = time.monotonic()
    while not (left := going.watched.left()).nothing and time.monotonic() < ended + LIMIT_S:
        going.watched.look()  # what came up just then is the run's as well
        time.sleep(0.1)
        for process in started:
            process.poll()
    after = f"{time.monotonic() - ended:.1f} s" if left.nothing else "never"
    for process in started:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1)  # it may be on its last instruction
    codes = ", ".join("runs" if process.poll() is None else str(process.returncode) for process in started)
    counts = (left.processes, left.ports, left.namespaces, left.files)
    jobs = "–" if left.jobs is None else str(left.jobs)
    seen = going.watched
    had = f"{len(seen.seen)}, {len(seen.ports)}, {len(seen.namespaces)}"
    return (ground.launcher, way.name, codes, after, *map(str, counts), jobs, had), left


def _interrupt(going: Going) -> None:
    going.sweep.send_signal(signal.SIGINT)


def _kill(going: Going) -> None:
    going.sweep.kill()


def _first(victim: Callable[[Going], psutil.Process]) -> End:
    """Kill something of the run, let the run notice and go on, then interrupt it."""

    def end(going: Going) -> None:
        sweep = going.sweep
        victim(going).kill()
        time.sleep(RECORDED_S)
        going.watched.look()
        with contextlib.suppress(psutil.NoSuchProcess):  # nothing can run any more, and it has ended by itself
            sweep.send_signal(signal.SIGINT)

    return end


WAYS = (
    Way("done", SHORT),
    Way("Ctrl-C", LONG, _interrupt),
    Way("kill -9 of the sweep", LONG, _kill),
    Way("kill -9 of a worker, then Ctrl-C", LONG, _first(lambda going: going.trials()[0])),
    Way("kill -9 of the preloaded process, then Ctrl-C", LONG, _first(lambda going: going.find(*ZYGOTE))),
)
KILL_AGENT = Way("kill -9 of an agent, then Ctrl-C", LONG, _first(lambda going: going.find("-m", "harness", "worker")))


def _local() -> Iterator[tuple[Ground, list[Way]]]:
    user = [] if os.geteuid() == 0 else ["--user"]
    control = Way("(control: a program that leaves one of each)", [sys.executable, "-c", LEAKY, *user], leaves=True)
    plain = [
        replace(way, name=f"{way.name}, --no-isolate", command=[*way.command, "--no-isolate"]) for way in WAYS[1:4]
    ]
    served = [replace(way, name=f"{way.name}, tf.data services", command=SERVED) for way in WAYS[1:3]]
    yield Ground("local"), [control, *WAYS, *plain, *served]


def _attach() -> Iterator[tuple[Ground, list[Way]]]:
    yield Ground("attach"), [replace(way, agents=2) for way in (*WAYS, KILL_AGENT)]


def _slurm() -> Iterator[tuple[Ground, list[Way]]]:
    from tests.run.launchers.slurm_cluster import lacking, slurm_cluster

    if (reason := lacking()) is not None:
        print(f"slurm: not tried: {reason}")
        return
    with slurm_cluster() as slurm:
        ground = Ground(
            "slurm, sbatch",
            slurm.command,
            slurm.environment,
            lambda: len(slurm.jobs()),
            frozenset(str(Path(namespace).readlink()) for namespace in slurm.namespaces),
        )
        on_slurm = [
            replace(way, command=[*way.command, "--launcher", "slurm", *ON_TWO_HOSTS]) for way in (*WAYS, KILL_AGENT)
        ]
        control = Way("(control: a program that leaves a job)", [sys.executable, "-c", LEAKY_JOB], leaves=True)
        of_srun = Way(
            "kill -9 of srun, then Ctrl-C",
            on_slurm[1].command,
            _first(lambda going: going.find("srun")),
        )
        yield ground, [control, *on_slurm, of_srun]
        slurm.run("scancel", "--user=root")
        inside = replace(ground, launcher="slurm, salloc", before=_within(slurm.command, "salloc", "--nodes=2"))
        yield inside, [on_slurm[0], on_slurm[2], of_srun]


def _within(command: Callable[..., list[str]], *before: str) -> Callable[..., list[str]]:
    return lambda *program: command(*before, *program)


GROUNDS = {"local": _local, "attach": _attach, "slurm": _slurm}

if __name__ == "__main__":
    main()
