"""A library that answers as NVIDIA's NVML does, of cards that are not there."""

import types
from typing import Any

GIB = 2**30


class NVMLError(Exception):
    """As pynvml raises for what a GPU does not support."""


def unsupported(*_: object) -> Any:
    """A question that this GPU cannot answer."""
    raise NVMLError("Not Supported")


def fake_nvml(**changes: Any) -> Any:
    """A `pynvml` of one H200."""
    answers: dict[str, Any] = {
        "NVMLError": NVMLError,
        "NVML_CLOCK_SM": 1,
        "NVML_CLOCK_MEM": 2,
        "NVML_TEMPERATURE_GPU": 0,
        "nvmlClocksThrottleReasonSwPowerCap": 4,
        "nvmlClocksThrottleReasonHwSlowdown": 8,
        "nvmlClocksThrottleReasonSwThermalSlowdown": 32,
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetCount": lambda: 1,
        "nvmlSystemGetDriverVersion": lambda: b"570.1",
        "nvmlSystemGetCudaDriverVersion": lambda: 12080,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetName": lambda _: "NVIDIA H200",
        "nvmlDeviceGetUUID": lambda index: f"GPU-{index}a2b-c",
        "nvmlDeviceGetMemoryInfo": lambda _: types.SimpleNamespace(total=150 * 10**9, used=10**9),
        "nvmlDeviceGetUtilizationRates": lambda _: types.SimpleNamespace(gpu=3, memory=0),
        "nvmlDeviceGetClockInfo": lambda _, kind: {1: 345, 2: 3201}[kind],
        "nvmlDeviceGetMaxClockInfo": lambda _, kind: {1: 1980}[kind],
        "nvmlDeviceGetPersistenceMode": lambda _: 1,
        "nvmlDeviceGetMigMode": lambda _: [0, 1],
        "nvmlDeviceGetEccMode": unsupported,
        "nvmlDeviceGetTotalEccErrors": lambda _, kind, life: {(1, 1): 2, (0, 0): 5}[kind, life],
        "nvmlDeviceGetCudaComputeCapability": lambda _: (9, 0),
        "nvmlDeviceGetMaxPcieLinkGeneration": lambda _: 5,
        "nvmlDeviceGetCurrPcieLinkWidth": lambda _: 16,
        "NVML_NVLINK_MAX_LINKS": 18,
        "nvmlDeviceGetNvLinkState": lambda _, link: int(link < 16),
        "nvmlDeviceGetPciInfo": lambda index: types.SimpleNamespace(busId=f"00000000:{index + 59:02X}:00.0".encode()),
        "nvmlDeviceGetTopologyCommonAncestor": lambda one, other: 10 if one // 2 == other // 2 else 50,
        "nvmlDeviceGetPowerManagementLimit": lambda _: 650_000,
        "nvmlDeviceGetPowerManagementDefaultLimit": lambda _: 700_000,
        "nvmlDeviceGetTemperature": lambda *_: 41,
        "nvmlDeviceGetCurrentClocksThrottleReasons": lambda _: 1 | 4 | 32,
    }
    return types.SimpleNamespace(**(answers | changes))


def busy(**changes: Any) -> Any:
    """A `pynvml` of one H200 under load: two processes hold memory of it, one of which the driver does not tell."""
    answers: dict[str, Any] = {
        "nvmlDeviceGetMemoryInfo": lambda _: types.SimpleNamespace(total=140 * GIB, used=20 * GIB, free=120 * GIB),
        "nvmlDeviceGetPowerUsage": lambda _: 612_500,
        "nvmlDeviceGetTotalEnergyConsumption": lambda _: 7_000_250,
        "nvmlDeviceGetComputeRunningProcesses": lambda _: [
            types.SimpleNamespace(pid=11, usedGpuMemory=8 * GIB),
            types.SimpleNamespace(pid=12, usedGpuMemory=None),
        ],
    }
    return fake_nvml(**(answers | changes))
