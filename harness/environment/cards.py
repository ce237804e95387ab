"""GPUs while something runs on them: clock, power, memory and why they are slowed down, by an NVML that stays open.

`harness.environment.gpu` says once what they are. Reading makes no CUDA context, and may be done in any process.
"""

import functools
import importlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from harness.environment.gpu import asking, card_id, slowdowns, string, thousandths


@dataclass(frozen=True)
class CardReading:
    """One card at one instant; None for what it does not tell."""

    sm_clock_mhz: int | None
    power_w: float | None
    """By NVIDIA's documentation the mean of a second, on cards newer than GA100."""
    temperature_c: int | None
    memory_used_bytes: int | None
    """By all processes."""
    slowed: frozenset[str] | None
    """Why, in the words of `gpu.N.throttle_reasons`."""


class CardMemory(NamedTuple):
    """Bytes of one card's memory."""

    free: int
    total: int


class Cards:
    """The machine's GPUs by their id (`gpu.N.id`), through an initialised `pynvml`. Raises its NVMLError at first."""

    def __init__(self, nvml: Any) -> None:
        self._nvml, self._ask = nvml, asking(nvml)
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        named = [(card_id(string(self._ask(nvml.nvmlDeviceGetUUID, handle))), handle) for handle in handles]
        self._handles = {name: handle for name, handle in named if name is not None}

    @property
    def ids(self) -> tuple[str, ...]:
        """Of every card that tells its own."""
        return tuple(self._handles)

    def read(self, card: str) -> CardReading:
        """The card now."""
        nvml, ask, handle = self._nvml, self._ask, self._handles[card]
        return CardReading(
            sm_clock_mhz=ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
            power_w=thousandths(ask(nvml.nvmlDeviceGetPowerUsage, handle)),
            temperature_c=ask(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
            memory_used_bytes=getattr(ask(nvml.nvmlDeviceGetMemoryInfo, handle), "used", None),
            slowed=slowdowns(nvml, handle),
        )

    def energy_j(self, card: str) -> float | None:
        """Joules that the card has taken since its driver was loaded."""
        return thousandths(self._ask(self._nvml.nvmlDeviceGetTotalEnergyConsumption, self._handles[card]))

    def memory(self, card: str) -> CardMemory | None:
        """What is free of its memory."""
        found = self._ask(self._nvml.nvmlDeviceGetMemoryInfo, self._handles[card])
        return None if found is None else CardMemory(found.free, found.total)

    def process_memory(self, card: str, pids: Collection[int]) -> int | None:
        """Bytes of the card that these processes hold, CUDA's own and its libraries' included.

        None where they hold none or the driver does not tell: in a container it may know them by other numbers.
        """
        processes = self._ask(self._nvml.nvmlDeviceGetComputeRunningProcesses, self._handles[card]) or []
        return sum(one.usedGpuMemory or 0 for one in processes if one.pid in pids) or None


@functools.cache
def open_cards() -> Cards | None:
    """The machine's GPUs; None without NVML's bindings, a driver or a card. NVML stays open until this process ends."""
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
        cards = Cards(nvml)
    except nvml.NVMLError:
        return None
    return cards if cards.ids else None
