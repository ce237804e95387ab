"""How a trial that raised has ended: which status, which reason, and the evidence."""

import os
import sysconfig
import traceback
from pathlib import Path

from harness.protocol.engine import Ending

EVIDENCE_CHARACTERS = 4000


def plain_ending(error: Exception) -> Ending:
    """(status, reason) for an exception that no framework has a meaning for; the reason is its first line."""
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    reason = f"{type(error).__name__}: {first}"
    if isinstance(error, MemoryError):
        return "out_of_memory", reason
    return ("unsupported" if isinstance(error, NotImplementedError) else "crashed"), reason


def traceback_without_paths() -> str:
    """The traceback being handled, its end, without where this machine keeps its files: records get sent around."""
    text = traceback.format_exc()
    for name in ("purelib", "platlib", "stdlib"):
        text = text.replace(sysconfig.get_path(name) + os.sep, "")
    return text.replace(str(Path.cwd()) + os.sep, "")[-EVIDENCE_CHARACTERS:]
