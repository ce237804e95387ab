"""What must be the same on every host, and where a process is."""

import functools
import hashlib
import os
import platform
import socket
from pathlib import Path

import harness
from harness.environment import usable_cores
from harness.environment.software import package_versions
from harness.run.launchers.agents.messages import Identity

PACKAGE = Path(harness.__file__).resolve().parent
TITLES = {"harness": "harness", "source": "the harness's files", "tensorflow": "TensorFlow", "keras": "Keras",
          "python": "Python"}  # fmt: skip
"""What must be the same; in this order the first difference is named first."""


def own_identity(address: str = "") -> Identity:
    """This process's. Nothing heavy is imported: versions come from the packages' metadata."""
    versions = package_versions()
    return Identity(
        harness=harness.__version__,
        source=source_digest(),
        tensorflow=versions.get("tensorflow") or "not installed",
        keras=versions.get("keras") or "not installed",
        python=platform.python_version(),
        host=socket.gethostname(),
        address=address,
        machine=_machine(),
        node=os.environ.get("SLURMD_NODENAME", "") if "SLURM_PROCID" in os.environ else "",
        confined=confined(usable_cores(), os.cpu_count() or 0),
    )


def unequal(ours: Identity, theirs: Identity) -> str | None:
    """What is not the same there as here, in words, or None."""
    different = [
        f"{title} is {getattr(theirs, key)} there and {getattr(ours, key)} here"
        for key, title in TITLES.items()
        if getattr(ours, key) != getattr(theirs, key)
    ]
    return "; ".join(different) or None


def confined(usable: int, there: int) -> str:
    """`1 of 64 processors` where a process may not use all of its host's, else nothing."""
    return f"{usable} of {there} processors" if usable < there else ""


@functools.cache
def source_digest() -> str:
    """Twelve hexadecimal digits over this package's Python files: two checkouts can have one version number."""
    digest = hashlib.sha256()
    for file in sorted(PACKAGE.rglob("*.py")):
        digest.update(str(file.relative_to(PACKAGE)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _machine() -> str:
    """The same for two processes that see each other in /proc; empty where that cannot be told."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        spaces = [Path(f"/proc/self/ns/{kind}").readlink() for kind in ("pid", "net", "user")]
    except OSError:
        return ""
    return " ".join([boot, str(os.geteuid()), *map(str, spaces)])
