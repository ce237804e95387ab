"""Whether memory ran out on this machine: the kernel's own counters of the processes it ended for it."""

from pathlib import Path

SOURCES = (
    Path("/proc/vmstat"),
    Path("/sys/fs/cgroup/memory.events"),
    Path("/sys/fs/cgroup/memory/memory.oom_control"),
)


class OutOfMemoryCounter:
    """Compares the kernel's `oom_kill` counts now with those when it was made."""

    def __init__(self) -> None:
        self._before = _count()

    def grew(self) -> bool:
        """True when some process was ended for want of memory since."""
        return _count() > self._before


def _count() -> int:
    total = 0
    for source in SOURCES:
        try:
            lines = source.read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
    return total
