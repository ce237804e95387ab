"""What is left of a run of clusters 10 s after each way that it can end.

Promise: no process, no namespace, no port and no scratch file, whether it is done, is interrupted, or it or one of
its workers is killed.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
from common import scratch, table

LIMIT_S = 10.0
SWEEP = [
    sys.executable, "-m", "harness", "sweep", "--strategy", "multi_worker_mirrored,parameter_server", "--workers", "2",
    "--replicas", "1", "--model", "mlp", "--data", "synthetic", "--trials", "1", "--max-warmup", "0", "--quiet",
]  # fmt: skip
LONG = [*SWEEP, "--windows", "100", "--window", "1"]
SHORT = [*SWEEP, "--windows", "5", "--window", "0.02"]
CLUSTER_OF_TWO = 2
"""Processes that listen, from which on a cluster is up."""


@dataclass(frozen=True)
class Seen:
    """What a run had while it lived."""

    processes: list[psutil.Process]
    ports: list[int]


def main() -> None:
    """Try every end and print what is left."""
    rows = [("end", "exit", "processes", "ports", "namespaces", "scratch files", "had (processes, ports)")]
    rows.append(_end("done", SHORT, None))
    rows.append(_end("Ctrl-C", LONG, lambda run, _: run.send_signal(signal.SIGINT)))
    rows.append(_end("kill -9 of the parent", LONG, lambda run, _: run.kill()))
    rows.append(_end("kill -9 of a worker, then Ctrl-C", LONG, _kill_a_worker))
    table(rows)
    print(f"\npromised: nothing left after {LIMIT_S:.0f} s")


def _kill_a_worker(run: subprocess.Popen[bytes], seen: Seen) -> None:
    victim = next(process for process in seen.processes if _listening(process))
    victim.kill()
    time.sleep(2)  # the trial is recorded as crashed, and the sweep goes on
    run.send_signal(signal.SIGINT)


def _end(name: str, command: list[str], end: Callable[[subprocess.Popen[bytes], Seen], None] | None) -> tuple[str, ...]:
    """Run `command`, end it once a cluster is up, and count what is left."""
    namespaces = _namespaces()
    with scratch() as folder:
        run = subprocess.Popen(
            [*command, "--results", f"{folder}/results"], env={**os.environ, "TMPDIR": folder},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        seen = _watch(run)
        if end is not None:
            end(run, seen)
            run.wait()
        deadline = time.monotonic() + LIMIT_S
        while (left := _left(seen, Path(folder), namespaces)) != (0, 0, 0, 0) and time.monotonic() < deadline:
            time.sleep(0.1)
        return name, str(run.returncode), *map(str, left), f"{len(seen.processes)}, {len(seen.ports)}"


def _watch(run: subprocess.Popen[bytes]) -> Seen:
    """The run's processes and ports: until a cluster is up or, for one that ends by itself, to its end."""
    processes: dict[int, psutil.Process] = {}
    ports: set[int] = set()
    parent = psutil.Process(run.pid)
    endless = "100" in run.args  # type: ignore[operator]
    while run.poll() is None:
        try:
            found = [parent, *parent.children(recursive=True)]
            listening = {process.pid: _listening(process) for process in found}
        except psutil.Error:
            continue  # one ended meanwhile
        processes |= {process.pid: process for process in found}
        ports.update(port for of_one in listening.values() for port in of_one)
        if endless and sum(bool(of_one) for of_one in listening.values()) >= CLUSTER_OF_TWO:
            break
        time.sleep(0.1)
    return Seen(list(processes.values()), sorted(ports))


def _listening(process: psutil.Process) -> list[int]:
    return [c.laddr.port for c in process.net_connections("tcp") if c.status == psutil.CONN_LISTEN]


def _left(seen: Seen, folder: Path, namespaces: set[str]) -> tuple[int, int, int, int]:
    """Processes, ports, namespaces and scratch files that are still there."""
    processes = [process for process in seen.processes if process.is_running() and not _zombie(process)]
    files = [path for path in folder.rglob("*") if path.is_file() and "results" not in path.parts]
    return len(processes), sum(map(_answers, seen.ports)), len(_namespaces() - namespaces), len(files)


def _zombie(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return True


def _answers(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def _namespaces() -> set[str]:
    """Named network namespaces of the machine; one without a name is gone with the last process in it."""
    return {path.name for path in Path("/var/run/netns").glob("*")}


if __name__ == "__main__":
    main()
