"""What a process takes of the machine: processor time, page faults, memory."""

import resource
import sys
import time
from pathlib import Path

from harness.protocol.messages import Usage


def usage() -> Usage:
    """Of this process since its start, all of its threads. Page faults are minor ones: those that read no disk."""
    told = resource.getrusage(resource.RUSAGE_SELF)
    return Usage(cpu_seconds=time.process_time(), system_seconds=told.ru_stime, page_faults=told.ru_minflt)


def peak_memory_bytes() -> int | None:
    """The process's largest resident set since its start, shared pages of the zygote included."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
