"""What a run of pytest that measures says meanwhile, past pytest's capture: it takes minutes."""

import contextlib
import sys
from collections.abc import Callable

import pytest

from harness.record.trial import TrialRecord
from harness.run.progress import PlainLines, Progress, Quiet, say_line
from harness.visible import no_command

Say = Callable[[str], None]


def teller(config: pytest.Config) -> Say:
    """A function that prints a line past pytest's capture."""
    capture = config.pluginmanager.getplugin("capturemanager")

    def say(line: str) -> None:
        with contextlib.nullcontext() if capture is None else capture.global_and_fixture_disabled():
            say_line(no_command(line), sys.stderr)

    return say


def progress_lines(config: pytest.Config, say: Say) -> Progress:
    """Nothing with -q; a line a block; with -v a line a trial."""
    verbosity = config.get_verbosity()

    class GateLines(PlainLines):
        """The lines of a sweep in a pipe."""

        def ended(self, record: TrialRecord) -> None:
            if verbosity > 0 or record.status != "ok":
                super().ended(record)
            else:
                Progress.ended(self, record)

        def _say(self, text: str) -> None:
            say(text)

    return GateLines() if verbosity >= 0 else Quiet()
