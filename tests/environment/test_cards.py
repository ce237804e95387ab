"""GPUs that are read while something runs, by a library that answers as NVIDIA's does; no GPU is needed."""

import ctypes
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from harness.environment import cuda, gpu
from harness.environment.cards import CardMemory, CardReading, Cards, open_cards
from tests.environment.nvml import GIB, busy, unsupported


@pytest.fixture(autouse=True)
def unopened() -> Iterator[None]:
    """What one test has opened is not the next one's."""
    open_cards.cache_clear()
    yield
    open_cards.cache_clear()


def test_a_card_tells_clock_power_heat_memory_and_why_it_is_slowed_down() -> None:
    found = Cards(busy())
    [card] = found.ids
    assert found.read(card) == CardReading(345, 612.5, 41, 20 * GIB, frozenset({"power cap", "too hot"}))
    assert found.energy_j(card) == 7000.25
    assert found.memory(card) == CardMemory(120 * GIB, 140 * GIB)


def test_what_a_card_does_not_tell_is_not_known_and_costs_nothing_else() -> None:
    needed = ("nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetUUID")
    asked = [name for name in vars(busy()) if name.startswith("nvmlDeviceGet") and name not in needed]
    found = Cards(busy(**dict.fromkeys(asked, unsupported)))
    [card] = found.ids
    assert found.read(card) == CardReading(None, None, None, None, None)
    assert (found.energy_j(card), found.memory(card), found.process_memory(card, {11})) == (None, None, None)


def test_the_driver_says_what_a_process_holds_unless_it_knows_it_by_another_number() -> None:
    found = Cards(busy())
    [card] = found.ids
    assert found.process_memory(card, {11, 12}) == 8 * GIB
    assert found.process_memory(card, {12}) is None
    assert found.process_memory(card, {99}) is None


def test_a_card_has_the_id_that_the_facts_of_its_machine_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", busy())
    assert gpu.facts()["gpu.0.id"] == Cards(busy()).ids[0]


def test_nvml_is_opened_once_and_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    library = busy(nvmlInit=lambda: opened.append("opened"), nvmlShutdown=lambda: opened.append("closed"))
    monkeypatch.setitem(sys.modules, "pynvml", library)
    assert open_cards() is open_cards() is not None
    assert opened == ["opened"]


@pytest.mark.parametrize(
    "nvml",
    [
        None,
        busy(nvmlInit=unsupported),
        busy(nvmlDeviceGetCount=unsupported),
        busy(nvmlDeviceGetCount=lambda: 0),
        busy(nvmlDeviceGetUUID=unsupported),
    ],
)
def test_without_bindings_driver_or_a_card_that_can_be_told_there_is_nobody_to_ask(
    monkeypatch: pytest.MonkeyPatch, nvml: Any
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    assert open_cards() is None


class Driver:
    """CUDA's driver, of which a framework has started as many devices as there are UUIDs."""

    def __init__(self, *uuids: bytes) -> None:
        self._uuids = uuids

    def cuDeviceGet(self, device: Any, ordinal: ctypes.c_int) -> int:  # noqa: N802
        device._obj.value = ordinal.value
        return 0 if ordinal.value < len(self._uuids) else 101

    def cuDeviceGetUuid(self, raw: Any, device: ctypes.c_int) -> int:  # noqa: N802
        raw[:] = self._uuids[device.value]
        return 0


def test_cuda_says_which_card_a_number_is_whatever_the_order_that_nvml_has(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = bytes(range(16)), bytes(range(16, 32))
    monkeypatch.setattr(ctypes, "CDLL", lambda _: Driver(second, first))
    assert cuda.card_at(0) == gpu.card_id("GPU-10111213-1415-1617-1819-1a1b1c1d1e1f")
    assert cuda.card_at(1) == gpu.card_id("GPU-00010203-0405-0607-0809-0a0b0c0d0e0f")
    assert cuda.card_at(2) is None


def test_without_a_driver_no_card_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "DRIVER", "libcuda-that-is-not-there.so.1")
    assert cuda.card_at(0) is None
