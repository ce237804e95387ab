"""Progress on a terminal: trials done, the current cell and phase, an ETA."""

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn
from rich.text import Text

from harness.record.trial import TrialRecord
from harness.run.progress import Eta, duration
from harness.spec.cell import Cell


class TerminalProgress:
    """A live line under the trials that ended badly, which scroll past as they happen."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._eta = Eta()
        self._bar = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[eta]:>12}"),
            TextColumn("{task.description}", markup=False),
            console=self._console,
            transient=True,
        )
        self._task: TaskID | None = None
        self._block = ""

    def started(self, run_id: str, total: int, estimate_s: float) -> None:
        """Show the bar."""
        self._eta.start(total, estimate_s)
        self._console.print(f"run {run_id}: {total} trials, about {duration(estimate_s)}", highlight=False)
        self._bar.start()
        self._task = self._bar.add_task("preparing data", total=total, eta="")

    def block(self, number: int, blocks: int, trials: int) -> None:
        """Name the block."""
        self._block = f"block {number + 1}/{blocks}"
        self._show(f"{self._block}, {trials} trials")

    def phase(self, cell: Cell, phase: str) -> None:
        """Name the cell and its phase."""
        self._show(f"{self._block} · {phase.replace('_', ' ')} · {cell.label}")

    def round(self, number: int, most: int, trials: int) -> None:
        """Name the round."""
        self._show(f"{self._block} · {trials} trials take turns · round {number + 1} of at most {most}")

    def ended(self, record: TrialRecord) -> None:
        """Advance; say it aloud when the trial did not end well."""
        self._eta.done += 1
        if record.status != "ok":
            style = {"wrong_result": "bold red", "unsupported": "yellow"}.get(record.status, "red")
            said = (record.status.replace("_", " "), style), f"  {record.cell.label}: {record.reason or ''}"
            self._console.print(Text.assemble(*said))  # in one go: the bar is drawn anew after each print
        if self._task is not None:
            self._bar.update(self._task, completed=self._eta.done)
        self._show(f"{self._block} · done · {record.cell.label}")

    def skipped(self, trials: int) -> None:
        """Fewer are left."""
        self.more(-trials)

    def more(self, trials: int) -> None:
        """More are left."""
        self._eta.total += trials
        if self._task is not None:
            self._bar.update(self._task, total=self._eta.total)

    def finished(self) -> None:
        """Take the bar away."""
        self._bar.stop()

    def _show(self, text: str) -> None:
        if self._task is not None:
            self._bar.update(self._task, description=text, eta=f"{self._eta.text()} left")
