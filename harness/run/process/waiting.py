"""Which processes of a trial its parent still waits for: where a hang is not one process's own."""

from harness.run.process.cluster_report import Merged, Process

MOST_NAMED = 4


def awaited(merged: Merged) -> list[Process]:
    """The processes that have not said what they were asked for, servers only where the workers have."""
    silent = [process for process in merged.processes if process.outcome is None]
    if merged.asked is None:
        return [process for process in silent if not process.set_up]
    workers = [process for process in silent if not process.member.serves]
    if merged.asked in ("pilot", "window"):
        late = [p for p in workers if (p.ready if merged.asked == "pilot" else p.window) is None]
        return late or [process for process in silent if process.member.serves and process.used is None]
    return workers or silent


def awaited_words(merged: Merged) -> str:
    """`worker 1 in build has not reported`, or nothing where all have."""
    names = [f"{process.member.name} in {process.phase}" for process in awaited(merged)]
    if not names:
        return ""
    more = len(names) - MOST_NAMED
    shown = [*names[:MOST_NAMED], *([f"{more} more"] if more > 0 else [])]
    listed = f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else shown[0]
    return f"{listed} {'have' if len(names) > 1 else 'has'} not reported"
