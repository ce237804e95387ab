"""What must be the same on every host, and where a process is."""

import hashlib
import os
import platform
import socket
from collections.abc import Mapping
from pathlib import Path

from harness.environment import usable_cores
from harness.environment.software import package_versions
from harness.run.launchers.agents.messages import Equipment, Identity
from harness.run.process.interpreters import examine
from harness.run.process.sources import source_digest
from harness.trial.engines import DEFAULT, engine_of, software_of
from harness.version import __version__

VARIABLES = (
    "XLA_FLAGS",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "NCCL_ALGO",
    "NCCL_PROTO",
    "NCCL_P2P_DISABLE",
    "NCCL_P2P_LEVEL",
    "NCCL_SHM_DISABLE",
    "NCCL_IB_DISABLE",
    "NCCL_IB_QPS_PER_CONNECTION",
    "NCCL_NET",
    "NCCL_NET_GDR_LEVEL",
    "FI_PROVIDER",
    "FI_EFA_USE_DEVICE_RDMA",
)
"""Variables that change what a step of any engine computes or how fast, and that mean the same on every host. Others,
such as which GPUs are visible or which network card NCCL takes, are a host's own affair."""
LONGEST_VALUE = 200


def own_identity(address: str = "") -> Identity:
    """This process's. Nothing heavy is imported: versions come from the packages' metadata."""
    versions = package_versions()
    software = software_of(engine_of(DEFAULT))
    return Identity(
        harness=__version__,
        source=source_digest(),
        packages={title: versions.get(name) or "not installed" for name, title in software.titles.items()},
        python=platform.python_version(),
        host=socket.gethostname(),
        address=address,
        machine=own_machine(),
        node=os.environ.get("SLURMD_NODENAME", "") if "SLURM_PROCID" in os.environ else "",
        confined=confined(usable_cores(), os.cpu_count() or 0),
        variables=telling_variables(os.environ),
    )


def equipment_of(engine: str, python: str) -> Equipment:
    """Of an engine whose trials run in the interpreter at this path, on this host."""
    software = software_of(engine_of(engine))
    interpreter = examine(python, f"engine {engine}", software)
    variables = telling_variables(os.environ, engine)
    return Equipment(packages=dict(interpreter.packages), python=interpreter.version, variables=variables)


def unequal(ours: Equipment, theirs: Equipment) -> str | None:
    """What is not the same there as here, in words, or None."""
    there, here = _versions(theirs), _versions(ours)
    different = [
        f"{title} is {there.get(title)} there and {version} here"
        for title, version in here.items()
        if there.get(title) != version
    ]
    names = sorted({*ours.variables, *theirs.variables})
    variable = next((name for name in names if ours.variables.get(name) != theirs.variables.get(name)), None)
    if variable is not None:
        set_there, set_here = (side.variables.get(variable, "not set") for side in (theirs, ours))
        different.append(f"{variable} is {set_there} there and {set_here} here")
    return "; ".join(different) or None


def _versions(of: Equipment) -> dict[str, str]:
    """What must be the same, by its title; in this order the first difference is named first."""
    own = {"harness": of.harness, "the harness's files": of.source} if isinstance(of, Identity) else {}
    return {**own, **of.packages, "Python": of.python}


def confined(usable: int, there: int) -> str:
    """`1 of 64 processors` where a process may not use all of its host's, else nothing."""
    return f"{usable} of {there} processors" if usable < there else ""


def told_variables(engine: str = DEFAULT) -> tuple[str, ...]:
    """Names of the variables that must be the same on every host: VARIABLES, and an engine's own."""
    return (*software_of(engine_of(engine)).variables, *VARIABLES)


def telling_variables(environment: Mapping[str, str], engine: str = DEFAULT) -> dict[str, str]:
    """Those of `told_variables` that are set to something; a long value ends in a digest of it."""
    found = {}
    for name in sorted(told_variables(engine)):
        if value := environment.get(name, "").strip():
            data = value.encode("utf-8", "backslashreplace")
            digest = hashlib.sha256(data).hexdigest()[:12]
            text = data.decode()
            found[name] = text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}… (SHA-256 {digest}…)"
    return found


def own_machine() -> str:
    """The same for two processes that see each other in /proc; empty where that cannot be told."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        spaces = [Path(f"/proc/self/ns/{kind}").readlink() for kind in ("pid", "net", "user")]
    except OSError:
        return ""
    return " ".join([boot, str(os.geteuid()), *map(str, spaces)])
