"""Progress on a terminal: a table that is drawn between windows, never during one."""

import contextlib
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderResult
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType
from rich.text import Text

from harness.analysis import summarise
from harness.cli._expected import usual_noise
from harness.cli._screen import ENDS, Screen, by_cell, draw, heard_end
from harness.errors import HarnessError
from harness.record.manifest import RunManifest
from harness.record.trial import TrialRecord
from harness.report.terminal.interim import so_far
from harness.report.words.text import printable
from harness.run.progress.base import Timed, duration
from harness.spec.cell import Cell

EVERY_S = 1.0
"""While trials take turns the screen is drawn this often at most: drawing takes some milliseconds."""
SOON_S = 0.2
"""While trials are set up, this often at most."""
TICK_S = 0.5
"""How often it is looked at while nothing is timed, so that a resized terminal is filled and the time left runs."""


class TerminalProgress(Timed):
    """A live table under the trials that ended badly, which scroll past as they happen.

    It is drawn in the moments in which no trial is at the clock: before a window when the last drawing is a second
    old, and by a thread of its own while trials are set up.
    """

    def __init__(self, console: Console | None = None, results: Path | None = None) -> None:
        """`results` may hold an earlier run, which says what noise to expect."""
        super().__init__()
        self._console = console or Console(stderr=True)
        self._results = results
        self._screen = Screen()
        self._live: Live | None = None
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._timing = False
        """A window is being timed: nothing may be drawn."""
        self._drawn = 0.0
        self._left_then = 0.0
        """Seconds left when they were last reckoned, which was at `_reckoned`."""
        self._reckoned = 0.0
        self._size = self._console.size
        self._manifest: RunManifest | None = None
        self._trials: list[TrialRecord] = []

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """What is drawn, at the console's present size."""
        width, height = console.size
        yield draw(self._screen, width, height)

    def plan(self, manifest: RunManifest, earlier: Sequence[TrialRecord]) -> None:
        """Make a row for each cell."""
        super().plan(manifest, earlier)
        self._manifest, self._trials = manifest, list(earlier)
        self._screen.cells = by_cell(manifest.cells, [block for plan in manifest.plans for block in plan.blocks])
        for record in earlier:
            heard_end(self._screen.cells[record.cell_id], record)
        if self._results is not None:
            self._screen.expected_noise = usual_noise(self._results, manifest)
        self._judge()

    def started(self, run_id: str, total: int, estimate_s: float) -> None:
        """Show the table."""
        super().started(run_id, total, estimate_s)
        self._screen.total = total
        self._left_then, self._reckoned = estimate_s, time.monotonic()
        self._console.print(f"run {run_id}: {total} trials, about {duration(estimate_s)}", highlight=False)
        self._open()
        threading.Thread(target=self._tick, daemon=True).start()

    def block(self, number: int, blocks: int, trials: int) -> None:
        """Name the block; between groups there is time to judge what is known so far."""
        self._screen.block, self._screen.round = f"block {number + 1}/{blocks}", ""
        self._judge()
        self._show(f"{trials} trials")

    def group(self, cells: Sequence[Cell], later: Sequence[Sequence[Cell]]) -> None:
        """Those trials wait."""
        super().group(cells, later)
        for cell in cells:
            self._state(cell, "waiting")

    def phase(self, cell: Cell, phase: str) -> None:
        """Name the cell and its phase."""
        super().phase(cell, phase)
        self._timing = False
        self._state(cell, phase)
        self._show(f"{phase.replace('_', ' ')} · {cell.label}")

    def round(self, number: int, most: int, trials: int) -> None:
        """Name the round."""
        super().round(number, most, trials)
        self._screen.round = f"round {number + 1} of {'at most ' if number < 2 else ''}{most}"
        self._timing = False
        if number == 0:
            for row in self._screen.cells.values():
                row.state = "waiting" if row.state == "warmup" else row.state

    def turn(self, cell: Cell) -> None:
        """Draw, when it is time to, and then nothing more until the window is over."""
        self._state(cell, "at the clock")
        self._show(f"at the clock · {cell.label}", EVERY_S)
        with self._lock:  # what the thread is drawing at this moment is finished before the window begins
            self._timing = True

    def window(self, cell: Cell, seconds: float, steps: int) -> None:
        """Count the window."""
        super().window(cell, seconds, steps)
        self._timing = False
        if (row := self._screen.cells.get(cell.cell_id)) is not None:
            row.state, row.steps = "waiting", steps
            row.windows.append(seconds)

    def ended(self, record: TrialRecord) -> None:
        """Advance; say it aloud when the trial did not end well."""
        super().ended(record)
        self._timing = False
        self._trials.append(record)
        if record.cell_id in self._screen.cells:
            heard_end(self._screen.cells[record.cell_id], record)
        if record.status != "ok":
            style = ENDS.get(record.status, "red")
            reason = printable(f"{record.cell.label}: {record.reason or ''}")
            with self._lock, contextlib.suppress(OSError, ValueError):  # in one go: the table is drawn anew after it
                self._console.print(Text.assemble((record.status.replace("_", " "), style), f"  {reason}"))
        self._show(f"done · {record.cell.label}")

    def skipped(self, trials: int) -> None:
        """Fewer are left."""
        super().skipped(trials)
        for row in self._screen.cells.values():
            if row.state == "unsupported":
                row.total = row.done

    def finished(self) -> None:
        """Take the table away."""
        self._over.set()
        self._show(self._screen.now, 0.0)
        with self._lock, contextlib.suppress(OSError, ValueError):
            if self._live is not None:
                self._live.stop()
                self._live = None

    def _state(self, cell: Cell, state: str) -> None:
        if (row := self._screen.cells.get(cell.cell_id)) is not None:
            if state in ("start", "waiting") and row.state not in ("at the clock", "waiting", "warmup"):
                row.windows = []
            row.state = state

    def _judge(self) -> None:
        """What the records so far say. Never while a trial is at the clock: it may take a tenth of a second."""
        if self._manifest is None or not self._trials:
            return
        try:
            summary = summarise(self._manifest, self._trials)
        except HarnessError:
            return  # the report will say which record cannot be compared
        self._screen.verdict = so_far(summary)
        for cell in summary.cells:
            if cell.cell_id in self._screen.cells:
                self._screen.cells[cell.cell_id].leads = cell.place is not None and cell.place.with_best

    def _open(self) -> None:
        self._live = Live(
            self, console=self._console, auto_refresh=False, transient=True, redirect_stdout=False,
            redirect_stderr=False, vertical_overflow="crop",
        )  # fmt: skip
        with self._lock, contextlib.suppress(OSError, ValueError):
            self._live.start()

    def _tick(self) -> None:
        while not self._over.wait(TICK_S):
            with self._lock:
                if not self._timing:
                    self._draw(EVERY_S)

    def _show(self, now: str, every_s: float | None = None) -> None:
        self._screen.now = now
        every_s = SOON_S if every_s is None else every_s
        if time.monotonic() - self._drawn < every_s and self._console.size == self._size:
            return
        self._screen.done, self._screen.total = self._eta.done, self._eta.total
        self._left_then, self._reckoned = self._eta.left_s(), time.monotonic()
        with self._lock:
            self._draw(0.0)

    def _draw(self, every_s: float) -> None:
        """Draw, unless that was done in the last `every_s`. A terminal that is gone must not cost the measurement."""
        now = time.monotonic()
        size = self._console.size
        if self._live is None or (now - self._drawn < every_s and size == self._size):
            return
        self._drawn = now
        self._screen.left = duration(max(0.0, self._left_then - (now - self._reckoned)))
        with contextlib.suppress(OSError, ValueError):
            if size != self._size:
                self._size = size
                self._start_over()
            self._live.refresh()

    def _start_over(self) -> None:
        """On an empty screen: where the lines drawn before are now, each terminal decides for itself."""
        assert self._live is not None
        self._live.stop()
        self._console.control(Control(ControlType.CLEAR, ControlType.HOME))
        self._open()
