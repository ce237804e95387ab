"""The sweep's end of a minder: a program, or a clean-up, that is seen to even when the sweep is killed."""

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

MINDER = Path(__file__).with_name("minder.py")
END_LIMIT_S = 15.0


class Minded:
    """`run` while this lives, then `afterwards`, then `remove` is gone; see `harness.run.launchers.agents.minder`."""

    def __init__(
        self,
        run: Sequence[str] = (),
        afterwards: Sequence[str] = (),
        remove: Sequence[Path] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        told = {"run": list(run), "afterwards": list(afterwards), "remove": [str(path) for path in remove]}
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

    def last_line(self) -> str:
        """The last line that the program has written."""
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""

    def close(self, wait_s: float = 0.0) -> None:
        """Give the program `wait_s` to end by itself, then end it, and wait for the clean-up."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(wait_s)
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(END_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._said.close()
