"""Progress where there is no screen: plain lines, the figures so far before each block, folded in GitHub Actions."""

from typing import TextIO

from harness.record.trial import TrialRecord
from harness.run.progress import PlainLines
from harness.visible import no_command, one_line


class VerdictLines(PlainLines):
    """A line a trial, and before each block but the first what is known so far, where the last one changed it."""

    def __init__(self, out: TextIO | None = None) -> None:
        super().__init__(out)
        self._told: set[str] = set()

    def block(self, number: int, blocks: int, trials: int) -> None:
        """The figures so far, then the announcement."""
        from harness.report.terminal.interim import so_far, summary_so_far

        summary = summary_so_far(self.manifest, self.trials)
        for text in () if summary is None else so_far(summary):
            if text not in self._told:
                self._told.add(text)
                self._say(f"so far: {text}")
        super().block(number, blocks, trials)


class GitHubGroups(VerdictLines):
    """The lines of a block in a group that the log folds; what went wrong outside it, as an annotation.

    See "Workflow commands for GitHub Actions". The runner reads them from standard error as well.
    """

    def __init__(self, out: TextIO | None = None) -> None:
        super().__init__(out)
        self._open = False
        self._faults: dict[str, None] = {}

    def block(self, number: int, blocks: int, trials: int) -> None:
        """Close the last block's group and open this one's."""
        self._close()
        super().block(number, blocks, trials)
        self._open = True

    def ended(self, record: TrialRecord) -> None:
        """A line, and a wrong result for the annotations."""
        super().ended(record)
        if record.status not in ("ok", "unsupported"):
            ended = f"{record.status.replace('_', ' ')}: {record.reason or ''}"
            self._faults[f"{self.name_of(record.cell)}: {ended}"] = None

    def finished(self) -> None:
        """Close the last group, and say once what went wrong."""
        self._close()
        for fault in self._faults:
            self._command("warning", fault)

    def _close(self) -> None:
        if self._open:
            self._command("endgroup", "")
            self._open = False

    def _announce(self, text: str) -> None:
        self._command("group", text)

    def _command(self, name: str, text: str) -> None:
        super()._say(f"::{name}::" + _escaped(one_line(text)))

    def _say(self, text: str) -> None:
        """One line that the runner does not take for a command."""
        super()._say(no_command(one_line(text)))


def _escaped(text: str) -> str:
    return no_command(text).replace("%", "%25")
