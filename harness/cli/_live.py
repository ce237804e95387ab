"""Progress on a terminal: a table that is drawn between windows, never during one."""

import contextlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console, RenderableType
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType
from rich.text import Text

from harness.cli._expected import usual_noise
from harness.cli._screen import ENDS, Screen, by_cell, draw
from harness.cli._streams import drawing_stream
from harness.record.manifest import RunManifest
from harness.record.trial import TrialRecord
from harness.report.terminal.interim import so_far, summary_so_far
from harness.run.progress.base import in_words
from harness.run.progress.eta import Timed
from harness.spec.work import Cell
from harness.visible import plural, printable

EVERY_S = 1.0
"""While trials take turns the screen is drawn this often at most: drawing takes some milliseconds."""
PER_S = 2.0
"""How often it is drawn while nothing is timed, so that a resized terminal is filled and the time left runs."""


class Display(Live):
    """Rich's live display, which stands still while it is held and starts anew where the terminal was resized."""

    def __init__(self, content: Callable[[], RenderableType], console: Console) -> None:
        super().__init__(
            get_renderable=content,
            console=console,
            refresh_per_second=PER_S,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )
        self.last_draw = 0.0
        self._still = False
        self._size = console.size

    def refresh(self) -> None:
        """Draw, unless held. A terminal that is gone must not cost the measurement."""
        with self._lock, contextlib.suppress(OSError, ValueError):
            if self._still:
                return
            self.last_draw = time.monotonic()
            if self.console.size != self._size:  # where the lines drawn before are now, each terminal decides
                self._size = self.console.size
                self.console.control(Control(ControlType.CLEAR, ControlType.HOME))
            super().refresh()

    def hold(self) -> None:
        """Draw nothing from now on: what the thread is drawing at this moment is finished first."""
        with self._lock:
            self._still = True

    def release(self) -> None:
        """Draw again."""
        self._still = False

    def say(self, text: str | Text) -> None:
        """A line that stays above the table, which is drawn anew below it."""
        with self._lock, contextlib.suppress(OSError, ValueError):
            self.console.print(text, highlight=False, markup=False, emoji=False)


class TerminalProgress(Timed):
    """A live table under the trials that ended badly, which scroll past as they happen.

    It is drawn in the moments in which no trial is at the clock: before a window when the last drawing is a second
    old, and by rich's thread while trials are set up.
    """

    def __init__(self, console: Console | None = None, results: Path | None = None) -> None:
        """`results` may hold an earlier run, which says what noise to expect."""
        super().__init__()
        console = console or Console(file=drawing_stream())
        self.screen = Screen()
        self.display = Display(lambda: draw(self.screen, *console.size), console)
        self._results = results
        self._manifest: RunManifest | None = None
        self._trials: list[TrialRecord] = []

    def plan(self, manifest: RunManifest, earlier: Sequence[TrialRecord]) -> None:
        """Make a row for each cell."""
        super().plan(manifest, earlier)
        self._manifest, self._trials = manifest, list(earlier)
        self.screen.cells = by_cell(manifest.cells, [block for plan in manifest.plans for block in plan.blocks])
        for record in earlier:
            self.screen.cells[record.cell_id].take(record)
        if self._results is not None:
            self.screen.expected_noise = usual_noise(self._results, manifest)
        self._look()

    def started(self, run_id: str, total: int, estimate_s: float, unknown: str = "") -> None:
        """Show the table."""
        super().started(run_id, total, estimate_s, unknown)
        self.display.say(f"run {run_id}: {plural(total, 'trial')}, {in_words(estimate_s, unknown)}")
        self._reckon()
        with contextlib.suppress(OSError, ValueError):
            self.display.start()

    def block(self, number: int, blocks: int, trials: int) -> None:
        """Name the block; between groups there is time to look at what is known so far."""
        self.screen.block = " · ".join(filter(None, (f"block {number + 1}/{blocks}", self.ahead)))
        self.screen.round = ""
        self.screen.now = plural(trials, "trial")
        self._look()
        self._reckon()

    def group(self, cells: Sequence[Cell], later: Sequence[Sequence[Cell]]) -> None:
        """Those trials wait."""
        super().group(cells, later)
        for cell in cells:
            self._state(cell, "waiting")

    def phase(self, cell: Cell, phase: str) -> None:
        """Name the cell and its phase."""
        super().phase(cell, phase)
        self._state(cell, phase)
        self.screen.now = f"{phase.replace('_', ' ')} · {self.name_of(cell)}"
        self._reckon()
        self.display.release()

    def round(self, number: int, rounds: int, trials: int) -> None:
        """Name the round."""
        super().round(number, rounds, trials)
        self.screen.round = f"round {number + 1} of {rounds}"
        if number == 0:
            for row in self.screen.cells.values():
                row.state = "waiting" if row.state == "warmup" else row.state

    def turn(self, cell: Cell, side: str | None = None) -> None:
        """Draw, when it is time to, and then nothing more until the window is over."""
        self._state(cell, "at the clock")
        self.screen.now = f"at the clock · {self.name_of(cell, side)}"
        if time.monotonic() - self.display.last_draw >= EVERY_S:
            self._reckon()
            self.display.refresh()
        self.display.hold()

    def window(self, cell: Cell, seconds: float, steps: int) -> None:
        """Count the window."""
        super().window(cell, seconds, steps)
        if (row := self.screen.cells.get(cell.cell_id)) is not None:
            row.state, row.steps = "waiting", steps
            row.windows.append(seconds)
        self.display.release()

    def ended(self, record: TrialRecord) -> None:
        """Advance; say it aloud when the trial did not end well."""
        super().ended(record)
        self._trials.append(record)
        if record.cell_id in self.screen.cells:
            self.screen.cells[record.cell_id].take(record)
        self.screen.now = f"done · {self.name_of(record.cell, record.side)}"
        self._reckon()
        self.display.release()
        if record.status != "ok":
            style = ENDS.get(record.status, "red")
            reason = printable(f"{self.name_of(record.cell)}: {record.reason or ''}")
            self.display.say(Text.assemble((record.status.replace("_", " "), style), f"  {reason}"))

    def skipped(self, trials: int) -> None:
        """Fewer are left."""
        super().skipped(trials)
        for row in self.screen.cells.values():
            if row.state == "unsupported":
                row.total = row.done

    def finished(self) -> None:
        """Take the table away."""
        self._reckon()
        self.display.release()
        self.display.refresh()
        with contextlib.suppress(OSError, ValueError):
            self.display.stop()

    def _state(self, cell: Cell, state: str) -> None:
        if (row := self.screen.cells.get(cell.cell_id)) is not None:
            if state in ("start", "waiting") and row.state not in ("at the clock", "waiting", "warmup"):
                row.windows = []
            row.state = state

    def _reckon(self) -> None:
        """Here, and not where it is drawn: that may be another thread."""
        self.screen.done, self.screen.total = self.done, self.total
        self.screen.ends = time.monotonic() + self.left_s()
        self.screen.least = "more than " if self.is_least else ""

    def _look(self) -> None:
        """Figures of the records so far. Never while a trial is at the clock: it may take a tenth of a second."""
        summary = summary_so_far(self._manifest, self._trials)
        if summary is None:
            return
        self.screen.so_far = so_far(summary)
        for cell in summary.cells:
            if cell.cell_id in self.screen.cells:
                self.screen.cells[cell.cell_id].leads = cell.place is not None and cell.place.rank == 1
