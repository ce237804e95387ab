"""What a sweep's screen shows, drawn anew each time from what is known: it fits any width and height."""

import math
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.analysis.estimates.noise_now import pooled_noise, window_noise
from harness.record.trial import TrialRecord
from harness.report.words.text import shortened, significant
from harness.run.progress.base import duration
from harness.spec.cell import cell_names
from harness.spec.quantity import Quantity
from harness.spec.work import Cell, quantity_of
from harness.visible import plural, printable

WIDE, MEDIUM = 92, 58
"""Columns from which all columns of the table have room, and from which all but two have."""
ENDS = {"wrong_result": "bold red", "unproved": "yellow", "unsupported": "yellow", "ok": "green"}
_BUSY = 2.0
"""The machine is said to be noisier than expected from this factor on."""
_SETTLING = 3
"""Windows of a trial that are not looked at for noise: it warms up."""
_WORDS = {"first_step": "first step", "start": "starting", "warmup": "pilot"}


@dataclass
class CellState:
    """One row."""

    cell: Cell
    total: int
    """Trials planned."""
    name: str
    """What tells it from the other cells of the run."""
    ended: list[float] = field(default_factory=list)
    """Throughput of each trial that was measured, in the unit of the cell's work."""
    unproved: bool = False
    """Whether something was left unproved in one of them: it is then nobody's fastest."""
    done: int = 0
    state: str = ""
    """What the latest trial does, or how it ended."""
    windows: list[float] = field(default_factory=list)
    """Seconds of each window of the live trial."""
    steps: int = 1
    noises: list[float] = field(default_factory=list)
    """Scatter of the windows of each earlier trial."""
    leads: bool = False
    """Whether its throughput is the highest so far."""

    @property
    def throughput(self) -> float | None:
        """Geometric mean of the ended trials, else what the live one's windows say so far."""
        if self.ended:
            return statistics.geometric_mean(self.ended)
        if not self.windows:
            return None
        return self.cell.work.amount * self.steps * len(self.windows) / math.fsum(self.windows)

    @property
    def give_or_take(self) -> float | None:
        """Relative standard error of the mean of the ended trials."""
        if len(self.ended) < 2:
            return None
        return statistics.stdev(math.log(value) for value in self.ended) / math.sqrt(len(self.ended))

    def take(self, record: TrialRecord) -> None:
        """A trial's end."""
        self.done += 1
        self.state = record.status.replace("_", " ")
        self.windows = []
        self.unproved |= record.status == "unproved"
        if record.throughput is not None and record.windows is not None:
            self.ended.append(record.throughput)
            if (found := window_noise(record.windows.seconds[record.windows.measured_from :])) is not None:
                self.noises.append(found)


@dataclass
class Screen:
    """All that is known of the sweep."""

    cells: dict[str, CellState] = field(default_factory=dict)
    done: int = 0
    total: int = 0
    ends: float | None = None
    """When it is expected to be over, by the monotonic clock."""
    least: str = ""
    """Words before the time left, where that is a lower limit."""
    block: str = ""
    round: str = ""
    now: str = "preparing data"
    so_far: tuple[str, ...] = ()
    expected_noise: dict[str, float] = field(default_factory=dict)
    """Scatter of a window by cell id, as an earlier run on this machine had it."""

    def noise(self) -> tuple[float | None, float | None]:
        """(scatter of the live trials' windows, what is expected of the same cells)."""
        now, expected = [], []
        for cell_id, row in self.cells.items():
            found = window_noise(row.windows[_SETTLING:][-10:])
            if found is None:
                continue
            now.append(found)
            usual = pooled_noise(row.noises) if row.noises else self.expected_noise.get(cell_id)
            if usual is not None:
                expected.append(usual)
        return pooled_noise(now), pooled_noise(expected) if len(expected) == len(now) else None


def draw(screen: Screen, width: int, height: int) -> RenderableType:
    """The screen in at most `width` columns and `height` rows."""
    head = [*_head(screen, width)]
    room = height - sum(1 if part.no_wrap else math.ceil(part.cell_len / (width - 4)) for part in head) - 4
    if not screen.cells or room < 2:
        return Group(*head)
    return Group(*head, _table(screen, width, room))


def _head(screen: Screen, width: int) -> list[Text]:
    left = "" if screen.ends is None else f"{screen.least}{duration(max(0.0, screen.ends - time.monotonic()))} left"
    left = left and f" · {left}"
    count = f"{screen.done}/{screen.total}"
    bar = _bar(screen.done, screen.total, max(4, min(30, width - len(count) - len(left) - 9)))
    lines = [
        _line(Text.assemble((bar, "cyan"), f" {count}", " trials" if width >= MEDIUM else "", left)),
        _line(Text(" · ".join(part for part in (screen.block, screen.round, screen.now) if part))),
    ]
    if width >= MEDIUM and screen.cells:
        complete = sum(row.done >= row.total for row in screen.cells.values())
        lines[0].append(f" · {complete} of {plural(len(screen.cells), 'cell')} done", "dim")
    if (noise := _noise(screen, width)) is not None:
        lines.append(_line(noise))
    for text in screen.so_far[:2]:
        if width < MEDIUM:  # a line a clause, each cut where it has no room
            lines += [
                _line(Text(clause, "bold")) for clause in text.replace(", the highest", "; the highest").split("; ")
            ]
        else:
            lines.append(Text.assemble(("so far  ", "bold"), text))
    return lines


def _noise(screen: Screen, width: int) -> Text | None:
    now, expected = screen.noise()
    if now is None:
        return None
    words = f"noise {significant(100 * now, 2)} %"
    if width >= MEDIUM:
        words += " a window"
    if expected is None:
        return Text(words + (", nothing to expect yet" if width >= MEDIUM else ""), "dim")
    words += f", expected {significant(100 * expected, 2)} %"
    if now < _BUSY * expected:
        return Text(words, "dim")
    return Text(words + (": something else uses this machine" if width >= MEDIUM else " !"), "yellow")


def _bar(done: int, total: int, width: int) -> str:
    filled = round(width * min(done, total) / total) if total else 0
    return "━" * filled + "╌" * (width - filled)


def _table(screen: Screen, width: int, room: int) -> Table:
    rows = _chosen(list(screen.cells.values()), room)
    best = max((row.throughput or 0.0 for row in screen.cells.values() if row.ended and not row.unproved), default=0.0)
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    columns = _columns(width, best, quantity_of(row.cell for row in screen.cells.values()))
    for head, numeric, _ in columns:
        table.add_column(head, no_wrap=True, overflow="ellipsis", justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(text_of(row) for _, _, text_of in columns))
    if len(rows) < len(screen.cells):
        table.add_row("", Text(f"… and {plural(len(screen.cells) - len(rows), 'more cell')}", "dim"))
    if width >= MEDIUM and any(row.leads for row in rows):
        table.add_row(Text("*", "green"), Text("the highest so far", "dim"))
    return table


def _columns(width: int, best: float, quantity: Quantity) -> list[tuple[str, bool, Callable[[CellState], Text]]]:
    """(head, whether it holds numbers, what it says of a cell) for `width`; the fastest cell's throughput is `best`."""
    medium, wide = width >= MEDIUM, width >= WIDE
    room = 60 if wide else 44 if medium else max(8, width - 19)
    columns: list[tuple[str, bool, Callable[[CellState], Text], bool]] = [
        ("", False, lambda row: Text("*" if row.leads else " ", "green"), True),
        ("cell", False, lambda row: Text(shortened(row.name, room)), True),
        ("trials", True, lambda row: Text(f"{row.done}/{row.total}"), medium),
        (quantity.unit if medium else f"{quantity.many[:2]}./s", True, _throughput, True),
        ("std. error", True, _error, wide),
        ("of fastest", True, lambda row: _share(row, best), wide),
        ("now          " if medium else "", False, lambda row: _state(row, medium), True),
    ]
    return [(head, numeric, text_of) for head, numeric, text_of, shown in columns if shown]


def _throughput(row: CellState) -> Text:
    return Text(significant(row.throughput) if row.throughput else "–", "" if row.ended else "dim")


def _error(row: CellState) -> Text:
    error = row.give_or_take
    return Text(f"± {significant(100 * error, 2)} %" if error else "", "dim")


def _share(row: CellState, best: float) -> Text:
    if row.unproved:
        return Text("unproved", ENDS["unproved"])
    return Text(f"{100 * row.throughput / best:.0f} %" if row.throughput and best and row.ended else "", "dim")


def _state(row: CellState, in_words: bool) -> Text:
    state = _WORDS.get(row.state, row.state)
    if not in_words:
        state = {"at the clock": "<", "waiting": ".", "ok": ""}.get(state, state[:6])
    return Text(printable(state), ENDS.get(row.state.replace(" ", "_"), "cyan" if state else ""))


def _chosen(rows: list[CellState], room: int) -> list[CellState]:
    """The rows that have room, the fastest first; of those left out, one at the clock is shown all the same."""
    ranked = sorted(rows, key=lambda row: -(row.throughput or 0.0))
    if len(ranked) <= room:
        return ranked
    shown, others = ranked[: room - 1], ranked[room - 1 :]
    active = [row for row in others if row.state in ("at the clock", "build", "check", "first_step", "start", "warmup")]
    return [*shown[:-1], active[0]] if active and len(shown) > 1 else shown


def _line(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def by_cell(cells: Sequence[Cell], blocks: Sequence[Sequence[Sequence[str]]]) -> dict[str, CellState]:
    """A row for each cell, with how many trials the blocks hold of it."""
    counts: defaultdict[str, int] = defaultdict(int)
    for block in blocks:
        for cell_id in {cell_id for group in block for cell_id in group}:
            counts[cell_id] += 1
    names = cell_names(cells)
    return {cell.cell_id: CellState(cell, counts[cell.cell_id], names[cell.cell_id]) for cell in cells}
