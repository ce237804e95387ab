"""What trials have left running, and have printed too much of, is said, and of whom where it can be only one."""

import sys
from collections import Counter
from collections.abc import Sequence

from harness.protocol.control import Death
from harness.protocol.messages import Request
from harness.run.progress import say_line
from harness.visible import without_secrets

TRIAL_LOG = "the log of a trial are left out; what a step prints is timed, too"
DATA_LOG = "the log of making data ready are left out"


class Leavings:
    """Of the trials of one fork server."""

    def __init__(self) -> None:
        self._alive_of: set[tuple[str, str]] = set()
        """The models of all trials since none was alive, or the data that are made ready, and their logs in words: what
        is left running is one of theirs."""
        self._told_long: set[tuple[str, str]] = set()
        """Of whose logs, and of which, it was said that some of them is left out."""

    def begun(self, request: Request) -> None:
        """A process for `request` is alive."""
        if request.task == "prepare":
            self._alive_of.add((f"data '{request.cell.data_set}'", DATA_LOG))
        else:
            self._alive_of.add((without_secrets(request.cell.subject), TRIAL_LOG))

    def tell(self, death: Death, of_last: bool) -> None:
        """Say what a process has left; `of_last` where none is alive any more."""
        names, logs = ({of[place] for of in self._alive_of} for place in (0, 1))
        who = names.pop() if len(names) == 1 else "a process"
        log = DATA_LOG if logs == {DATA_LOG} else TRIAL_LOG
        if death.left:
            say_line(f"harness: ended what {who} had left running: {_counted(death.left)}", sys.stderr)
        if death.stays:
            stays = f"what this user may not end, so that it stays: {_counted(death.stays)}"
            say_line(f"harness: {who} has left running {stays}", sys.stderr)
        if death.left_out and (who, log) not in self._told_long:
            self._told_long.add((who, log))
            say_line(f"harness: {who} prints too much: {death.left_out / 2**20:,.1f} MiB of {log}", sys.stderr)
        if of_last:
            self._alive_of.clear()


def _counted(processes: Sequence[str]) -> str:
    """Names of processes, with their number where one is that of several."""
    counts = Counter(processes).items()
    return ", ".join(name if count == 1 else f"{count} processes '{name}'" for name, count in counts)
