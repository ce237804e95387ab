"""Processes on the nodes of a Ray cluster: an agent a node, placed as a Ray task that takes the whole node."""

import contextlib
import importlib.util
import os
import queue
import socket
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.protocol.messages import LauncherOptions
from harness.run.launchers.agents.identity import told_variables
from harness.run.launchers.agents.session import AgentLauncher, Session
from harness.run.launchers.base import CannotPlace
from harness.run.process.startup import TOKEN_VARIABLE

REACH_LIMIT_S = 10.0
"""For a connection to the cluster's address."""
JOIN_LIMIT_S = 90.0
"""For Ray to answer on it; joining takes seconds, and on a busy machine some tens."""
INSTALL = "ray is not installed; pip install 'ray>=2.40', or pip install -e '.[ray]' in a checkout"
START = "start one with `ray start --head`, or name one in RAY_ADDRESS"


@dataclass
class RayResources:
    """What Ray holds for a session."""

    ray: Any
    group: Any
    tasks: list[Any]


class Ray(AgentLauncher):
    """Ray places, and no more: trials are forked by the agents, without Ray's own start-up each time."""

    name = "ray"
    summary = "nodes of a Ray cluster, an agent on each"

    def __init__(self) -> None:
        super().__init__()
        self._started: dict[int, RayResources] = {}

    def available(self) -> str | None:
        """Whether ray is installed, and a cluster is named or runs on this host; whether it has room, only it knows."""
        if importlib.util.find_spec("ray") is None:
            return INSTALL
        if os.environ.get("RAY_ADDRESS") or _runs_here():
            return None
        return f"no Ray cluster: RAY_ADDRESS names none, and none runs on this host; {START}"

    def begin(self, options: LauncherOptions, hosts: int) -> Session:
        """Join the Ray cluster as a driver, and ask it for whole nodes. CannotPlace with what Ray says."""
        if (reason := self.available()) is not None:
            raise CannotPlace(f"launcher 'ray': {reason}")
        ray = _joined()
        with contextlib.ExitStack() as undo:
            undo.callback(ray.shutdown)
            bundle = _whole_node(ray, hosts)
            session = Session(self.name, options.listen or ray.util.get_node_ip_address(), options)
            undo.callback(session.meeting.close)
            try:
                self._started[id(session)] = _asked(ray, bundle, hosts, session)
            except (ValueError, ray.exceptions.RayError) as error:
                raise CannotPlace(f"launcher 'ray': Ray refuses: {_first_line(error)}") from None
            undo.pop_all()
        nodes = "a whole node" if hosts == 1 else f"{hosts} whole nodes"
        session.say(f"asks Ray for {nodes}; waits {options.join_timeout_s:g} s")
        return session

    def end(self, session: Session) -> None:
        """Give the nodes back to Ray."""
        begun = self._started.pop(id(session), None)
        if begun is not None:
            begun.ray.wait(begun.tasks, num_returns=len(begun.tasks), timeout=5)
            begun.ray.util.remove_placement_group(begun.group)
            begun.ray.shutdown()

    def trouble(self, session: Session) -> str | None:
        """Whether an agent has ended already, and what it said."""
        begun = self._started[id(session)]
        ended, _ = begun.ray.wait(begun.tasks, num_returns=1, timeout=0)
        if not ended:
            return None
        try:
            return f"an agent has ended: {begun.ray.get(ended[0])}"
        except begun.ray.exceptions.RayError as error:
            return f"an agent has ended: {_first_line(error)}"

    def detail(self, session: Session) -> str | None:
        """Whether Ray has found the nodes."""
        begun = self._started[id(session)]
        state = begun.ray.util.placement_group_table(begun.group).get("state", "unknown")
        return f"Ray's placement group is {state}"


def _asked(ray: Any, bundle: dict[str, float], hosts: int, session: Session) -> RayResources:
    """Ask for `hosts` nodes with `bundle` each, and for an agent on each; ValueError where Ray refuses."""
    group = ray.util.placement_group([bundle] * hosts, strategy="STRICT_SPREAD")
    command = session.agent_command()
    own = {TOKEN_VARIABLE: session.meeting.token, "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    same = {name: os.environ.get(name) for name in told_variables()}
    strategy = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy
    tasks = [
        ray.remote(_be_an_agent)
        .options(
            num_cpus=bundle["CPU"],
            num_gpus=bundle.get("GPU", 0),
            max_retries=0,
            scheduling_strategy=strategy(group, placement_group_bundle_index=number),
        )
        .remote(command, own, same, str(Path.cwd()))
        for number in range(hosts)
    ]
    return RayResources(ray, group, tasks)


def _runs_here() -> bool:
    """Whether a node of a cluster does: each has a raylet."""
    import psutil

    return any(process.info["name"] == "raylet" for process in psutil.process_iter(["name"]))


def _joined() -> Any:
    """The ray module, this process a driver of a cluster that runs already; CannotPlace when there is none."""
    import ray
    import ray.util.scheduling_strategies  # not imported by ray itself

    address, ended = os.environ.get("RAY_ADDRESS") or "auto", queue.SimpleQueue[Exception | None]()

    def join() -> None:
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", ignore_reinit_error=True)
        except Exception as error:  # noqa: BLE001  it is raised by who waits
            ended.put(error)
        else:
            ended.put(None)

    _reach(address)
    # Ray itself has no limit for a host that takes the connection and says nothing; the thread then stays behind.
    threading.Thread(target=join, name="ray", daemon=True).start()
    try:
        error = ended.get(timeout=JOIN_LIMIT_S)
    except queue.Empty:
        raise CannotPlace(f"launcher 'ray': {address} did not answer within {JOIN_LIMIT_S:g} s; {START}") from None
    if isinstance(error, ConnectionError | ValueError | RuntimeError | TimeoutError):
        raise CannotPlace(f"launcher 'ray': no Ray cluster: {_first_line(error)}; {START}")
    if error is not None:
        raise error
    return ray


def _reach(address: str) -> None:
    """CannotPlace where nothing takes a connection at `host:port`, `ray://host:port`; other texts are Ray's to read."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not (host and port.isdigit()):
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACH_LIMIT_S).close()
    except (OSError, UnicodeError, OverflowError) as error:
        reason = f"no answer within {REACH_LIMIT_S:g} s" if isinstance(error, TimeoutError) else _first_line(error)
        raise CannotPlace(f"launcher 'ray': no Ray cluster at {address}: {reason}; {START}") from None


def _first_line(error: BaseException) -> str:
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return (said.strip().splitlines() or [type(error).__name__])[0]


def _whole_node(ray: Any, hosts: int) -> dict[str, float]:
    """What the smallest of the `hosts` largest nodes has: so much is asked of each."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    nodes = [node for node in nodes if node.get("CPU")]  # a head with --num-cpus=0 computes nothing
    if len(nodes) < hosts:
        remedy = f"; --hosts {len(nodes)} places several processes on one" if nodes else ""
        raise CannotPlace(
            f"launcher 'ray': the sweep wants {hosts} nodes and the cluster has {len(nodes)} with processors{remedy}"
        )
    largest = sorted(((n.get("GPU", 0.0), n.get("CPU", 0.0)) for n in nodes), reverse=True)[:hosts]
    gpus, cpus = (min(column) for column in zip(*largest, strict=True))
    return {"CPU": cpus, **({"GPU": gpus} if gpus else {})}


def _be_an_agent(command: list[str], environment: dict[str, str], same: dict[str, str | None], folder: str) -> str:
    """In a task: run the agent to its end; what it said last where that was no good one."""
    with contextlib.suppress(OSError):  # a host without that folder uses its own
        os.chdir(folder)
    own = {key: value for key, value in environment.items() if value}
    # Ray sets OMP_NUM_THREADS for its own purposes; what must be the same on every host is as the sweep has it.
    kept = {key: value for key, value in os.environ.items() if key not in same}
    set_there = {key: value for key, value in same.items() if value is not None}
    done = subprocess.run(command, env={**kept, **set_there, **own}, capture_output=True, text=True, check=False)
    said = (done.stderr or done.stdout).strip().splitlines()
    return said[-1] if said else f"exit status {done.returncode}"


LAUNCHER = Ray()
