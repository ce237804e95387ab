"""What a container or a scheduler leaves of the machine: cores by affinity and quota, memory by limit."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.environment.files import ROOT_FOLDER, fields, number, text

SELECTABLE = 1024
"""Descriptors that `select` can wait for, whatever more a process may open."""


def usable_cores() -> int:
    """Logical cores that this process may keep busy: affinity and cgroup quota, at least 1.

    A quota of 1.5 cores counts as 1: the second replica would be throttled half of the time.
    """
    quota = quota_cores()
    cores = affinity_cores()
    return max(1, cores if quota is None else min(cores, int(quota)))


def affinity_cores() -> int:
    """Logical cores that the scheduler may put this process on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def quota_cores(root: Path = ROOT_FOLDER) -> float | None:
    """Cores' worth of processor time that the tightest cgroup grants, or None without a quota."""
    quotas = []
    for folder in _cgroups("cpu", root):
        quota, period = (text(folder / "cpu.max") or "max").partition(" ")[::2]
        if quota == "max":  # version 1, or version 2 without a quota
            quota, period = (text(folder / f"cpu.cfs_{name}_us") or "-1" for name in ("quota", "period"))
        if quota.isdigit() and period.isdigit() and int(quota) > 0 and int(period) > 0:
            quotas.append(int(quota) / int(period))
    return min(quotas, default=None)


def throttled_periods(root: Path = ROOT_FOLDER) -> int | None:
    """Scheduler periods in which the quota stopped this cgroup so far, or None if not told."""
    for folder in _cgroups("cpu", root):
        counted = fields(folder / "cpu.stat", " ").get("nr_throttled", "")
        if counted.isdigit():
            return int(counted)
    return None


def memory_limit_bytes(root: Path = ROOT_FOLDER) -> int | None:
    """The tightest cgroup memory limit, or None when none is below the machine's memory."""
    import psutil

    total = psutil.virtual_memory().total
    limits = (_limit(folder) for folder in _cgroups("memory", root))
    return min((limit for limit in limits if limit is not None and limit < total), default=None)


def available_memory_bytes(root: Path = ROOT_FOLDER) -> int:
    """Bytes that new processes can take without swapping or being killed: the machine's and the cgroups'."""
    import psutil

    available = psutil.virtual_memory().available
    for folder in _cgroups("memory", root):
        limit, used = _limit(folder), _used(folder)
        if limit is not None and used is not None:
            available = min(available, max(0, limit - used))
    return int(available)


def own_peak_bytes(pids: Iterable[int]) -> int:
    """The most memory that processes of this machine have had, added up, less what each may share with its parent,
    which it was forked from. 0 where the system does not tell."""
    import psutil

    found = 0
    for pid in pids:
        with contextlib.suppress(psutil.Error):  # it is gone
            process = psutil.Process(pid)
            found += max(0, _peak(pid) - psutil.Process(process.ppid()).memory_info().rss)
    return found


def _peak(pid: int) -> int:
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)
    return 0


def free_descriptors() -> int:
    """Files and sockets that this process may open beside those that it has."""
    import resource

    import psutil

    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return int(min(most, SELECTABLE) - psutil.Process().num_fds())


def _limit(folder: Path) -> int | None:
    version_2 = number(folder / "memory.max")
    return number(folder / "memory.limit_in_bytes") if version_2 is None else version_2


def _used(folder: Path) -> int | None:
    """Bytes charged, less the file pages that the kernel drops before it kills anything."""
    version_2 = number(folder / "memory.current")
    charged = number(folder / "memory.usage_in_bytes") if version_2 is None else version_2
    if charged is None:
        return None
    name = "total_inactive_file" if version_2 is None else "inactive_file"
    droppable = fields(folder / "memory.stat", " ").get(name, "0")
    return max(0, charged - (int(droppable) if droppable.isdigit() else 0))


def _cgroups(controller: str, root: Path) -> Iterator[Path]:
    """Folders of this process's cgroup and all above it, in version 2 and in version 1.

    Inside a container the path in /proc/self/cgroup may be the host's and not exist here; the walk
    upwards then still ends at the root of the mount, which is the container's own cgroup.
    """
    mounts = root / "sys/fs/cgroup"
    for line in (text(root / "proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2) if line.count(":") >= 2 else ("", "-", "")
        if controllers == "":
            bases = [mounts, mounts / "unified"]
        elif controller in controllers.split(","):
            bases = [mounts / controller, mounts / controllers]
        else:
            continue
        base = next((base for base in bases if base.is_dir()), None)
        if base is None:
            continue
        folder = base / path.lstrip("/")
        yield folder
        while folder != base and base in folder.parents:
            folder = folder.parent
            yield folder
