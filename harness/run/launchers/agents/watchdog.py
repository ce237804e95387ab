"""The sweep's end of a minder: a program, or a clean-up, that is seen to even when the sweep is killed."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MINDER = Path(__file__).with_name("watchdog_process.py")
END_LIMIT_S = 15.0
LOOK_EVERY_S = 0.02


@dataclass(frozen=True)
class WatchdogAnswer:
    """How a program ended, and what it said; `status` is None where it did not end in time."""

    status: int | None
    output: str = ""
    error: str = ""


class Watchdog:
    """`first` to its end, then `run` while this lives, then a while for `ending` to say nothing, then `afterwards`
    until `left` says nothing, then `remove` is gone; see `harness.run.launchers.agents.watchdog_process`."""

    def __init__(
        self,
        run: Sequence[str] = (),
        afterwards: Sequence[str] = (),
        remove: Sequence[Path] = (),
        environment: Mapping[str, str] | None = None,
        first: Sequence[str] = (),
        text: str = "",
        left: Sequence[str] = (),
        limit_s: float = END_LIMIT_S,
        patience_s: float = 0.0,
        ending: Sequence[str] = (),
    ) -> None:
        told = {
            "first": list(first),
            "text": text,
            "limit_s": limit_s,
            "run": list(run),
            "patience_s": patience_s,
            "ending": list(ending),
            "afterwards": list(afterwards),
            "left": list(left),
            "remove": [str(path) for path in remove],
        }
        self._limit_s = limit_s
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  it is read until this ends
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(MINDER), json.dumps(told)],
            env=None if environment is None else dict(environment),
            stdin=subprocess.PIPE,
            stdout=self._said,
            stderr=self._said,
            start_new_session=True,  # Ctrl-C is for the sweep, which then ends this in order
        )

    @property
    def status(self) -> int | None:
        """How the program ended, None while it runs."""
        return self._process.poll()

    def first_answer(self) -> WatchdogAnswer:
        """How `first` ended, once it has, or its limit is over."""
        deadline = time.monotonic() + self._limit_s + END_LIMIT_S
        while "\n" not in (text := self._text()) and self.status is None and time.monotonic() < deadline:
            time.sleep(LOOK_EVERY_S)
        line, ended, _ = text.partition("\n")
        return WatchdogAnswer(**json.loads(line)) if ended else WatchdogAnswer(None)

    def last_line(self) -> str:
        """The last line that the program has written."""
        lines = self._text().strip().splitlines()
        return lines[-1].strip() if lines else ""

    def _text(self) -> str:
        """All that has been written so far. The file's place is the writer's: reading must not move it."""
        written = self._said.fileno()
        return os.pread(written, os.fstat(written).st_size, 0).decode(errors="replace")

    def close(self) -> None:
        """Have the program ended and wait for the clean-up, which goes on by itself where it takes longer: a controller
        may be slow to take a job back."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_LIMIT_S)
        self._said.close()
