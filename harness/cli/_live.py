"""Progress on a terminal: a table that is drawn between windows, never during one, and fits any width and height."""

import contextlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType
from rich.table import Table
from rich.text import Text

from harness.analysis.cells import Measured
from harness.analysis.estimates.intervals import cell_estimate
from harness.analysis.estimates.noise_now import noise_of, pooled_noise, usual_noise, window_noise
from harness.analysis.summary import CellSummary, planned_trials
from harness.cli._streams import drawing_stream
from harness.record.manifest import RunManifest
from harness.record.trial import TrialRecord
from harness.report.terminal.interim import so_far, summary_so_far
from harness.report.words.text import shortened, significant
from harness.run.progress import Progress, duration, in_words
from harness.spec.work import Cell, quantity_of
from harness.visible import plural, printable

EVERY_S = 1.0
"""While trials take turns the screen is drawn this often at most: drawing takes some milliseconds."""
PER_S = 2.0
"""How often it is drawn while nothing is timed, so that a resized terminal is filled and the time left runs."""
WIDE, MEDIUM = 92, 58
"""Columns from which all columns of the table have room, and from which all but two have."""
_STYLES = {"wrong result": "bold red", "unproved": "yellow", "unsupported": "yellow", "ok": "green"}
_BUSY = 2.0
"""The machine is said to be noisier than expected from this factor on."""
_SETTLING = 3
"""Windows of a trial that are not looked at for noise: it warms up."""
_WORDS = {"first_step": "first step", "start": "starting", "warmup": "pilot"}
_LIVE = ("at the clock", "waiting")


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


@dataclass
class CellState:
    """What is known of a cell."""

    cell: Cell
    name: str
    """What tells it from the other cells of the run."""
    planned: int
    ended: int = 0
    state: str = ""
    """What the latest trial does, or how it ended."""
    windows: list[float] = field(default_factory=list)
    """Seconds of each window of the latest trial."""
    steps: int = 1
    found: CellSummary | None = None
    """What its ended trials come to, as of the last look."""

    @property
    def measured(self) -> Measured | None:
        """The measurement of its ended trials."""
        return None if self.found is None else self.found.measured

    @property
    def leads(self) -> bool:
        """Whether its throughput is the highest so far."""
        return self.found is not None and self.found.place is not None and self.found.place.rank == 1

    @property
    def throughput(self) -> float | None:
        """That of the ended trials, else what the live one's windows say so far."""
        if self.measured is not None:
            return self.measured.throughput.value
        if not (windows := self.windows):
            return None
        return self.cell.work.amount * self.steps * len(windows) / math.fsum(windows)

    def end(self, record: TrialRecord) -> None:
        """A trial's end; one that would only be repeated has no other after it."""
        self.ended += 1
        self.state = record.status.replace("_", " ")
        if not record.measured:
            self.windows = []
        if record.status == "unsupported" and not record.may_pass:
            self.planned = self.ended


class TerminalProgress(Progress):
    """A live table under the trials that ended badly, which scroll past as they happen.

    It is drawn in the moments in which no trial is at the clock: before a window when the last drawing is a second
    old, and by rich's thread while trials are set up.
    """

    def __init__(self, console: Console | None = None, results: Path | None = None) -> None:
        """`results` may hold an earlier run, which says what noise to expect."""
        super().__init__()
        console = console or Console(file=drawing_stream())
        self.rows: dict[str, CellState] = {}
        self.so_far: tuple[str, ...] = ()
        self.noises: dict[str, float] = {}
        """Scatter of a window that is usual, by cell id: that of its ended trials, else of an earlier run's."""
        self.in_block = self.in_round = ""
        self.now = "preparing data"
        self.ends: float | None = None
        """When it is expected to be over, by the monotonic clock."""
        self.display = Display(lambda: draw(self, *console.size), console)
        self._results = results

    def plan(self, manifest: RunManifest, earlier: Sequence[TrialRecord]) -> None:
        """Make a row for each cell."""
        super().plan(manifest, earlier)
        planned = planned_trials(manifest)
        self.rows = {c.cell_id: CellState(c, self.name_of(c), planned[c.cell_id]) for c in manifest.cells}
        for record in earlier:
            self.rows[record.cell_id].end(record)
        if self._results is not None:
            self.noises = usual_noise(self._results, manifest)
        self._look()

    def started(self, run_id: str, total: int, estimate_s: float, unknown: str = "") -> None:
        """Show the table."""
        super().started(run_id, total, estimate_s, unknown)
        self.display.say(f"run {run_id}: {plural(total, 'trial')}, {in_words(estimate_s, unknown)}")
        self._reckon()
        with contextlib.suppress(OSError, ValueError):
            self.display.start()

    def group(self, cells: Sequence[Cell], later: Sequence[Sequence[Cell]]) -> None:
        """Those trials wait; between groups there is time to look at what is known so far."""
        super().group(cells, later)
        self._look()
        for cell in cells:
            self._state(cell, "waiting").windows = []

    def block(self, number: int, blocks: int, trials: int) -> None:
        """Name the block."""
        self.in_block = " · ".join(filter(None, (f"block {number + 1}/{blocks}", self.ahead)))
        self.in_round = ""
        self._show(plural(trials, "trial"))

    def phase(self, cell: Cell, phase: str) -> None:
        """Name the cell and its phase."""
        super().phase(cell, phase)
        row = self._state(cell, phase)
        if phase == "start":
            row.windows = []
        self._show(f"{phase.replace('_', ' ')} · {self.name_of(cell)}")

    def round(self, number: int, rounds: int, trials: int) -> None:
        """Name the round."""
        super().round(number, rounds, trials)
        self.in_round = f"round {number + 1} of {rounds}"
        for row in self.rows.values():
            row.state = "waiting" if row.state == "warmup" else row.state

    def turn(self, cell: Cell, side: str | None = None) -> None:
        """Draw, when it is time to, and then nothing more until the window is over."""
        self._state(cell, "at the clock")
        self.now = f"at the clock · {self.name_of(cell, side)}"
        if time.monotonic() - self.display.last_draw >= EVERY_S:
            self._reckon()
            self.display.refresh()
        self.display.hold()

    def window(self, cell: Cell, seconds: float, steps: int) -> None:
        """Count the window."""
        super().window(cell, seconds, steps)
        row = self._state(cell, "waiting")
        row.steps = steps
        row.windows.append(seconds)
        self.display.release()

    def ended(self, record: TrialRecord) -> None:
        """Advance; say it aloud when the trial did not end well."""
        super().ended(record)
        if record.cell_id in self.rows:
            self.rows[record.cell_id].end(record)
        self._show(f"done · {self.name_of(record.cell, record.side)}")
        if record.status != "ok":
            status = record.status.replace("_", " ")
            reason = printable(f"{self.name_of(record.cell)}: {record.reason or ''}")
            self.display.say(Text.assemble((status, _STYLES.get(status, "red")), f"  {reason}"))

    def finished(self) -> None:
        """Take the table away."""
        self._show(self.now)
        self.display.refresh()
        with contextlib.suppress(OSError, ValueError):
            self.display.stop()

    def _state(self, cell: Cell, state: str) -> CellState:
        """The cell's row, which says so from now on; of a run that has no rows one that nobody sees."""
        row = self.rows.get(cell.cell_id) or CellState(cell, "", 0)
        row.state = state
        return row

    def _show(self, now: str) -> None:
        self.now = now
        self._reckon()
        self.display.release()

    def _reckon(self) -> None:
        """Here, and not where it is drawn: that may be another thread."""
        self.ends = time.monotonic() + self.left_s()

    def _look(self) -> None:
        """Figures of the records so far. Never while a trial is at the clock: it may take a tenth of a second."""
        summary = summary_so_far(self.manifest, self.trials)
        if summary is not None:
            self.so_far, found = so_far(summary), summary.by_id
            self.noises = self.noises | noise_of(self.trials)
            for cell_id, row in self.rows.items():
                row.found = found.get(cell_id)


def draw(of: TerminalProgress, width: int, height: int) -> RenderableType:
    """All that is known of the sweep in at most `width` columns and `height` rows."""
    head = _head(of, width)
    room = height - sum(1 if part.no_wrap else math.ceil(part.cell_len / (width - 4)) for part in head) - 4
    return Group(*head, *([_table([*of.rows.values()], width, room)] if of.rows and room >= 2 else []))


def _head(of: TerminalProgress, width: int) -> list[Text]:
    medium, least = width >= MEDIUM, "more than " if of.is_least else ""
    left = "" if of.ends is None else f" · {least}{duration(max(0.0, of.ends - time.monotonic()))} left"
    count = f"{of.done}/{of.total}"
    size = max(4, min(30, width - len(count) - len(left) - 9))
    filled = round(size * min(of.done, of.total) / of.total) if of.total else 0
    bar = ("━" * filled + "╌" * (size - filled), "cyan")
    how_far = _line(bar, f" {count}", " trials" if medium else "", left)
    if medium and of.rows:
        complete = sum(row.ended >= row.planned for row in of.rows.values())
        how_far.append(f" · {complete} of {plural(len(of.rows), 'cell')} done", "dim")
    lines = [how_far, _line(" · ".join(filter(None, (of.in_block, of.in_round, of.now)))), *_noise(of, medium)]
    for text in of.so_far[:2]:
        if medium:
            lines.append(Text.assemble(("so far  ", "bold"), text))
        else:  # a line a clause, each cut where it has no room
            clauses = text.replace(", the highest", "; the highest").split("; ")
            lines += [_line((clause, "bold")) for clause in clauses]
    return lines


def _noise(of: TerminalProgress, medium: bool) -> list[Text]:
    """Scatter of the live trials' windows, and what is expected of the same cells; no line where there is none yet."""
    live = {id_: window_noise(row.windows[_SETTLING:][-10:]) for id_, row in of.rows.items() if row.state in _LIVE}
    found = {id_: noise for id_, noise in live.items() if noise is not None}
    if (now := pooled_noise([*found.values()])) is None:
        return []
    words = f"noise {significant(100 * now, 2)} %" + (" a window" if medium else "")
    expected = pooled_noise([of.noises[id_] for id_ in found]) if found.keys() <= of.noises.keys() else None
    if expected is None:
        return [_line((words + (", nothing to expect yet" if medium else ""), "dim"))]
    words += f", expected {significant(100 * expected, 2)} %"
    if now < _BUSY * expected:
        return [_line((words, "dim"))]
    return [_line((words + (": something else uses this machine" if medium else " !"), "yellow"))]


def _line(*parts: str | tuple[str, str]) -> Text:
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


def _table(rows: Sequence[CellState], width: int, room: int) -> Table:
    shown, medium, wide = _chosen(rows, room), width >= MEDIUM, width >= WIDE
    quantity, longest = quantity_of(row.cell for row in rows), 60 if wide else 44 if medium else max(8, width - 19)
    columns: list[tuple[str, bool, Callable[[CellState], Text], bool]] = [
        ("", False, lambda row: Text("*" if row.leads else " ", "green"), True),
        ("cell", False, lambda row: Text(shortened(row.name, longest)), True),
        ("trials", True, lambda row: Text(f"{row.ended}/{row.planned}"), medium),
        (quantity.unit if medium else f"{quantity.many[:2]}./s", True, _throughput, True),
        ("std. error", True, _error, wide),
        ("of fastest", True, _share, wide),
        ("now          " if medium else "", False, lambda row: _now(row, medium), True),
    ]
    columns = [column for column in columns if column[-1]]
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    for head, numeric, _, _ in columns:
        table.add_column(head, no_wrap=True, overflow="ellipsis", justify="right" if numeric else "left")
    for row in shown:
        table.add_row(*(text_of(row) for _, _, text_of, _ in columns))
    if len(shown) < len(rows):
        table.add_row("", Text(f"… and {plural(len(rows) - len(shown), 'more cell')}", "dim"))
    if medium and any(row.leads for row in shown):
        table.add_row(Text("*", "green"), Text("the highest so far", "dim"))
    return table


def _chosen(rows: Sequence[CellState], room: int) -> list[CellState]:
    """The rows that have room, the fastest first; of those left out, one at the clock is shown all the same."""
    ranked = sorted(rows, key=lambda row: -(row.throughput or 0.0))
    if len(ranked) <= room:
        return ranked
    shown, others = ranked[: room - 1], ranked[room - 1 :]
    active = [row for row in others if row.state in ("at the clock", "build", "check", "first_step", "start", "warmup")]
    return [*shown[:-1], active[0]] if active and len(shown) > 1 else shown


def _throughput(row: CellState) -> Text:
    return Text(significant(row.throughput) if row.throughput else "–", "" if row.measured else "dim")


def _error(row: CellState) -> Text:
    error = None if row.measured is None else cell_estimate(row.measured.sample).standard_error
    return Text(f"± {significant(100 * error, 2)} %" if error else "", "dim")


def _share(row: CellState) -> Text:
    """Of the fastest of those that it competes with."""
    if row.found is None or row.found.place is None:
        unproved = row.found is not None and row.found.trials.unproved is not None
        return Text("unproved" if unproved else "", _STYLES["unproved"])
    against = row.found.place.against_best
    return Text(f"{100 * (1.0 if against is None else against.value):.0f} %", "dim")


def _now(row: CellState, in_words: bool) -> Text:
    state = _WORDS.get(row.state, row.state)
    if not in_words:
        state = {"at the clock": "<", "waiting": ".", "ok": ""}.get(state, state[:6])
    return Text(printable(state), _STYLES.get(row.state, "cyan" if state else ""))
