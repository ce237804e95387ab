"""What a sweep's screen shows, drawn anew each time from what is known: it fits any width and height."""

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.analysis.estimates.noise_now import pooled, window_noise
from harness.record.trial import TrialRecord
from harness.report.words.text import plural, printable, shortened, significant
from harness.spec.cell import Cell

WIDE, MEDIUM = 92, 58
"""Columns from which all columns of the table have room, and from which all but two have."""
ENDS = {"wrong_result": "bold red", "unsupported": "yellow", "ok": "green"}
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
    ended: list[float] = field(default_factory=list)
    """Throughput of each trial that was ok, examples/s."""
    done: int = 0
    state: str = ""
    """What the latest trial does, or how it ended."""
    windows: list[float] = field(default_factory=list)
    """Seconds of each window of the live trial."""
    steps: int = 1
    noises: list[float] = field(default_factory=list)
    """Scatter of the windows of each earlier trial."""
    leads: bool = False
    """Whether it cannot be told apart from the fastest so far."""

    @property
    def throughput(self) -> float | None:
        """Geometric mean of the ended trials, else what the live one's windows say so far."""
        if self.ended:
            return statistics.geometric_mean(self.ended)
        if not self.windows:
            return None
        return self.cell.global_batch_size * self.steps * len(self.windows) / math.fsum(self.windows)

    @property
    def give_or_take(self) -> float | None:
        """Relative standard error of the mean of the ended trials."""
        if len(self.ended) < 2:
            return None
        return statistics.stdev(math.log(value) for value in self.ended) / math.sqrt(len(self.ended))


@dataclass
class Screen:
    """All that is known of the sweep."""

    cells: dict[str, CellState] = field(default_factory=dict)
    done: int = 0
    total: int = 0
    left: str = ""
    block: str = ""
    round: str = ""
    now: str = "preparing data"
    verdict: tuple[str, ...] = ()
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
            usual = pooled(row.noises) if row.noises else self.expected_noise.get(cell_id)
            if usual is not None:
                expected.append(usual)
        return pooled(now), pooled(expected) if len(expected) == len(now) else None


def heard_end(row: CellState, record: TrialRecord) -> None:
    """Take a trial's end into its row."""
    row.done += 1
    row.state = record.status.replace("_", " ")
    row.windows = []
    if record.throughput_examples_per_s is not None and record.windows is not None:
        row.ended.append(record.throughput_examples_per_s)
        if (found := window_noise(record.windows.seconds[record.windows.measured_from :])) is not None:
            row.noises.append(found)


def draw(screen: Screen, width: int, height: int) -> RenderableType:
    """The screen in at most `width` columns and `height` rows."""
    head = [*_head(screen, width)]
    room = height - sum(1 if part.no_wrap else math.ceil(part.cell_len / (width - 4)) for part in head) - 4
    if not screen.cells or room < 2:
        return Group(*head)
    return Group(*head, _table(screen, width, room))


def _head(screen: Screen, width: int) -> list[Text]:
    places = " · ".join(part for part in (screen.block, screen.round) if part)
    left = f" · {screen.left} left" if screen.left else ""
    count = f"{screen.done}/{screen.total}"
    bar = _bar(screen.done, screen.total, max(4, min(30, width - len(count) - len(left) - 9)))
    lines = [
        _line(Text.assemble((bar, "cyan"), f" {count}", " trials" if width >= MEDIUM else "", left)),
        _line(Text(f"{places} · {screen.now}" if places else screen.now)),
    ]
    if width >= MEDIUM and screen.cells:
        complete = sum(row.done >= row.total for row in screen.cells.values())
        lines[0].append(f" · {complete} of {plural(len(screen.cells), 'cell')} done", "dim")
    if (noise := _noise(screen, width)) is not None:
        lines.append(_line(noise))
    for text in screen.verdict[:2]:
        if width < MEDIUM:  # a line a clause, each cut where it has no room
            lines += [_line(Text(clause, "bold")) for clause in text.replace(", not", "; not").split("; ")]
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
    table = Table(box=None, padding=(0, 1), pad_edge=False, show_header=True, header_style="dim", expand=False)
    table.add_column("", width=1)
    table.add_column("cell", no_wrap=True, overflow="ellipsis", ratio=1)
    if width >= MEDIUM:
        table.add_column("trials", justify="right", no_wrap=True)
    table.add_column("examples/s" if width >= MEDIUM else "ex./s", justify="right", no_wrap=True)
    if width >= WIDE:
        table.add_column("std. error", justify="right", no_wrap=True)
        table.add_column("of fastest", justify="right", no_wrap=True)
    table.add_column(
        "now" if width >= MEDIUM else "", no_wrap=True, overflow="ellipsis", min_width=13 if width >= MEDIUM else 1
    )
    best = max((row.throughput or 0.0 for row in screen.cells.values() if row.ended), default=0.0)
    for row in rows:
        table.add_row(*_cells_of(row, best, width))
    if len(rows) < len(screen.cells):
        table.add_row("", Text(f"… and {plural(len(screen.cells) - len(rows), 'more cell')}", "dim"))
    if width >= MEDIUM and any(row.leads for row in rows):
        table.add_row(Text("*", "green"), Text("cannot be told apart from the fastest", "dim"))
    return table


def _cells_of(row: CellState, best: float, width: int) -> list[Text]:
    throughput, error = row.throughput, row.give_or_take
    dim = "" if row.ended else "dim"
    label = shortened(row.cell.label, 60 if width >= WIDE else 44 if width >= MEDIUM else max(8, width - 19))
    cells = [Text("*" if row.leads else "", "green"), Text(label)]
    if width >= MEDIUM:
        cells.append(Text(f"{row.done}/{row.total}"))
    cells.append(Text(significant(throughput) if throughput else "–", dim))
    if width >= WIDE:
        cells.append(Text(f"± {significant(100 * error, 2)} %" if error else "", "dim"))
        share = 100 * throughput / best if throughput and best and row.ended else None
        cells.append(Text(f"{share:.0f} %" if share is not None else "", dim))
    state = _WORDS.get(row.state, row.state)
    if width < MEDIUM:
        state = {"at the clock": "<", "waiting": ".", "ok": ""}.get(state, state[:6])
    cells.append(Text(printable(state), ENDS.get(row.state.replace(" ", "_"), "cyan" if state else "")))
    return cells


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
    return {cell.cell_id: CellState(cell, counts[cell.cell_id]) for cell in cells}
