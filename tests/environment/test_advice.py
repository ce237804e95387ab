"""Each bad setting is told once, with what to do; a good machine is told nothing."""

import pytest

from harness.environment import Fact, warnings

GOOD: dict[str, Fact] = {
    "cpu.governor": "performance",
    "cpu.turbo": False,
    "cpu.smt": False,
    "cpu.hypervisor": False,
    "cpu.usable_cores": 16,
    "cpu.affinity_cores": 16,
    "cpu.quota_cores": None,
    "cpu.steal_fraction": 0.0,
    "load.1min": 0.3,
    "memory.available_bytes": 2**36,
    "memory.swap_used_bytes": 0,
    "power.on_battery": False,
    "clock.source": "tsc",
    "gpu.count": 1,
    "gpu.0.persistence": True,
    "gpu.0.mig": False,
    "gpu.0.power_limit_w": 700.0,
    "gpu.0.power_limit_default_w": 700.0,
    "gpu.0.utilization_percent": 0,
    "gpu.0.throttle_reasons": None,
}


def test_a_good_machine_has_no_warnings() -> None:
    assert warnings(GOOD) == []


def test_a_machine_of_which_nothing_is_known_has_no_warnings() -> None:
    assert warnings({}) == []
    assert warnings(dict.fromkeys(GOOD)) == []


@pytest.mark.parametrize(
    ("change", "says", "remedy"),
    [
        ({"cpu.governor": "powersave"}, "governor is 'powersave'", "cpupower frequency-set -g performance"),
        ({"cpu.governor": "performance, powersave"}, "governor", "cpupower"),
        ({"cpu.turbo": True}, "turbo is on", "no_turbo"),
        ({"cpu.smt": True}, "SMT is on", "smt/control"),
        ({"cpu.hypervisor": True}, "virtual machine", "dedicated host"),
        ({"cpu.usable_cores": 2}, "only 2 cores are usable", "larger machine"),
        ({"cpu.usable_cores": 1}, "only 1 core is usable", "larger machine"),
        ({"cpu.quota_cores": 7.5}, "grants 7.5 of 16 cores", "--cpuset-cpus"),
        ({"cpu.steal_fraction": 0.08}, "8% of the processor time", "dedicated host"),
        ({"load.1min": 9.0}, "load average is 9 on 16 cores", "stop other work"),
        ({"memory.available_bytes": 2**30}, "only 1.0 GiB", "--live-trials"),
        ({"memory.swap_used_bytes": 2**28}, "256 MiB are swapped out", "swapoff"),
        ({"power.on_battery": True}, "battery", "plug it in"),
        ({"clock.source": "hpet"}, "clock source is 'hpet'", "clocksource=tsc"),
        ({"env.CUDA_LAUNCH_BLOCKING": "1"}, "CUDA_LAUNCH_BLOCKING slow every step", "unset"),
        ({"env.TF_CONFIG": "(set)"}, "no trial sees it", "unset"),
        ({"gpu.0.persistence": False}, "GPU 0 is set up anew", "-pm 1"),
        ({"gpu.0.power_limit_w": 400.0}, "capped at 400 W of 700 W", "-pl 700"),
        ({"gpu.0.throttle_reasons": "too hot"}, "slowed down (too hot)", "cooling"),
        ({"gpu.0.utilization_percent": 55}, "55 % busy", "stop it"),
        ({"gpu.0.ecc_uncorrected": 2}, "GPU 0 has had 2 memory errors", "nvidia-smi -i 0 -q -d ECC"),
        ({"gpu.0.mig": True}, "MIG", "share"),
    ],
)
def test_a_bad_setting_is_told_with_its_remedy(change: dict[str, Fact], says: str, remedy: str) -> None:
    (line,) = warnings(GOOD | change)
    assert says in line
    assert remedy in line
    assert "\n" not in line


@pytest.mark.parametrize(
    "change",
    [
        {"cpu.steal_fraction": 0.005},
        {"load.1min": 8.0},
        {"cpu.quota_cores": 16.0},
        {"memory.swap_used_bytes": 2**20},
        {"env.CUDA_LAUNCH_BLOCKING": "0"},
        {"env.NCCL_DEBUG": "WARN"},
        {"cpu.usable_cores": 4},
    ],
)
def test_what_stays_within_bounds_is_not_told(change: dict[str, Fact]) -> None:
    assert warnings(GOOD | change) == []


def test_of_a_gpu_that_no_trial_may_see_nothing_is_advised() -> None:
    slow = {"gpu.count": 2, "gpu.0.throttle_reasons": "too hot", "gpu.1.throttle_reasons": "too hot"}
    assert len(warnings(slow)) == 2
    [only] = warnings({**slow, "gpu.0.visible": False, "gpu.1.visible": True})
    assert only.startswith("GPU 1 is slowed down")
