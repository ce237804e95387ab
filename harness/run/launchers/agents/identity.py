"""What must be the same on every host, and where a process is."""

import functools
import hashlib
import os
import platform
import socket
from collections.abc import Mapping
from pathlib import Path

from harness.environment import usable_cores
from harness.environment.software import package_versions
from harness.run.launchers.agents.messages import Identity
from harness.version import __version__

PACKAGE = Path(__file__).resolve().parents[3]
TITLES = {
    "harness": "harness",
    "source": "the harness's files",
    "tensorflow": "TensorFlow",
    "keras": "Keras",
    "python": "Python",
}
"""What must be the same; in this order the first difference is named first."""

VARIABLES = (
    "TF_USE_LEGACY_KERAS",
    "KERAS_BACKEND",
    "XLA_FLAGS",
    "TF_XLA_FLAGS",
    "TF_ENABLE_ONEDNN_OPTS",
    "TF_DETERMINISTIC_OPS",
    "TF_CUDNN_DETERMINISTIC",
    "NVIDIA_TF32_OVERRIDE",
    "TF_ENABLE_AUTO_MIXED_PRECISION",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
    "TF_GPU_THREAD_MODE",
    "TF_GPU_THREAD_COUNT",
    "TF_GPU_ALLOCATOR",
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
    "FI_PROVIDER",
    "DTENSOR_GPU_USE_NCCL_COMMUNICATION",
)
"""Variables that change what a step computes or how fast, and that mean the same on every host. Others, such as which
GPUs are visible or which network card NCCL takes, are a host's own affair."""
LONGEST_VALUE = 200


def own_identity(address: str = "") -> Identity:
    """This process's. Nothing heavy is imported: versions come from the packages' metadata."""
    versions = package_versions()
    return Identity(
        harness=__version__,
        source=source_digest(),
        tensorflow=versions.get("tensorflow") or "not installed",
        keras=versions.get("keras") or "not installed",
        python=platform.python_version(),
        host=socket.gethostname(),
        address=address,
        machine=_machine(),
        node=os.environ.get("SLURMD_NODENAME", "") if "SLURM_PROCID" in os.environ else "",
        confined=confined(usable_cores(), os.cpu_count() or 0),
        variables=telling_variables(os.environ),
    )


def unequal(ours: Identity, theirs: Identity) -> str | None:
    """What is not the same there as here, in words, or None."""
    different = [
        f"{title} is {getattr(theirs, key)} there and {getattr(ours, key)} here"
        for key, title in TITLES.items()
        if getattr(ours, key) != getattr(theirs, key)
    ]
    names = sorted({*ours.variables, *theirs.variables})
    variable = next((name for name in names if ours.variables.get(name) != theirs.variables.get(name)), None)
    if variable is not None:
        there, here = (side.variables.get(variable, "not set") for side in (theirs, ours))
        different.append(f"{variable} is {there} there and {here} here")
    return "; ".join(different) or None


def confined(usable: int, there: int) -> str:
    """`1 of 64 processors` where a process may not use all of its host's, else nothing."""
    return f"{usable} of {there} processors" if usable < there else ""


def telling_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Those of VARIABLES that are set to something; a long value ends in a digest of it."""
    found = {}
    for name in sorted(VARIABLES):
        if value := environment.get(name, "").strip():
            data = value.encode("utf-8", "backslashreplace")
            digest = hashlib.sha256(data).hexdigest()[:12]
            text = data.decode()
            found[name] = text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}… (SHA-256 {digest}…)"
    return found


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
