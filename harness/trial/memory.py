"""How much memory a trial took."""

import sys
from pathlib import Path


def peak_memory_bytes() -> int | None:
    """The process's largest resident set since its start, shared pages of the zygote included."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
