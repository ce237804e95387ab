"""A run on the terminal: what was measured, the cells with their windows, the answer, what failed and why."""

import statistics
import textwrap
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from harness.analysis import RunSummary, WorkloadSummary
from harness.analysis.collectives import of_collectives
from harness.analysis.limits import CellRate, cell_rates
from harness.record.limits import LimitsRecord
from harness.record.manifest import RunManifest
from harness.record.trial import TrialRecord
from harness.report.limits import RATES_ROOM, rates_table, uncounted
from harness.report.tables.collectives import FITS_ROOM, ROOM, collective_tables, latency_table, lines_words
from harness.report.tables.engines import differing_lines, engines_table, tells_not
from harness.report.tables.pipelines import stages_table
from harness.report.tables.sweep import OF_LIMIT, ranking_table, unproved_table
from harness.report.tables.table import Head, Table, noted_once
from harness.report.terminal.table import Rooms, in_room, table_text
from harness.report.words.answer import answer_lines, left_out_words, run_sentences
from harness.report.words.machine import busy_words, machine_words
from harness.report.words.method import recorded_words, windows_words
from harness.report.words.over import OVER, over_base
from harness.report.words.own import own_lines
from harness.report.words.pipelines import IS_LIMIT
from harness.report.words.problems import explained, remarks
from harness.report.words.sparkline import sparkline
from harness.report.words.text import OWN_INTERVAL, listed, sentence, significant
from harness.spec.quantity import EXAMPLES
from harness.visible import plural, printable

_WIDEST = 100
"""Columns of running text; longer lines are hard to read."""
_WITH_WINDOWS = 118
_WITH_LIMIT = 200
"""With the share of the limit, too, which a table of its own has below."""
_ROOM = (
    (160, None),
    (_WITH_WINDOWS, ("#", "cell", EXAMPLES.unit, OWN_INTERVAL, OVER, IS_LIMIT, "windows")),
    (100, ("#", "cell", EXAMPLES.unit, OWN_INTERVAL, OVER, IS_LIMIT)),
    (78, ("cell", EXAMPLES.unit, OWN_INTERVAL, OVER)),
    (0, ("cell", EXAMPLES.unit, OWN_INTERVAL)),
)
"""As `Rooms` of a ranking, whose columns `_head` names."""
_NARROW, _BLOCKS = 60, (10, 20)
"""Blocks that windows are joined to, below and from so many columns of the terminal."""
_REMARKS = 5


def run_text(
    manifest: RunManifest,
    trials: Sequence[TrialRecord],
    summary: RunSummary,
    width: int,
    styled: bool,
    limits: LimitsRecord | None = None,
) -> str:
    """The whole text, in at most `width` columns; `styled` allows bold. `limits` are those of the machine."""
    text = min(width, _WIDEST)
    rates = [] if limits is None else cell_rates(summary.cells, limits, manifest.sweep.launcher)
    collectives = collective_tables(summary, limits, manifest.sweep.launcher)
    parts = [
        _filled([printable(manifest.run_id), *_measured(manifest, summary)], text),
        *(table_text(table, width, styled) for table in _tables(trials, summary, rates, collectives, width)),
        *(table_text(table, width, styled) for table in _limits(summary, rates, width)),
        _titled("The answer", _answer(summary), text),
        _titled("What failed, and why", _failed(summary), text),
        _titled("Measured, but look twice", _twice(summary), text),
        _titled("What differs between the engines", _engines(summary), text),
    ]
    return "\n".join(part for part in parts if part)


def _answer(summary: RunSummary) -> Sequence[str]:
    """The answer of each ranking, or what is told of all work together."""
    if (own := own_lines(summary)) is None:
        return answer_lines(summary)
    return [*own, *dict.fromkeys(filter(None, map(left_out_words, summary.workloads))), *run_sentences(summary)]


def _measured(manifest: RunManifest, summary: RunSummary) -> list[str]:
    machine = f" on {words}" if (words := machine_words(manifest.facts)) else ""
    windows = windows_words(manifest, summary)
    return [
        *filter(None, [busy_words(manifest.facts)]),
        printable(
            f"Measured {manifest.created_utc[:16].replace('T', ' ')} UTC{machine}: "
            f"{plural(len(summary.cells), 'cell')} in {plural(summary.blocks, 'block')}, {windows}; "
            f"{recorded_words(summary)}."
        ),
    ]


def _tables(
    trials: Sequence[TrialRecord],
    summary: RunSummary,
    rates: Sequence[CellRate],
    collectives: Sequence[Table],
    width: int,
) -> list[Table]:
    """The ranking of each workload, its windows beside each cell; of collectives what a reader of nccl-tests knows."""
    series = _windows(trials)
    span = _span([value for values in series.values() for value in values])
    most = _BLOCKS[width >= _NARROW]
    tables = _collectives(collectives, width)
    if (fits := latency_table(summary)).rows:
        tables.append(_latencies(fits, width))
    for work in summary.workloads:
        if of_collectives(work):
            continue
        table = ranking_table(work, summary.noise, rates=rates)
        if not table.rows:
            tables += _unproved(work, width)
            continue
        blocks = [sparkline(series[cell.trials.cell_id], -span, span, most) for cell in work.ranking]
        whole = replace(
            table,
            columns=(*table.columns, Head("windows", False)),
            note=f"{table.note} {_windows_note(span)}" if width >= _WITH_WINDOWS else table.note,
            rows=tuple((*row, line) for row, line in zip(table.rows, blocks, strict=True)),
        )
        shown = _noted(in_room(whole, _rooms(whole, work), width), width)
        tables += [shown, *_beside(stages_table(work), width), *_unproved(work, width)]
    return tables


def _rooms(table: Table, work: WorkloadSummary) -> Rooms:
    """`_ROOM` as this table's columns are called, with one more where some cell has a share of a limit."""
    rooms = [(least, names and [_head(name, work) for name in names]) for least, names in _ROOM]
    heads = [column.name for column in table.columns]
    if OF_LIMIT not in heads:
        return rooms
    (least, _), *rest = rooms
    return [(_WITH_LIMIT, None), (least, [name for name in heads if name != OF_LIMIT]), *rest]


def _limits(summary: RunSummary, rates: Sequence[CellRate], width: int) -> list[Table]:
    """How far cells are from what the machine can do at most, all workloads in one table; nothing where nothing is
    known."""
    if not rates:
        return []
    table = rates_table(rates)
    whole = replace(table, note=" ".join(filter(None, (table.note, uncounted(summary.cells, rates)))))
    return [_noted(in_room(whole, RATES_ROOM, width), width)]


def _collectives(tables: Sequence[Table], width: int) -> list[Table]:
    """Tables of collectives as far as there is room; what is to be noted of several stands once, below the last."""
    return noted_once([_noted(in_room(table, ROOM, width), width) for table in tables])


def _latencies(fits: Table, width: int) -> Table:
    """The table of latencies as far as there is room; its note says which lines do not hold where no column does."""
    shown = in_room(fits, FITS_ROOM, width)
    return _noted(replace(shown, note="\n".join(filter(None, (lines_words(shown, fits), shown.note)))), width)


def _head(name: str, work: WorkloadSummary) -> str:
    """What a column of `_ROOM` is called in this table."""
    return over_base(work) if name == OVER else work.workload.quantity.worded(name)


def _unproved(work: WorkloadSummary, width: int) -> list[Table]:
    """What the ranking leaves out; nothing where it leaves out nothing."""
    return _beside(unproved_table(work), width)


def _beside(table: Table, width: int) -> list[Table]:
    """A table that stands by a ranking; nothing where it has no rows."""
    return [_noted(table, width)] if table.rows else []


def _noted(table: Table, width: int) -> Table:
    lines = [line for text in table.note.splitlines() for line in textwrap.wrap(text, min(width, _WIDEST))]
    return replace(table, note="\n".join(lines))


def _windows_note(span: float) -> str:
    size = significant(100 * span, 2)
    return (
        "Windows: speed in each, in the order of time, against the cell's median, from "
        f"▁ {size} % slower to █ {size} % faster."
    )


def _windows(trials: Sequence[TrialRecord]) -> defaultdict[str, list[float]]:
    """Relative deviations of the measured windows' speed by cell, trial after trial."""
    steps: defaultdict[str, list[float]] = defaultdict(list)
    for trial in sorted(trials, key=lambda trial: trial.block):
        if trial.measured and trial.windows is not None:
            count = trial.windows.steps_per_window
            steps[trial.cell_id] += [count / second for second in trial.windows.seconds[trial.windows.measured_from :]]
    medians = {cell: statistics.median(values) for cell, values in steps.items() if values}
    return defaultdict(list, {cell: [value / medians[cell] - 1 for value in values] for cell, values in steps.items()})


def _span(deviations: Sequence[float]) -> float:
    """What 95 of 100 windows stay within, and at least 1 %."""
    if len(deviations) < 2:
        return 0.01
    sizes = sorted(abs(value) for value in deviations)
    return max(0.01, sizes[int(0.95 * (len(sizes) - 1))])


def _failed(summary: RunSummary) -> list[str]:
    lines = []
    for entry in explained(summary):
        lines.append(f"{sentence(entry.heading)}: {listed(entry.cells, most=4)}. {sentence(entry.meaning)}.")
        lines += [f"  {sentence(words)}: {text}" for words, text in entry.details] or [f"  Why: {entry.reason}"]
        lines += [f"  What to do: {entry.remedy}."] if entry.remedy else []
    return lines


def _twice(summary: RunSummary) -> list[str]:
    found = remarks(summary)
    lines = [f"{listed(remark.cells, most=4)}: {remark.text}." for remark in found[:_REMARKS]]
    return [*lines, f"and {len(found) - _REMARKS} more, on the report's page."] if len(found) > _REMARKS else lines


def _engines(summary: RunSummary) -> list[str]:
    """What of all work with several engines is the same is told once, the rest with the work that it is of."""
    several = [work for work in summary.workloads if engines_table(work).rows]
    told: dict[str, list[str]] = {}
    for work in several:
        for line in differing_lines(work):
            told.setdefault(line, []).append(work.workload.label)
    lines = [line if len(of) == len(several) else f"{listed(of)}: {line}" for line, of in told.items()]
    return list(dict.fromkeys([*lines, *map(tells_not, several)]))


def _titled(title: str, lines: Sequence[str], width: int) -> str:
    return f"{title}\n{_filled(lines, width, '  ')}" if lines else ""


def _filled(lines: Sequence[str], width: int, indent: str = "") -> str:
    filled = []
    for line in lines:
        inner = indent + " " * (len(line) - len(line.lstrip()))
        filled.append(
            textwrap.fill(
                printable(line).strip(),
                width,
                initial_indent=inner,
                subsequent_indent=f"{inner}  " if indent else "",
                break_on_hyphens=False,
            )
        )
    return "\n".join(filled) + "\n" if filled else ""
