"""A real Slurm on two nodes, each a network namespace of this machine, started and stopped by whoever asks for it."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.run.network import EmulatedNetwork, available
from harness.spec.network import Network
from tests.run.network.conftest import link_of, members

NODES = ("node1", "node2")
HEAD = "head"
PROGRAMS = ("slurmctld", "slurmd", "munged", "srun", "sbatch", "scancel", "squeue", "sinfo", "nsenter", "unshare")
PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
START_LIMIT_S = 60.0
CONF = """
ClusterName=test
SlurmctldHost={head}(10.77.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmctldPort=6817
SlurmdPort=6818
SrunPortRange=60001-60050
MailProg=/bin/true
KillWait=2
{nodes}
PartitionName=main Nodes={names} Default=YES MaxTime=60 State=UP OverSubscribe=FORCE:4
"""


def lacking() -> str | None:
    """Why there can be no such cluster here, or None."""
    if os.geteuid() != 0:
        return "a Slurm in network namespaces needs root"
    missing = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    if missing:
        return f"no program {', '.join(missing)}: apt-get install slurm-wlm munge"
    return available()


@dataclass(frozen=True)
class SlurmCluster:
    """A running one. `environment` is for processes that use it, which `command` places on its head."""

    folder: Path
    namespaces: tuple[str, ...]
    """Of the head and of each node."""
    environment: dict[str, str]

    def command(self, *program: str, host: int = 0) -> list[str]:
        """What runs a program on the head (0) or a node, with the nodes' names in its /etc/hosts."""
        script = 'mount --bind "$0" /etc/hosts && exec "$@"'
        inside = ["unshare", "--mount", "sh", "-c", script, str(self.folder / "hosts"), *program]
        return ["nsenter", f"--net={self.namespaces[host]}", *inside]

    def run(self, *program: str, timeout: float = 60.0) -> "subprocess.CompletedProcess[str]":
        """Run a program on the head to its end."""
        return subprocess.run(
            self.command(*program), env=self.environment, capture_output=True, text=True, timeout=timeout, check=False
        )

    def jobs(self) -> list[str]:
        """The jobs that Slurm has, ended ones left out."""
        return self.run("squeue", "--noheader", "--format=%i %T %j").stdout.splitlines()

    def processes(self) -> list[int]:
        """All that runs on the nodes, but for their daemons."""
        found = []
        for namespace in self.namespaces[1:]:
            for pid in members(link_of(namespace)):
                name = Path(f"/proc/{pid}/comm")
                try:
                    said = name.read_text().strip()
                    command = Path(f"/proc/{pid}/cmdline").read_bytes()
                except OSError:
                    continue
                if said not in ("slurmd", "slurmstepd") and b"holder.py" not in command:
                    found.append(pid)
        return found


@contextmanager
def slurm_cluster(cpus: int = 2) -> Iterator[SlurmCluster]:
    """A Slurm with its controller on one host and a daemon on each of two others; nothing of it is left behind."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="slurm-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        network = stack.enter_context(EmulatedNetwork(Network(), hosts=1 + len(NODES)))
        namespaces = tuple(host.namespace for host in network.hosts)
        environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"), "PATH": PATH}
        cluster = SlurmCluster(folder, namespaces, environment)
        _configure(folder, [host.address for host in network.hosts], cpus)
        daemons: list[subprocess.Popen[bytes]] = []
        stack.callback(_end, daemons, [link_of(namespace) for namespace in namespaces])
        with (folder / "daemons.log").open("wb") as log:
            for command in _daemons(cluster):
                daemons.append(
                    subprocess.Popen(
                        ["setpriv", "--pdeathsig", "KILL", *command],
                        env=environment,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )
                )
                time.sleep(0.3)
        _await_nodes(cluster)
        yield cluster


def _configure(folder: Path, addresses: Sequence[str], cpus: int) -> None:
    here = socket.gethostname()
    nodes = "\n".join(
        f"NodeName={name} NodeHostname={here} NodeAddr={address} CPUs={cpus} RealMemory=1000 State=UNKNOWN"
        for name, address in zip(NODES, addresses[1:], strict=True)
    )
    (folder / "slurm.conf").write_text(CONF.format(head=here, folder=folder, nodes=nodes, names=",".join(NODES)))
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
    names = zip((f"{HEAD} {here}", *NODES), addresses, strict=True)
    (folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(f"{a} {name}\n" for name, a in names))
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o400)
    folder.chmod(0o755)
    for name in ("state", *(f"spool-{node}" for node in NODES)):
        (folder / name).mkdir()


def _daemons(cluster: SlurmCluster) -> Iterator[list[str]]:
    folder = cluster.folder
    yield [
        shutil.which("munged", path=PATH) or "munged",
        "--foreground",
        "--force",
        f"--key-file={folder}/munge.key",
        f"--socket={folder}/munge.socket",
        f"--pid-file={folder}/munged.pid",
        f"--seed-file={folder}/munged.seed",
        f"--log-file={folder}/munged.log",
    ]
    yield cluster.command("slurmctld", "-D", "-i", "-f", f"{folder}/slurm.conf")
    for number, node in enumerate(NODES, 1):
        yield cluster.command("slurmd", "-D", "-N", node, "-f", f"{folder}/slurm.conf", host=number)


def _await_nodes(cluster: SlurmCluster) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while (said := cluster.run("sinfo", "--noheader", "--format=%t %D").stdout.split()) != ["idle", str(len(NODES))]:
        if time.monotonic() > deadline:
            logs = "\n".join(path.read_text(errors="replace")[-1500:] for path in cluster.folder.glob("*.log"))
            raise AssertionError(f"Slurm did not start: {said}\n{logs}")
        time.sleep(0.2)


def _end(daemons: Sequence["subprocess.Popen[bytes]"], namespaces: Sequence[str]) -> None:
    """End the daemons, and whatever they have started and left."""
    for daemon in reversed(daemons):
        daemon.terminate()
    for daemon in reversed(daemons):
        try:
            daemon.wait(5)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
    for namespace in namespaces:
        for pid in members(namespace):
            if b"holder.py" not in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
