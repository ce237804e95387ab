"""Processes on the nodes of a Ray cluster: an agent a node, placed as a Ray task that takes the whole node."""

import contextlib
import importlib.util
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.run.launchers.agents.identity import VARIABLES
from harness.run.launchers.agents.session import AgentLauncher, Session
from harness.run.launchers.agents.worker import TOKEN_VARIABLE
from harness.run.launchers.base import CannotPlace
from harness.trial.protocol import Placing

CONNECT_S = 20.0
INSTALL = "ray is not installed; pip install 'ray>=2.40', or pip install -e '.[ray]' in a checkout"
START = "start one with `ray start --head`, or name one in RAY_ADDRESS"


@dataclass
class Begun:
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
        self._started: dict[int, Begun] = {}

    def available(self) -> str | None:
        """Whether ray is installed; whether a cluster answers is known only once one is asked."""
        return None if importlib.util.find_spec("ray") is not None else INSTALL

    def begin(self, placing: Placing, hosts: int) -> Session:
        """Join the Ray cluster as a driver, and ask it for whole nodes."""
        if (reason := self.available()) is not None:
            raise CannotPlace(f"launcher 'ray': {reason}")
        ray = _joined()
        try:
            bundle = _whole_node(ray, hosts)
            session = Session(self.name, placing.listen or ray.util.get_node_ip_address(), placing)
        except BaseException:
            ray.shutdown()
            raise
        group = ray.util.placement_group([bundle] * hosts, strategy="STRICT_SPREAD")
        command = [sys.executable, "-m", "harness", "worker", "--connect", session.meeting.address(), "--wait",
                   f"{CONNECT_S:g}"]  # fmt: skip
        own = {TOKEN_VARIABLE: session.meeting.token, "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
        same = {name: os.environ.get(name) for name in VARIABLES}
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
        self._started[id(session)] = Begun(ray, group, tasks)
        nodes = "a whole node" if hosts == 1 else f"{hosts} whole nodes"
        session.say(f"asks Ray for {nodes}; waits {placing.join_timeout_s:g} s")
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
            return f"an agent has ended: {str(error).splitlines()[0]}"

    def detail(self, session: Session) -> str | None:
        """Whether Ray has found the nodes."""
        begun = self._started[id(session)]
        state = begun.ray.util.placement_group_table(begun.group).get("state", "unknown")
        return f"Ray's placement group is {state}"


def _joined() -> Any:
    """The ray module, this process a driver of a cluster that runs already; CannotPlace when there is none."""
    import ray
    import ray.util.scheduling_strategies  # not imported by ray itself

    try:
        ray.init(
            address=os.environ.get("RAY_ADDRESS") or "auto", log_to_driver=False, logging_level="ERROR",
            ignore_reinit_error=True,
        )  # fmt: skip
    except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise CannotPlace(f"launcher 'ray': no Ray cluster: {lines[0]}; {START}") from None
    return ray


def _whole_node(ray: Any, hosts: int) -> dict[str, float]:
    """What the smallest of the `hosts` largest nodes has: so much is asked of each."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if len(nodes) < hosts:
        raise CannotPlace(
            f"launcher 'ray': the sweep wants {hosts} nodes and the cluster has {len(nodes)}; --hosts {len(nodes)} "
            "places several processes on one"
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
