"""The processor, its caches and the memory."""

import hashlib
import os
import platform
import re
import subprocess
import sys
import uuid
from pathlib import Path

from harness.environment.fact import Facts
from harness.environment.files import ROOT_FOLDER, fields, text
from harness.environment.limits import (
    affinity_cores,
    available_memory_bytes,
    memory_limit_bytes,
    quota_cores,
    throttled_periods,
    usable_cores,
)

_VECTOR_FLAGS = ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8", "sve", "sve2", "bf16")
OF_MACHINE = "HARNESS_MACHINE"
"""The variable of the environment that names the machine, in place of what it would be told by."""
_CACHE_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


def facts(root: Path = ROOT_FOLDER) -> Facts:
    """`machine.*`, `cpu.*` and `memory.*`; sizes in bytes."""
    import psutil

    cpu = fields(root / "proc/cpuinfo", ":")
    model = processor_model(cpu)
    flags = set((cpu.get("flags") or cpu.get("Features") or "").split())
    memory = psutil.virtual_memory()
    return {
        "machine.id": machine_id(" ".join([str(model), *_version(cpu)]), root),
        "machine.product": _product(root),
        "cpu.model": model,
        "cpu.architecture": platform.machine() or None,
        "cpu.vector_flags": " ".join(flag for flag in _VECTOR_FLAGS if flag in flags) or None,
        "cpu.physical_cores": psutil.cpu_count(logical=False),
        "cpu.logical_cores": psutil.cpu_count(logical=True),
        "cpu.affinity_cores": affinity_cores(),
        "cpu.quota_cores": quota_cores(root),
        "cpu.usable_cores": usable_cores(),
        "cpu.throttled_periods": throttled_periods(root),
        "cpu.hypervisor": "hypervisor" in flags if flags else None,
        "cpu.numa_nodes": len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or None,
        **caches(root),
        "memory.total_bytes": memory.total,
        "memory.limit_bytes": memory_limit_bytes(root),
        "memory.available_bytes": available_memory_bytes(root),
    }


def processor_model(cpu: dict[str, str]) -> str | None:
    """The marketing name, or on Arm, where Linux gives none, the implementer and part numbers."""
    if sys.platform == "darwin":
        return _sysctl("machdep.cpu.brand_string")
    name = cpu.get("model name") or cpu.get("Processor") or cpu.get("cpu model")
    if name is None and "CPU part" in cpu:
        name = f"{platform.machine()} implementer {cpu.get('CPU implementer', '?')} part {cpu['CPU part']}"
    return name or platform.processor() or None


def _version(cpu: dict[str, str]) -> list[str]:
    """What tells processors apart whose hypervisor gives all of them one name, such as "AMD EPYC"."""
    return [cpu[key] for key in ("cpu family", "model", "stepping") if key in cpu]


def caches(root: Path = ROOT_FOLDER) -> Facts:
    """Bytes of the first core's data and unified caches by level."""
    found: Facts = {"cpu.l1d_bytes": None, "cpu.l2_bytes": None}
    found["cpu.l3_bytes"] = None
    for folder in sorted((root / "sys/devices/system/cpu/cpu0/cache").glob("index[0-9]*")):
        level, kind, size = (text(folder / name) or "" for name in ("level", "type", "size"))
        key = f"cpu.l{level}d_bytes" if level == "1" else f"cpu.l{level}_bytes"
        match = re.fullmatch(r"(\d+)([KMG]?)", size)
        if kind != "Instruction" and key in found and match:
            found[key] = int(match[1]) * _CACHE_UNITS.get(match[2], 1)
    return found


def machine_id(processor: str, root: Path = ROOT_FOLDER) -> str:
    """Twelve hexadecimal digits that stay the same on one machine and do not name it.

    The processor is hashed along, because machines cloned from one disk image share /etc/machine-id. Of a container
    without that file and a network card of its own it is that of any machine of its kind. OF_MACHINE names one.
    """
    own = os.environ.get(OF_MACHINE) or text(root / "etc/machine-id") or text(root / "var/lib/dbus/machine-id")
    own = own or _network_card() or _kind(root)
    return hashlib.sha256(f"tf-distribute-harness {own} {processor}".encode()).hexdigest()[:12]


def _network_card() -> str | None:
    """A network card's address; None of one that was made up: by Python, which finds none, for one process (the
    multicast bit; RFC 9562, 6.10), or for one container or virtual machine (the bit of local addresses beside it)."""
    node = uuid.getnode()
    return None if node >> 40 & 0b11 else f"{node:x}"


def _kind(root: Path) -> str:
    """What a container sees of the machine below it. Memory to a power of two: kernels keep some for themselves."""
    import psutil

    return f"{_product(root)} {psutil.cpu_count()} {psutil.virtual_memory().total.bit_length()}"


def _product(root: Path) -> str | None:
    """Vendor and product by the firmware; in a cloud this tells the kind of instance."""
    if sys.platform == "darwin":
        return _sysctl("hw.model")
    parts = (text(root / "sys/class/dmi/id" / name) for name in ("sys_vendor", "product_name"))
    firmware = " ".join(part for part in parts if part)
    return firmware or (text(root / "proc/device-tree/model") or "").rstrip("\0") or None


def _sysctl(name: str) -> str | None:
    try:
        done = subprocess.run(["sysctl", "-n", name], capture_output=True, text=True, timeout=1, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
