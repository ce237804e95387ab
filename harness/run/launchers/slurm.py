"""Processes on the nodes of a Slurm cluster: by srun inside an allocation, by a job of its own outside."""

import contextlib
import os
import random
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.files import read_end
from harness.protocol.messages import LauncherOptions, Request, SlurmShape
from harness.run.launchers.agents.assignment import first_devices, hosts_of_tasks
from harness.run.launchers.agents.meeting import facing
from harness.run.launchers.agents.placement import hold_ports
from harness.run.launchers.agents.remote import Agent
from harness.run.launchers.agents.session import AgentLauncher, Session
from harness.run.launchers.agents.watchdog import Watchdog, WatchdogAnswer
from harness.run.launchers.base import CannotPlace, NotNow, Placement, Seat, memberships_of, tasks_of
from harness.run.process.startup import TOKEN_VARIABLE
from harness.run.process.zygote import Zygote

PROGRAMS = ("srun", "sbatch", "scancel", "squeue", "sinfo")
WITH_VARIABLES = "--export=ALL"
"""The token is one, and a site may have it that none go along (SBATCH_EXPORT, SLURM_EXPORT_ENV)."""
STEP = (
    "--ntasks-per-node=1",
    "--kill-on-bad-exit=0",
    "--wait=0",
    "--no-kill",
    "--mpi=none",
    "--cpu-bind=none",
    WITH_VARIABLES,
)
"""Of the step that runs the agents: one that ends must not end the others, and none is bound to one processor."""
TIDY = (sys.executable, "-m", "harness.run.process.scratch")
"""Slurm kills agents with their srun, when that is killed; what they leave on their nodes another step removes."""
KILLED = 128 + signal.SIGKILL
ANSWER_LIMIT_S = 20.0
"""A controller that is down is told by Slurm's own programs after some seconds."""
ASK_EVERY_S = 2.0
NOT_CANCELLED = "PENDING,CONFIGURING,RUNNING,SUSPENDED"
"""States of a job that scancel has not reached."""
END_S = 3.0
"""Agents leave by themselves when their sweep is gone, and take their scratch files along."""
JOB_END_S = 6.0
"""Within that a job ends by itself, after the step that tidies up where its srun was killed."""
PORTS = range(20000, 32000)
"""Below those that Linux gives out by itself."""
TRIES = 20


@dataclass
class SlurmWork:
    """What `begin` has started: a step inside an allocation, or a job."""

    watchdog: Watchdog
    job: str | None = None
    output: Path | None = None
    asked_at: float = 0.0
    state: str = ""


class Slurm(AgentLauncher):
    """An agent a node. TensorFlow learns of the cluster by its SlurmClusterResolver."""

    name = "slurm"
    summary = "nodes of a Slurm cluster: srun inside an allocation, sbatch outside"

    def __init__(self) -> None:
        super().__init__()
        self._started: dict[int, SlurmWork] = {}

    def available(self) -> str | None:
        """Whether Slurm's programs are here and its controller answers."""
        if (reason := _lacking()) is not None:
            return reason
        try:
            _said("sinfo", "--noheader", "--format=%P")
        except CannotPlace as error:
            return str(error)
        return None

    def begin(self, options: LauncherOptions, hosts: int) -> Session:
        """Listen where nodes reach this host, and have Slurm start an agent on each.

        CannotPlace with what Slurm says.
        """
        if (reason := _lacking()) is not None:
            raise CannotPlace(f"launcher 'slurm': {reason}")
        allocated = os.environ.get("SLURM_JOB_NODELIST") if "SLURM_JOB_ID" in os.environ else None
        more = shlex.split(options.slurm_args)
        try:
            nodes = _allocated(hosts, allocated) if allocated else _addresses(())
            session = Session(self.name, options.listen or facing(nodes[0]) or "0.0.0.0", options)
        except CannotPlace as error:
            raise type(error)(f"launcher 'slurm': {error}") from None
        agent = session.agent_command()
        environment = {**os.environ, TOKEN_VARIABLE: session.meeting.token}
        try:
            begun = (_step if allocated else _job)(hosts, agent, more, environment)
        except CannotPlace as error:
            session.meeting.close()
            raise type(error)(f"launcher 'slurm': {error}") from None
        self._started[id(session)] = begun
        what = f"job {begun.job}" if begun.job else f"a step of job {os.environ['SLURM_JOB_ID']}"
        session.say(f"{what} starts {hosts} agents; waits {options.join_timeout_s:g} s for them")
        return session

    def end(self, session: Session) -> None:
        """End the step or the job."""
        begun = self._started.pop(id(session), None)
        if begun is not None:
            begun.watchdog.close()

    def trouble(self, session: Session) -> str | None:
        """Whether the step or the job has ended already, and what it said last."""
        begun = self._started[id(session)]
        if begun.job is None:
            if begun.watchdog.status is None:
                return None
            return f"srun ended with status {begun.watchdog.status}: {begun.watchdog.last_line() or 'it said nothing'}"
        if time.monotonic() < begun.asked_at + ASK_EVERY_S:
            return None
        begun.asked_at = time.monotonic()
        try:
            begun.state = _said("squeue", "--noheader", f"--jobs={begun.job}", "--format=%T (%r)")
        except CannotPlace as error:
            begun.state = "" if "Invalid job id" in str(error) else f"unknown ({error})"
        if begun.state:
            return None
        said = _last_line(begun.output)
        return f"job {begun.job} has ended" + (f": {said}" if said else "")

    def detail(self, session: Session) -> str | None:
        """The job's state, for those who wait."""
        begun = self._started[id(session)]
        return f"job {begun.job} is {begun.state}" if begun.job and begun.state else None

    def place(self, request: Request, zygote: Zygote) -> Placement:
        """Processes in the resolver's order: tasks by name, over nodes by name, ports counted from one base."""
        agents = self.agents_for(request, zygote)
        tasks = sorted(tasks_of(request.cell))
        hosts = hosts_of_tasks(tasks, len(agents))
        base, release = _common_ports(agents, [hosts.count(number) for number in range(len(agents))])
        addresses = {
            task: f"{agents[host].identity.node}:{base + hosts[:rank].count(host)}"
            for rank, (task, host) in enumerate(zip(tasks, hosts, strict=True))
        }
        shape = {agent.identity.node: hosts.count(number) for number, agent in enumerate(agents)}
        jobs = dict(Counter(task for task, _ in tasks))
        first = first_devices(hosts, tasks, request.cell.shape.replicas)
        seats = []
        for member in memberships_of(request, addresses):
            rank = tasks.index((member.task, member.index))
            own = SlurmShape(jobs=jobs, port_base=base, tasks_per_node=shape, rank=rank)
            placed = member.model_copy(update={"slurm": own, "first_device": first[rank]})
            seats.append(Seat(placed, agents[hosts[rank]]))
        return Placement(seats, release=release.close)


def _lacking() -> str | None:
    """Which of Slurm's programs are not here, or None."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    return f"no program {', '.join(missing)} on the PATH: this is no host of a Slurm cluster" if missing else None


def _step(hosts: int, agent: Sequence[str], more: Sequence[str], environment: dict[str, str]) -> SlurmWork:
    """A step of the allocation that this process is in; it shares the nodes with a step that may run this."""
    command = ["srun", f"--nodes={hosts}", f"--ntasks={hosts}", "--overlap", *STEP, *more]
    tidy = [*command, *TIDY]
    return SlurmWork(Watchdog(run=[*command, *agent], afterwards=tidy, environment=environment, patience_s=END_S))


def _job(hosts: int, agent: Sequence[str], more: Sequence[str], environment: dict[str, str]) -> SlurmWork:
    """A job that ends with this process: it is cancelled by its name, which is there before it has a number.

    It is submitted by what will cancel it. Were this process to submit it and be killed meanwhile, its sbatch would
    live on, and the job be there after it was cancelled.
    """
    name = f"harness-{secrets.token_hex(4)}"
    output = Path.cwd() / f".{name}.out"
    # without --exclusive a node's agent gets one processor of it; what the user gives may say otherwise, but for the
    # name that the job is cancelled by
    submit = [
        "sbatch",
        "--parsable",
        f"--nodes={hosts}",
        "--ntasks-per-node=1",
        "--exclusive",
        "--no-requeue",
        WITH_VARIABLES,
        *more,
        f"--job-name={name}",
        f"--output={str(output).replace('%', '%%')}",  # else a pattern
    ]
    watchdog = Watchdog(
        first=submit,
        text=_script(hosts, agent),
        limit_s=ANSWER_LIMIT_S,
        environment=environment,
        remove=[output],
        afterwards=["scancel", f"--name={name}"],
        left=["squeue", "--noheader", f"--name={name}", f"--states={NOT_CANCELLED}", "--format=%i"],
        ending=["squeue", "--noheader", f"--name={name}", "--states=RUNNING", "--format=%i"],
        patience_s=JOB_END_S,
    )
    try:
        number = _judged("sbatch", watchdog.first_answer())
    except CannotPlace:
        watchdog.close()
        raise
    return SlurmWork(watchdog, job=number.partition(";")[0], output=output)


def _script(hosts: int, agent: Sequence[str]) -> str:
    """What a job runs: the step of the agents, and where its srun was killed the one that tidies up after them."""
    step = f"srun --ntasks={hosts} {shlex.join(STEP)}"
    tidy = f"exec {step} {shlex.join(TIDY)}"
    return f"#!/bin/sh\n{step} {shlex.join(agent)}\n[ $? -ne {KILLED} ] || {tidy}\n"


def _allocated(hosts: int, nodes: str) -> list[str]:
    """The addresses of the allocation's nodes; CannotPlace when there are too few."""
    found = _addresses([f"--nodes={nodes}"])
    if len(found) < hosts:
        raise CannotPlace(
            f"the allocation has {len(found)} nodes and the sweep wants {hosts}; --hosts {len(found)} places several "
            "processes on one"
        )
    return found


def _addresses(which: Sequence[str]) -> list[str]:
    found = list(dict.fromkeys(_said("sinfo", "--noheader", "--Node", "--format=%o", *which).split()))
    if not found:
        raise CannotPlace("sinfo names no node")
    return found


def _said(*command: str) -> str:
    """What one of Slurm's programs says; NotNow with its own reason when it fails or does not answer."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return _judged(command[0], WatchdogAnswer(None))
    except OSError as error:
        raise CannotPlace(f"{command[0]}: {error.strerror or error}") from None
    return _judged(command[0], WatchdogAnswer(done.returncode, done.stdout, done.stderr))


def _judged(program: str, answer: WatchdogAnswer) -> str:
    """What a program of Slurm's has said; see `_said`."""
    if answer.status is None:
        raise NotNow(f"{program} did not answer within {ANSWER_LIMIT_S:g} s")
    if answer.status:
        lines = [line.strip() for line in answer.error.splitlines() if line.strip()]
        said = next((line for line in lines if ": fatal:" in line), lines[0] if lines else None)
        raise NotNow(said or f"{program} ended with status {answer.status}")
    return answer.output.strip()


def _last_line(path: Path | None) -> str:
    try:
        lines = read_end(path).strip().splitlines() if path is not None else []
    except OSError:
        return ""
    return lines[-1].strip() if lines else ""


def _common_ports(agents: Sequence[Agent], counts: Sequence[int]) -> tuple[int, contextlib.ExitStack]:
    """A port that is free on every node, with those that follow it, and what gives them back: the resolver counts from
    one base everywhere."""
    for base in random.SystemRandom().sample(PORTS, TRIES):
        with contextlib.ExitStack() as holding:
            if all(
                len(hold_ports("slurm", agent, count, holding, base)) == count
                for agent, count in zip(agents, counts, strict=True)
            ):
                return base, holding.pop_all()
    raise NotNow(f"launcher 'slurm': no {max(counts)} ports in a row are free on every node, in {TRIES} tries")


LAUNCHER = Slurm()
