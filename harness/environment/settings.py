"""Settings and conditions that change timings without changing the hardware."""

import os
from pathlib import Path

from harness.environment.fact import Facts
from harness.environment.files import ROOT_FOLDER, fields, number, text

STEAL_INTERVAL_S = 0.2


def facts(root: Path = ROOT_FOLDER) -> Facts:
    """Clock control, threads a core, load, swap and power; None where this system does not tell."""
    cpu = root / "sys/devices/system/cpu"
    return {
        "cpu.governor": _all_cores(cpu, "scaling_governor"),
        "cpu.frequency_driver": _all_cores(cpu, "scaling_driver"),
        "cpu.max_mhz": _max_mhz(cpu),
        "cpu.turbo": turbo(cpu),
        "cpu.smt": smt(cpu, root),
        "clock.source": text(root / "sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "memory.transparent_hugepages": chosen(text(root / "sys/kernel/mm/transparent_hugepage/enabled")),
        "memory.swap_used_bytes": _swap_used_bytes(root),
        "load.1min": _load(),
        "power.on_battery": _on_battery(),
    }


def turbo(cpu: Path) -> bool | None:
    """Whether cores may run above their base clock."""
    off = number(cpu / "intel_pstate/no_turbo")
    if off is not None:
        return off == 0
    boost = number(cpu / "cpufreq/boost")
    return None if boost is None else boost == 1


def smt(cpu: Path, root: Path) -> bool | None:
    """Whether cores share their execution units with a sibling, as far as this system shows."""
    active = number(cpu / "smt/active")
    if active is not None:
        return active == 1
    described = fields(root / "proc/cpuinfo", ":")
    siblings, cores = described.get("siblings", ""), described.get("cpu cores", "")
    if siblings.isdigit() and cores.isdigit():
        return int(siblings) > int(cores)
    return None


def chosen(options: str | None) -> str | None:
    """The bracketed word of `always [madvise] never`."""
    if options is None or "[" not in options:
        return options
    return options.partition("[")[2].partition("]")[0]


def stolen_ticks(root: Path = ROOT_FOLDER) -> tuple[int, int] | None:
    """Ticks of all processors since boot: those that the hypervisor gave to others, and all."""
    line = (text(root / "proc/stat") or "").partition("\n")[0].split()
    if len(line) < 9 or line[0] != "cpu":
        return None
    ticks = [int(count) for count in line[1:9]]  # guest time, further on, is already in user time
    return ticks[7], sum(ticks)


def steal_fraction(before: tuple[int, int] | None, after: tuple[int, int] | None) -> float | None:
    """Part of the processors' time between two readings that another virtual machine had."""
    if before is None or after is None or after[1] <= before[1]:
        return None
    return (after[0] - before[0]) / (after[1] - before[1])


def _all_cores(cpu: Path, name: str) -> str | None:
    values = {text(file) for file in cpu.glob(f"cpu[0-9]*/cpufreq/{name}")}
    return ", ".join(sorted(value for value in values if value)) or None


def _max_mhz(cpu: Path) -> int | None:
    highest = [number(file) or 0 for file in cpu.glob("cpu[0-9]*/cpufreq/cpuinfo_max_freq")]
    return max(highest, default=0) // 1000 or None


def _swap_used_bytes(root: Path) -> int | None:
    if not (root / "proc/swaps").exists():
        import psutil

        return int(psutil.swap_memory().used)
    sizes = (line.split() for line in (text(root / "proc/swaps") or "").splitlines()[1:])
    return sum(int(parts[3]) * 1024 for parts in sizes if len(parts) > 3 and parts[3].isdigit())


def _load() -> float | None:
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def _on_battery() -> bool | None:
    import psutil

    if not hasattr(psutil, "sensors_battery"):
        return None
    battery = psutil.sensors_battery()
    return None if battery is None or battery.power_plugged is None else not battery.power_plugged
