"""Collectives as nccl-tests prints them: size, count, type, time, algorithm and bus bandwidth, and what was wrong."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from harness.analysis import RunSummary, summarise
from harness.analysis.collectives import CollectiveFigures, CollectiveGroup, OpCurve, calls_of, collective_groups
from harness.analysis.latency import MUCH, LatencyBandwidth, OverBlocks, Piece
from harness.analysis.limits import BusLimit, bus_limit
from harness.errors import UsageError
from harness.record.limits import LimitsRecord
from harness.record.reading import Run
from harness.report.export.rows import ExportRow, interval_row
from harness.report.limits import known_limits, results_of
from harness.report.tables.table import Head, Table
from harness.report.words.exactness import THESE_MINUTES
from harness.report.words.text import (
    NOT_JUDGED,
    NOTHING,
    OWN_INTERVAL,
    STATUS_WORDS,
    bounds,
    percent,
    signed,
    significant,
)
from harness.spec.collective import size_text
from harness.visible import printable

_COLUMNS = (
    Head("size B"),
    Head("count"),
    Head("type", False),
    Head("redop", False),
    Head("op", False),
    Head("time µs"),
    Head(OWN_INTERVAL),
    Head("algbw GB/s"),
    Head("busbw GB/s"),
    Head("wrong", False),
)
ROOM = (
    (136, tuple(column.name for column in _COLUMNS)),
    (100, ("size B", "op", "time µs", OWN_INTERVAL, "algbw GB/s", "busbw GB/s", "wrong")),
    (0, ("size B", "op", "time µs", OWN_INTERVAL, "busbw GB/s", "wrong")),
)
"""As `Rooms` of a terminal."""
_THE_LINE, _HOLDS = "the line", "not contradicted"
"""The head of the last column of a table of latencies, and what it says of most."""
_FITS = (
    Head("collective", False),
    Head("between", False),
    Head("op", False),
    Head("α µs"),
    Head(f"α, {OWN_INTERVAL}"),
    Head("β GB/s"),
    Head(f"β, {OWN_INTERVAL}"),
    Head("sizes", False),
    Head("largest residual"),
    Head(_THE_LINE, False),
)
FITS_ROOM = (
    (176, tuple(column.name for column in _FITS)),
    (136, tuple(column.name for column in _FITS if column.name != "largest residual")),
    (100, ("collective", "between", "op", "α µs", f"α, {OWN_INTERVAL}", "β GB/s", f"β, {OWN_INTERVAL}", "sizes")),
    (0, ("collective", "between", "op", "α µs", "β GB/s", "sizes", _THE_LINE)),
)
"""The same of the table of latencies."""
_SHARED_MEMORY = (
    " Virtual devices on the processor share its memory: a copy from one to another hands on the same bytes and moves "
    "none, which a broadcast consists of."
)
_PIECES = (
    " Where one line does not hold for all sizes, each range of them has its own: α of the smallest is the latency and "
    "β of the largest the bandwidth. α of larger sizes is where their line would begin; nothing takes that time."
)
_MARKS = "Of a size with several rows the marked ones cannot be told apart from the fastest."
TRACED = "of a traced function"
"""What a call is under TensorFlow, and what goes without saying of records that do not say."""
_GIGA = 1e9
_MICRO = 1e-6


def collective_tables(
    summary: RunSummary, limits: LimitsRecord | None = None, launcher: str = "local"
) -> tuple[Table, ...]:
    """A table for each collective and number of replicas, with what carries the bytes at most, of the machine of
    `limits`; none of a run without collectives."""
    groups = collective_groups(summary)
    tables, most = [group_table(group, summary) for group in groups], _at_most(groups, limits, launcher)
    return tuple(replace(table, note=f"{table.note}{most}") for table in tables)


def known_collectives(run: Run, summary: RunSummary) -> tuple[Table, ...]:
    """The same with the limits of the run's machine, which are beside it or where the reader looks for them."""
    limits = known_limits(run, results_of(run)) if collective_groups(summary) else None
    return collective_tables(summary, limits, run.manifest.sweep.launcher)


def most_of(group: CollectiveGroup, limits: LimitsRecord | None, launcher: str) -> BusLimit | None:
    """What the group's bus bandwidth comes to at most; None where nobody measured that."""
    return bus_limit([one.summary for one in group.figures], limits, launcher)


def _at_most(groups: Sequence[CollectiveGroup], limits: LimitsRecord | None, launcher: str) -> str:
    """The same in words, alike below every table; empty where it is known of none."""
    found = {group_title(group): most for group in groups if (most := most_of(group, limits, launcher)) is not None}
    told = {title: f"{_scaled(most.bytes_per_s, _GIGA)} GB/s, what {most.of} can do" for title, most in found.items()}
    if len(told) == len(groups) and len(different := set(told.values())) == 1:
        return f" busbw is at most {different.pop()}."
    return f" busbw is at most: {'; '.join(f'{title}: {most}' for title, most in told.items())}." if told else ""


def latency_table(summary: RunSummary) -> Table:
    """t = α + S/β of each curve of each group, a row a piece; without rows where too few sizes were measured."""
    fits = [
        (group, curve, line)
        for group in collective_groups(summary)
        for curve in group.curves
        if (line := curve.line) is not None
    ]
    note = (
        "t = α + S/β over the sizes S, fitted to the times of each block; intervals are Student's t over blocks. A "
        f"residual is what a size takes longer than the line says; where it is above {percent(MUCH)} beyond doubt the "
        f"line does not hold.{_PIECES if any(len(line.pieces) > 1 for _, _, line in fits) else ''}{_unfitted(fits)}"
    )
    rows = [
        tuple(map(printable, (group.collective, group.between, curve.name, *_fit_row(piece))))
        for group, curve, line in fits
        for piece in line.pieces
    ]
    return Table("Latency and bandwidth", _FITS, tuple(rows), note)


def _unfitted(fits: Iterable[tuple[CollectiveGroup, OpCurve, LatencyBandwidth]]) -> str:
    """Which sizes are on no line; nothing where all are on one."""
    named = [
        printable(f"{group.collective}, {group.between}, {curve.name}, {_bytes(size)}")
        for group, curve, _ in fits
        for size in curve.unfitted
    ]
    return f" Not fitted is what fewer than half of the blocks have: {'; '.join(named)}." if named else ""


def _fit_row(piece: Piece) -> tuple[str, ...]:
    alpha, worst = piece.latency_s, piece.worst
    low, high = piece.bandwidth_limits
    known = alpha.low is not None
    return (
        _scaled(alpha.value, _MICRO),
        f"[{_scaled(alpha.low, _MICRO)} – {_scaled(alpha.high, _MICRO)}]" if known else "no interval",
        _scaled(piece.bandwidth, _GIGA),
        f"[{_scaled(low, _GIGA)} – {_scaled(high, _GIGA, '∞')}]" if known else "no interval",
        f"{_bytes(piece.smallest)} – {_bytes(piece.largest)}",
        f"{signed(100 * worst.share.value, 0)} % at {_bytes(worst.size)}",
        f"does not hold at {_bytes(worst.size)}" if worst.beyond_doubt else _HOLDS,
    )


def lines_words(shown: Table, whole: Table) -> str:
    """Of which rows of the whole table the line does not hold, where what is shown of it has no column that says so."""
    if any(column.name == _THE_LINE for column in shown.columns):
        return ""
    broken = [
        f"{collective}, {between}, {op}, {sizes} ({said.removeprefix('does not hold ')})"
        for collective, between, op, *_, sizes, _, said in whole.rows
        if said != _HOLDS
    ]
    return f"The line does not hold of {'; '.join(broken)}." if broken else "No line is contradicted."


def _bytes(size: int) -> str:
    return size_text(size, "B", " ")


def _scaled(value: float | None, unit: float, unknown: str = NOTHING) -> str:
    return unknown if value is None else significant(value / unit)


def group_table(group: CollectiveGroup, summary: RunSummary) -> Table:
    """Every size by every alternative, the smallest size first."""
    marks = _MARKS if summary.judged else NOT_JUDGED
    note = (
        f"{marks} algbw = size ÷ time and busbw = algbw × a constant of the collective, as in nccl-tests; GB are 10⁹ "
        f"bytes. The time is that of one call {_call(group)}. wrong: whether any element that any replica "
        f"received, before the first window or after the last, was not exact. {THESE_MINUTES}"
        f"{_SHARED_MEMORY if group.shares_memory else ''}"
    )
    rows = tuple(tuple(printable(text) for text in _row(figures, group)) for figures in group.figures)
    return Table(group_title(group), _COLUMNS, rows, note, frozenset(_ties(group)))


def _ties(group: CollectiveGroup) -> Iterator[int]:
    """The rows to mark: of a size with one row there is nothing to tell apart."""
    several = Counter((figures.cell.size, figures.cell.gradients) for figures in group.figures)
    for row, figures in enumerate(group.figures):
        place = figures.summary.place
        if several[figures.cell.size, figures.cell.gradients] > 1 and place is not None and place.with_best:
            yield row


def _call(group: CollectiveGroup) -> str:
    """`of a traced function (tensorflow), of a compiled program (jax)`; TensorFlow's alone goes without its name."""
    calls = calls_of(group)
    if not any(calls.values()):
        return TRACED
    return ", ".join(f"{words or TRACED} ({engine})" for engine, words in calls.items())


def group_title(group: CollectiveGroup) -> str:
    """`all_reduce, 2 replicas, virtual-cpu`."""
    return printable(f"{group.collective}, {group.between}")


def _row(figures: CollectiveFigures, group: CollectiveGroup) -> tuple[str, ...]:
    cell, status = figures.cell, figures.summary.trials.status
    reduces = cell.collective in ("all_reduce", "reduce_scatter")
    what = (
        str(cell.size),
        str(cell.count),
        "float32",
        "sum" if reduces else NOTHING,
        f"{group.name_of(cell)}, gradients of {cell.gradients}" if cell.gradients else group.name_of(cell),
    )
    if figures.time_s is None or figures.algbw is None or figures.busbw is None:
        return (*what, *[NOTHING] * 4, STATUS_WORDS[status])
    time = figures.time_s.scaled(1 / _MICRO)
    speeds = (significant(speed.value / _GIGA) for speed in (figures.algbw, figures.busbw))
    return (*what, significant(time.value), bounds(time), *speeds, "none" if status == "ok" else STATUS_WORDS[status])


def collective_rows(run: Run, results: Path | None = None) -> list[ExportRow]:
    """A row a collective of a size, as `COLLECTIVE_COLUMNS` have them, without a time where it has none; the limits are
    those in `results`, or where the run's are looked for. UsageError on a run without collectives."""
    summary = summarise(run.manifest, run.trials, run.rank_unproved)
    rows = rows_of_collectives(run, summary, results)
    if not rows:
        raise UsageError(f"RUN: '{run.manifest.run_id}' has no collectives; measure some with sweep --work collective")
    return rows


def rows_of_collectives(run: Run, summary: RunSummary, results: Path | None = None) -> list[ExportRow]:
    """The same of the run's summary; none of a run without collectives."""
    groups = collective_groups(summary)
    limits = known_limits(run, results or results_of(run)) if groups else None
    launcher = run.manifest.sweep.launcher
    return [row for group in groups for row in _group_rows(group, most_of(group, limits, launcher))]


def _group_rows(group: CollectiveGroup, most: BusLimit | None) -> Iterator[ExportRow]:
    of_curves = {row["cell_id"]: row for curve in group.curves for row in curve_rows(curve)}
    for one in group.figures:
        cell, own = one.cell, one.summary.cell_id
        yield {
            "cell_id": own,
            "collective": group.collective,
            "between": group.between,
            "op": group.name_of(cell),
            "size_bytes": cell.size,
            "gradients": cell.gradients or None,
            "status": one.summary.trials.status,
            **of_curves.get(own, _figure_row(one, group.name_of(cell), None)),
            "busbw_limit_bytes_per_s": None if most is None else most.bytes_per_s,
        }


def curve_rows(curve: OpCurve) -> list[ExportRow]:
    """A row a size, with what the curve's line says of it."""
    return [_figure_row(one, curve.name, curve.line) for one in curve.figures]


def _figure_row(one: CollectiveFigures, op: str, line: LatencyBandwidth | None) -> ExportRow:
    return {
        "cell_id": one.summary.cell_id,
        "op": op,
        "size_bytes": one.cell.size,
        **interval_row("time_s", one.time_s),
        **interval_row("algbw_bytes_per_s", one.algbw),
        **interval_row("busbw_bytes_per_s", one.busbw),
        **_line_row(line, one.cell.size),
    }


def _line_row(line: LatencyBandwidth | None, size: int) -> ExportRow:
    """What the fit says of a size that it is of, and the line of the piece that has it, the first piece being 1."""
    pieces = () if line is None else line.pieces
    number, piece = next(((n, of) for n, of in enumerate(pieces, start=1) if size in of.sizes), (None, None))
    return {
        "line_s": None if line is None or piece is None else line.at(size),
        "piece": number,
        **_limits_row("alpha_s", None if piece is None else piece.latency_s),
        **_limits_row("seconds_a_byte", None if piece is None else piece.seconds_a_byte),
    }


def _limits_row(key: str, of: OverBlocks | None) -> ExportRow:
    values = (None, None, None) if of is None else (of.value, of.low, of.high)
    return dict(zip((key, f"{key}_low", f"{key}_high"), values, strict=True))
