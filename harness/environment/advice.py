"""Settings and conditions that make timings bad, each with what to do about it."""

from collections.abc import Callable, Mapping

from harness.environment.fact import Fact
from harness.visible import plural

_Facts = Mapping[str, Fact]

MOST_STEAL = 0.01
MOST_LOAD_PER_CORE = 0.5
LEAST_MEMORY_BYTES = 2 * 2**30
MOST_SWAP_BYTES = 64 * 2**20
FEW_CORES = 4
_SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies")


def warnings(facts: _Facts) -> list[str]:
    """One line for each bad setting in `facts`: what it is, what it does to timings, what to do."""
    found = [line for rule in _RULES if (line := rule(facts)) is not None]
    count = facts.get("gpu.count")
    for index in range(count if isinstance(count, int) else 0):
        found += _of_gpu(facts, index)
    return found


def _governor(facts: _Facts) -> str | None:
    governor = facts.get("cpu.governor")
    if governor is None or governor == "performance":
        return None
    return (
        f"the frequency governor is '{governor}', so the clock follows the load: "
        "set it with `sudo cpupower frequency-set -g performance`"
    )


def _turbo(facts: _Facts) -> str | None:
    if facts.get("cpu.turbo") is not True:
        return None
    return (
        "turbo is on, so the clock falls as more cores work and as they warm up, which looks like bad scaling: "
        "turn it off in the firmware, or with `echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo`"
    )


def _load(facts: _Facts) -> str | None:
    load, cores = _number(facts, "load.1min"), _number(facts, "cpu.usable_cores")
    if load is None or cores is None or load <= MOST_LOAD_PER_CORE * cores:
        return None
    return f"the load average is {load:g} on {cores:g} cores: stop other work, or wait until it has ended"


def _of_another_job(facts: _Facts) -> str | None:
    if facts.get("env.TF_CONFIG") is None:
        return None
    return "TF_CONFIG is set, and no trial sees it: clusters are those of --launcher; unset it"


def _quota(facts: _Facts) -> str | None:
    quota, cores = _number(facts, "cpu.quota_cores"), _number(facts, "cpu.affinity_cores")
    if quota is None or cores is None or quota >= cores:
        return None
    return (
        f"a cgroup quota grants {quota:g} of {cores:g} cores by stopping processes for part of each period: "
        "give whole cores instead (for docker `--cpuset-cpus` instead of `--cpus`)"
    )


def _smt(facts: _Facts) -> str | None:
    if facts.get("cpu.smt") is not True:
        return None
    return (
        "SMT is on, so two logical cores share one core's units: count physical cores as replicas, "
        "or turn it off with `echo off | sudo tee /sys/devices/system/cpu/smt/control`"
    )


def _virtual(facts: _Facts) -> str | None:
    if facts.get("cpu.hypervisor") is not True:
        return None
    return (
        "this is a virtual machine, whose neighbours and host settings are not visible: compare only cells of one run "
        "that took turns, and for figures to publish use a dedicated host"
    )


def _steal(facts: _Facts) -> str | None:
    steal = _number(facts, "cpu.steal_fraction")
    if steal is None or steal <= MOST_STEAL:
        return None
    return f"{steal:.0%} of the processor time goes to other virtual machines: use a dedicated host, or another time"


def _swap(facts: _Facts) -> str | None:
    used = _number(facts, "memory.swap_used_bytes")
    if used is None or used <= MOST_SWAP_BYTES:
        return None
    return f"{used / 2**20:.0f} MiB are swapped out: free memory, then `sudo swapoff -a && sudo swapon -a`"


def _memory(facts: _Facts) -> str | None:
    available = _number(facts, "memory.available_bytes")
    if available is None or available >= LEAST_MEMORY_BYTES:
        return None
    return (
        f"only {available / 2**30:.1f} GiB of memory are available, and a trial takes about 1: "
        "free memory, or let fewer trials live together with --live-trials"
    )


def _battery(facts: _Facts) -> str | None:
    if facts.get("power.on_battery") is not True:
        return None
    return "the machine runs on battery, which lowers its clock: plug it in"


def _clock(facts: _Facts) -> str | None:
    source = facts.get("clock.source")
    if source not in _SLOW_CLOCKS:
        return None
    return (
        f"the clock source is '{source}', which is slow to read: boot with `clocksource=tsc` if the processor has one"
    )


def _few_cores(facts: _Facts) -> str | None:
    cores = _number(facts, "cpu.usable_cores")
    if cores is None or cores >= FEW_CORES:
        return None
    noun = "core is" if cores == 1 else "cores are"
    return (
        f"only {cores:g} {noun} usable, so more than {cores:g} virtual devices share them: "
        "such cells show overhead, not scaling; use a larger machine for scaling"
    )


def _slow_variables(facts: _Facts) -> str | None:
    names = ("CUDA_LAUNCH_BLOCKING", "TF_DETERMINISTIC_OPS", "TF_DUMP_GRAPH_PREFIX", "NCCL_DEBUG", "MALLOC_PERTURB_")
    on = [name for name in names if facts.get(f"env.{name}") not in (None, "", "0", "false", "WARN", "VERSION")]
    if not on:
        return None
    return f"{', '.join(on)} slow every step: unset unless what is measured is their cost"


_RULES: tuple[Callable[[_Facts], str | None], ...] = (
    _load,
    _steal,
    _quota,
    _memory,
    _swap,
    _governor,
    _turbo,
    _smt,
    _battery,
    _virtual,
    _clock,
    _few_cores,
    _slow_variables,
    _of_another_job,
)


def _of_gpu(facts: _Facts, index: int) -> list[str]:
    if facts.get(f"gpu.{index}.visible") is False:
        return []  # whatever it does, no trial runs on it
    found = []
    reasons = facts.get(f"gpu.{index}.throttle_reasons")
    if reasons:
        found.append(f"GPU {index} is slowed down ({reasons}): see to its cooling and power before measuring")
    limit, usual = (_number(facts, f"gpu.{index}.power_limit{name}_w") for name in ("", "_default"))
    if limit is not None and usual is not None and limit < usual:
        found.append(
            f"GPU {index} is capped at {limit:g} W of {usual:g} W: "
            f"lift the cap with `sudo nvidia-smi -i {index} -pl {usual:g}`"
        )
    busy = _number(facts, f"gpu.{index}.utilization_percent")
    if busy is not None and busy > 10:
        found.append(f"GPU {index} is {busy:g} % busy with other work: stop it, or wait until it has ended")
    if facts.get(f"gpu.{index}.persistence") is False:
        found.append(
            f"GPU {index} is set up anew for each process: keep its driver loaded, `sudo nvidia-smi -i {index} -pm 1`"
        )
    if errors := _number(facts, f"gpu.{index}.ecc_uncorrected"):
        found.append(
            f"GPU {index} has had {plural(int(errors), 'memory error')} that could not be corrected: results may be "
            f"wrong; see `nvidia-smi -i {index} -q -d ECC,ROW_REMAPPER`"
        )
    if facts.get(f"gpu.{index}.mig") is True:
        found.append(f"GPU {index} is split into instances (MIG): its parts share power and memory bandwidth limits")
    return found


def _number(facts: _Facts, key: str) -> float | None:
    value = facts.get(key)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
