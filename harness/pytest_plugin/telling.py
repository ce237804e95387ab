"""What a run of pytest that measures says meanwhile, past pytest's capture: it takes minutes."""

import sys
from collections.abc import Callable

import pytest

from harness.record.trial import TrialRecord
from harness.run.progress.base import Progress, Quiet
from harness.run.progress.lines import PlainLines
from harness.visible import one_line

Say = Callable[[str], None]


def teller(config: pytest.Config) -> Say:
    """A function that prints a line past pytest's capture."""
    capture = config.pluginmanager.getplugin("capturemanager")

    def say(line: str) -> None:
        line = one_line(line)
        if capture is None:
            print(line, file=sys.stderr, flush=True)
            return
        with capture.global_and_fixture_disabled():
            print(line, file=sys.stderr, flush=True)

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
                self.done += 1

        def _say(self, text: str) -> None:
            say(text)

    return GateLines() if verbosity >= 0 else Quiet()
