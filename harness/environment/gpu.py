"""GPUs, without making a CUDA context: by NVML if its Python package is there, else by nvidia-smi.

NVML is NVIDIA's management library; `pip install 'tf-distribute-harness[gpu]'` brings its bindings.
"""

import hashlib
import importlib
import itertools
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.environment.fact import Fact, Facts
from harness.environment.files import ROOT_FOLDER, fields, text

_SMI_LIMIT_S = 5.0
_SMI_FIELDS = {
    "name": "name",
    "memory_bytes": "memory.total",
    "memory_used_bytes": "memory.used",
    "sm_clock_max_mhz": "clocks.max.sm",
    "sm_clock_mhz": "clocks.sm",
    "persistence": "persistence_mode",
    "mig": "mig.mode.current",
    "ecc": "ecc.mode.current",
    "power_limit_w": "power.limit",
    "power_limit_default_w": "power.default_limit",
    "temperature_c": "temperature.gpu",
    "utilization_percent": "utilization.gpu",
}
_PATHS = {
    0: "same card",
    10: "PIX",
    20: "PXB",
    30: "PHB",
    40: "NODE",
    50: "SYS",
}
"""What lies between two cards, by NVML's level, in the words of `nvidia-smi topo -m`: one PCIe bridge, several, the
host's, more than one host bridge of a NUMA node, the link between NUMA nodes."""
_SLOWDOWNS = {
    "HwSlowdown": "hardware slow-down",
    "HwThermalSlowdown": "too hot",
    "HwPowerBrakeSlowdown": "power brake",
    "SwThermalSlowdown": "too hot",
    "SwPowerCap": "power cap",
}

SLURM_GAVE = ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "SLURM_GPUS_ON_NODE")


def facts(root: Path = ROOT_FOLDER) -> Facts:
    """`gpu.count`, `gpu.source` and, for each GPU, `gpu.N.*`; sizes in bytes, clocks in MHz, power in W."""
    by_nvml = _by_nvml(root)
    if by_nvml is not None:
        return by_nvml
    if shutil.which("nvidia-smi") is not None:
        by_smi = _by_smi()
        if by_smi is not None:
            return by_smi
    return by_proc(root)


def _by_nvml(root: Path) -> Facts | None:
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:  # no driver, or no GPU in this container
        return None
    try:
        return read_nvml(nvml, root)
    except nvml.NVMLError:  # lost while it was being read
        return None
    finally:
        nvml.nvmlShutdown()


def read_nvml(nvml: Any, root: Path = ROOT_FOLDER) -> Facts:
    """Facts through an initialised `pynvml`. Raises its NVMLError when the library itself fails."""
    ask = asking(nvml)
    count = nvml.nvmlDeviceGetCount()
    found: Facts = {
        "gpu.count": count,
        "gpu.source": "nvml",
        "gpu.driver_version": string(ask(nvml.nvmlSystemGetDriverVersion)),
        "gpu.cuda_driver_version": ask(nvml.nvmlSystemGetCudaDriverVersion),
    }
    uuids: list[str | None] = []
    handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
    for index, handle in enumerate(handles):
        uuids.append(string(ask(nvml.nvmlDeviceGetUUID, handle)))
        device = {
            "id": card_id(uuids[-1]),
            **_nvml_device(nvml, handle, ask),
            **_errors(nvml, handle, ask),
            **_links(nvml, handle, ask, root),
        }
        found.update({f"gpu.{index}.{key}": value for key, value in device.items()})
    names = [found[f"gpu.{index}.name"] for index in range(count)]
    visible = visible_to_cuda(uuids, names, os.environ)
    if pairs := _pairs(nvml, handles, ask):
        found["gpu.topology"] = pairs
    return found | {f"gpu.{index}.visible": seen for index, seen in enumerate(visible)}


def asking(nvml: Any) -> Callable[..., Any]:
    """A function that asks one of NVML's: None for what a GPU does not have (a laptop's has no ECC, a MIG part no clock
    of its own)."""

    def ask(question: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return question(*arguments)
        except nvml.NVMLError:
            return None

    return ask


def visible_to_cuda(
    uuids: Sequence[str | None], names: Sequence[Fact], environment: Mapping[str, str]
) -> list[bool | None]:
    """Of each GPU, in NVML's order, whether CUDA_VISIBLE_DEVICES lets programs see it; None where that cannot be told.

    It has beginnings of UUIDs, or indices in CUDA's own order: NVML's where CUDA_DEVICE_ORDER says PCI_BUS_ID or all
    GPUs are of one kind, else the fastest first, which NVML does not know. The first entry that is none ends the list.
    """
    asked = environment.get("CUDA_VISIBLE_DEVICES")
    if asked is None:
        return [True] * len(uuids)
    ordered = environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID" or len(set(names)) <= 1
    seen: set[int] = set()
    for entry in (part.strip() for part in asked.split(",")):
        if entry.isdecimal():
            if not ordered:
                return [None] * len(uuids)
            found = [int(entry)] if int(entry) < len(uuids) else []
        elif entry.startswith("GPU-"):
            found = [index for index, uuid in enumerate(uuids) if uuid is not None and uuid.startswith(entry)]
        elif entry.startswith("MIG-"):
            return [None] * len(uuids)
        else:
            found = []
        if len(found) != 1:
            break
        seen.add(found[0])
    return [index in seen for index in range(len(uuids))]


def not_found(title: str, remedy: str, root: Path = ROOT_FOLDER) -> str:
    """Why a framework finds no GPU here, in one line; `remedy` is what may be wrong where a driver shows some."""
    seen = sorted(
        f"/{path.relative_to(root)}" for name in ("nvidia[0-9]*", "kfd") for path in (root / "dev").glob(name)
    )
    shown = f"though the machine shows {', '.join(seen)}: {remedy}"
    nothing = "and the machine shows none (no /dev/nvidia* or /dev/kfd)"
    return f"{title} finds no GPU, {shown if seen else nothing}{_of_slurm()}"


def _of_slurm() -> str:
    """What to ask Slurm for, where it is Slurm that gave this process no GPU; it names those that it gave a step."""
    if "SLURM_JOB_ID" not in os.environ or any(name in os.environ for name in SLURM_GAVE):
        return ""
    return "; Slurm gave this step none: ask for them, such as --slurm-args '--gpus-per-node=4'"


def card_id(uuid: str | None) -> str | None:
    """What tells a card from others of its kind and cannot be traced back to it."""
    return None if uuid is None else hashlib.sha256(uuid.encode()).hexdigest()[:12]


def _nvml_device(nvml: Any, handle: Any, ask: Callable[..., Any]) -> Facts:
    memory = ask(nvml.nvmlDeviceGetMemoryInfo, handle)
    used = ask(nvml.nvmlDeviceGetUtilizationRates, handle)
    return {
        "name": string(ask(nvml.nvmlDeviceGetName, handle)),
        "memory_bytes": getattr(memory, "total", None),
        "memory_used_bytes": getattr(memory, "used", None),
        "sm_clock_mhz": ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
        "sm_clock_max_mhz": ask(nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_SM),
        "memory_clock_mhz": ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_MEM),
        "persistence": _switch(ask(nvml.nvmlDeviceGetPersistenceMode, handle)),
        "mig": _switch(ask(nvml.nvmlDeviceGetMigMode, handle)),
        "ecc": _switch(ask(nvml.nvmlDeviceGetEccMode, handle)),
        "power_limit_w": thousandths(ask(nvml.nvmlDeviceGetPowerManagementLimit, handle)),
        "power_limit_default_w": thousandths(ask(nvml.nvmlDeviceGetPowerManagementDefaultLimit, handle)),
        "temperature_c": ask(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
        "utilization_percent": getattr(used, "gpu", None),
        "throttle_reasons": ", ".join(sorted(slowdowns(nvml, handle) or ())) or None,
    }


def _errors(nvml: Any, handle: Any, ask: Callable[..., Any]) -> Facts:
    """Memory errors that ECC could not correct in the card's life, and that it did correct since the driver's start."""
    kinds = {"uncorrected": (1, 1), "corrected": (0, 0)}  # NVML_MEMORY_ERROR_TYPE_*, NVML_{AGGREGATE,VOLATILE}_ECC
    return {f"ecc_{kind}": ask(nvml.nvmlDeviceGetTotalEccErrors, handle, *of) for kind, of in kinds.items()}


def _links(nvml: Any, handle: Any, ask: Callable[..., Any], root: Path) -> Facts:
    """How the card is reached: PCIe, NVLinks that are up, and the NUMA node whose memory is near."""
    capability = ask(nvml.nvmlDeviceGetCudaComputeCapability, handle)
    states = [ask(nvml.nvmlDeviceGetNvLinkState, handle, link) for link in range(nvml.NVML_NVLINK_MAX_LINKS)]
    place = getattr(ask(nvml.nvmlDeviceGetPciInfo, handle), "busId", None)
    return {
        "compute_capability": None if capability is None else ".".join(map(str, capability)),
        "pcie_generation_max": ask(nvml.nvmlDeviceGetMaxPcieLinkGeneration, handle),
        "pcie_lanes": ask(nvml.nvmlDeviceGetCurrPcieLinkWidth, handle),
        "nvlinks": None if set(states) <= {None} else sum(map(bool, states)),
        "numa_node": None if place is None else _numa_node(root, string(place) or ""),
    }


def _numa_node(root: Path, bus_id: str) -> int | None:
    """Of a PCIe device as NVML names it, `00000000:3B:00.0`, where sysfs has `0000:3b:00.0`; -1 there is no node."""
    found = text(root / "sys/bus/pci/devices" / bus_id.lower()[-12:] / "numa_node")
    return int(found) if found and found.isdecimal() else None


def _pairs(nvml: Any, handles: Sequence[Any], ask: Callable[..., Any]) -> str:
    """What lies between each two cards, `0-1 PIX, 0-2 SYS`; empty where nothing is told."""
    numbered = itertools.combinations(enumerate(handles), 2)
    levels = [(a, b, ask(nvml.nvmlDeviceGetTopologyCommonAncestor, one, other)) for (a, one), (b, other) in numbered]
    return ", ".join(f"{a}-{b} {_PATHS.get(level, level)}" for a, b, level in levels if level is not None)


def slowdowns(nvml: Any, handle: Any) -> frozenset[str] | None:
    """Why a GPU is slowed down now, in words; None where it does not tell."""
    bits = asking(nvml)(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
    if bits is None:
        return None
    reasons = _SLOWDOWNS.items()
    return frozenset(
        words for name, words in reasons if bits & int(getattr(nvml, f"nvmlClocksThrottleReason{name}", 0))
    )


def string(value: Any) -> str | None:
    """Text of NVML's, which older bindings give as bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _switch(value: Any) -> bool | None:
    """NVML gives 0 or 1, or a list of the mode now and the one after a restart."""
    now = value[0] if isinstance(value, (list, tuple)) else value
    return None if now is None else bool(now)


def thousandths(value: Any) -> float | None:
    """W of mW, J of mJ."""
    return None if value is None else value / 1000


def _by_smi() -> Facts | None:
    query = ",".join(["driver_version", *_SMI_FIELDS.values()])
    command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SMI_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return read_smi(done.stdout) if done.returncode == 0 else None


def read_smi(output: str) -> Facts:
    """Facts from `nvidia-smi --query-gpu=… --format=csv,noheader,nounits`."""
    rows = [[cell.strip() for cell in line.split(",")] for line in output.splitlines() if line.strip()]
    found: Facts = {"gpu.count": len(rows), "gpu.source": "nvidia-smi"}
    for index, (driver, *cells) in enumerate(rows):
        found["gpu.driver_version"] = driver
        for key, cell in zip(_SMI_FIELDS, cells, strict=False):
            found[f"gpu.{index}.{key}"] = _smi_value(key, cell)
    return found


def _smi_value(key: str, cell: str) -> Fact:
    if key == "name":
        return cell
    if cell in ("Enabled", "Disabled"):
        return cell == "Enabled"
    try:
        value = float(cell)
    except ValueError:  # [N/A], [Not Supported], [Unknown Error]
        return None
    if key.endswith("_bytes"):
        return int(value) * 2**20
    return value if key.endswith("_w") else int(value)


def by_proc(root: Path = ROOT_FOLDER) -> Facts:
    """Names only, from the kernel driver's /proc files; no GPU at all when there are none."""
    found: Facts = {"gpu.count": 0, "gpu.source": None}
    files = sorted((root / "proc/driver/nvidia/gpus").glob("*/information"))
    for index, file in enumerate(files):
        found[f"gpu.{index}.name"] = fields(file, ":").get("Model")
    if files:
        found |= {"gpu.count": len(files), "gpu.source": "/proc/driver/nvidia"}
    return found
