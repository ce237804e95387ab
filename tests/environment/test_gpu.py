"""GPU facts by NVML, by nvidia-smi and by the kernel driver's files, with a library that answers as NVIDIA's does."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.environment import gpu
from tests.environment.machine import lay_out
from tests.environment.nvml import fake_nvml, unsupported


def use(monkeypatch: pytest.MonkeyPatch, nvml: Any, smi: str | None = None) -> None:
    """Make `import pynvml` give this (None: not installed), and put nvidia-smi on the path or not."""
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.setattr("shutil.which", lambda _: smi)


def test_nvml_facts_have_units_and_none_for_what_the_gpu_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, fake_nvml())
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    facts = gpu.facts()
    assert facts["gpu.count"] == 1
    assert facts["gpu.source"] == "nvml"
    assert facts["gpu.driver_version"] == "570.1"
    told = {key.removeprefix("gpu.0."): value for key, value in facts.items() if key.startswith("gpu.0.")}
    assert len(told.pop("id")) == 12
    assert told == {
        "visible": True,
        "name": "NVIDIA H200",
        "memory_bytes": 150 * 10**9,
        "memory_used_bytes": 10**9,
        "sm_clock_mhz": 345,
        "sm_clock_max_mhz": 1980,
        "memory_clock_mhz": 3201,
        "persistence": True,
        "mig": False,
        "ecc": None,
        "power_limit_w": 650.0,
        "power_limit_default_w": 700.0,
        "temperature_c": 41,
        "utilization_percent": 3,
        "throttle_reasons": "power cap, too hot",
        "ecc_uncorrected": 2,
        "ecc_corrected": 5,
        "compute_capability": "9.0",
        "pcie_generation_max": 5,
        "pcie_lanes": 16,
        "nvlinks": 16,
        "numa_node": None,
    }
    assert "gpu.topology" not in facts


def test_how_cards_are_reached_and_what_lies_between_two_of_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use(monkeypatch, fake_nvml(nvmlDeviceGetCount=lambda: 3, nvmlDeviceGetNvLinkState=unsupported))
    nodes = {
        f"sys/bus/pci/devices/0000:{bus}:00.0/numa_node": f"{node}\n"
        for bus, node in (("3b", 0), ("3c", 1), ("3d", -1))
    }
    facts = gpu.facts(lay_out(tmp_path, nodes))
    assert facts["gpu.topology"] == "0-1 PIX, 0-2 SYS, 1-2 SYS"
    assert [facts[f"gpu.{index}.numa_node"] for index in range(3)] == [0, 1, None]
    assert facts["gpu.0.nvlinks"] is None


def test_without_bindings_or_driver_there_are_no_gpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for nvml in (None, fake_nvml(nvmlInit=unsupported), fake_nvml(nvmlDeviceGetCount=unsupported)):
        use(monkeypatch, nvml)
        assert gpu.facts(tmp_path) == {"gpu.count": 0, "gpu.source": None}


def test_nvidia_smi_is_asked_when_nvml_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, None, smi="/usr/bin/nvidia-smi")
    line = "570.1, NVIDIA H200, 143771, 1, 1980, 345, Enabled, Disabled, [N/A], 650.00, 700.00, 41, 3\n"
    asked: dict[str, Any] = {}

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        asked.update(options, columns=command[1].count(",") + 1)
        return subprocess.CompletedProcess(command, 0, stdout=line * 2, stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    facts = gpu.facts()
    assert asked["timeout"] == 5.0
    assert asked["columns"] == line.count(",") + 1
    assert (facts["gpu.count"], facts["gpu.source"]) == (2, "nvidia-smi")
    assert facts["gpu.1.name"] == "NVIDIA H200"
    assert facts["gpu.1.memory_bytes"] == 143771 * 2**20
    assert facts["gpu.1.persistence"] is True
    assert facts["gpu.1.ecc"] is None
    assert facts["gpu.1.power_limit_w"] == 650.0
    assert facts["gpu.1.temperature_c"] == 41


@pytest.mark.parametrize("fault", [subprocess.TimeoutExpired("nvidia-smi", 5), FileNotFoundError(), None])
def test_an_nvidia_smi_that_hangs_or_fails_leaves_the_kernel_drivers_word(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: Exception | None
) -> None:
    use(monkeypatch, None, smi="/usr/bin/nvidia-smi")

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        if fault is not None:
            raise fault
        return subprocess.CompletedProcess(command, 9, stdout="NVIDIA-SMI has failed", stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    root = lay_out(
        tmp_path, {"proc/driver/nvidia/gpus/0000:01:00.0/information": "Model: \t\t NVIDIA H200\nIRQ:   54\n"}
    )
    assert gpu.facts(root) == {
        "gpu.count": 1,
        "gpu.source": "/proc/driver/nvidia",
        "gpu.0.name": "NVIDIA H200",
    }


UUIDS = ["GPU-1a2b-c", "GPU-1a9f-d", "GPU-77ee-e"]
ALIKE, MIXED = ["A", "A", "A"], ["A", "B", "A"]


@pytest.mark.parametrize(
    ("asked", "visible"),
    [
        (None, [True, True, True]),
        ("", [False, False, False]),
        ("-1", [False, False, False]),
        ("2", [False, False, True]),
        ("2, 0", [True, False, True]),
        ("0,7,1", [True, False, False]),
        ("GPU-77ee-e,GPU-1a9f", [False, True, True]),
        ("GPU-1a,0", [False, False, False]),
        ("NoDevFiles", [False, False, False]),
        ("MIG-77ee", [None, None, None]),
    ],
)
def test_which_cards_programs_see_follows_cudas_variable_by_index_or_by_uuid(
    asked: str | None, visible: list[bool | None]
) -> None:
    environment = {} if asked is None else {"CUDA_VISIBLE_DEVICES": asked}
    assert gpu.visible_to_cuda(UUIDS, ALIKE, environment) == visible


def test_an_index_among_cards_of_several_kinds_tells_nothing_unless_cuda_counts_as_nvml_does() -> None:
    asked = {"CUDA_VISIBLE_DEVICES": "1"}
    assert gpu.visible_to_cuda(UUIDS, MIXED, asked) == [None, None, None]
    assert gpu.visible_to_cuda(UUIDS, MIXED, {**asked, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}) == [False, True, False]
    assert gpu.visible_to_cuda(UUIDS, MIXED, {"CUDA_VISIBLE_DEVICES": "GPU-77ee"}) == [False, False, True]


def test_a_record_tells_cards_of_one_kind_apart_without_their_uuids(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, fake_nvml(nvmlDeviceGetCount=lambda: 2))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    facts = gpu.facts()
    assert facts["gpu.0.id"] != facts["gpu.1.id"]
    assert "GPU-" not in str(facts)
    assert (facts["gpu.0.visible"], facts["gpu.1.visible"]) == (False, True)
