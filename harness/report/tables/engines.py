"""The table beside a ranking of several engines: what of the work each does otherwise."""

import statistics

from harness.analysis import WorkloadSummary
from harness.analysis.collectives import of_collectives
from harness.analysis.likeness import Alike, batches_in_order, first_weights, not_told_of_engines, otherwise_words
from harness.report.tables.table import Head, Table
from harness.report.words.engines import engine_name, processors_of_engines
from harness.report.words.text import FIXED_PARTS, NOTHING, listed, seconds
from harness.visible import plural, printable

MEASURED_COLUMNS = ("processors of one device", "fixed cost of a trial")
"""Columns of what was measured, where anything was; the others are what engines say of themselves."""
NOTE = (
    f"{NOTHING} is as under TensorFlow; an engine of your own says nothing of itself. A trial's fixed cost is "
    f"{FIXED_PARTS}, the median over a cell's trials without its first, which may compile, where there are more, and "
    "then over the cells. Processors of one device are those that a cell without a strategy kept busy, the median."
)


def tells_not(work: WorkloadSummary) -> str:
    """What a ranking of several engines does not say."""
    return not_told_of_engines("ranking", all(cell.trials.device.on_processors for cell in work.cells))


def likeness(work: WorkloadSummary) -> str:
    """What the records show of the engines' first weights and of their batches; empty where they show nothing."""
    measured = [cell.trials for cell in work.cells if cell.measured is not None]
    told = (
        _told_of(first_weights(measured), "began with the same weights", "did not all begin with the same weights"),
        _told_of(
            batches_in_order(measured),
            "had the same batches in the same order, where as many processes have as large a batch",
            "did not all have the same batches in the same order, though as many processes had as large a batch",
        ),
    )
    return " ".join(filter(None, told))


def _told_of(found: Alike | None, alike: str, unlike: str) -> str:
    if found is None:
        return ""
    names = listed(found.engines, len(found.engines))
    return f"By their records {names} {alike if found.everywhere else unlike}."


def _fixed_costs(work: WorkloadSummary) -> dict[str, str]:
    """Of each engine: `1 device 0.9 s, 2 devices 1.1 s, 2 processes 2.1 s`, the medians over its cells."""
    found: dict[str, dict[tuple[int, int], list[float]]] = {}
    for cell in work.cells:
        if cell.trials.later_fixed_s is not None:
            by_place, shape = found.setdefault(engine_name(cell), {}), cell.trials.cell.shape
            by_place.setdefault((shape.workers, shape.replicas), []).append(cell.trials.later_fixed_s)
    return {
        engine: ", ".join(f"{_place(*place)} {seconds(statistics.median(of))}" for place, of in sorted(each.items()))
        for engine, each in found.items()
    }


def _place(workers: int, replicas: int) -> str:
    """`2 devices`, `2 processes`, `2 processes of 3 devices`."""
    if workers == 1:
        return plural(replicas, "device")
    each = f" of {plural(replicas, 'device')}" if replicas > 1 else ""
    return f"{plural(workers, 'process')}{each}"


def differing_lines(work: WorkloadSummary) -> list[str]:
    """The same as a line for each engine that is not TensorFlow, for a terminal."""
    table = engines_table(work)
    names = [column.name for column in table.columns[1:]]
    lines = []
    for engine, *told in table.rows:
        pairs = [(name, text) for name, text in zip(names, told, strict=True) if name not in MEASURED_COLUMNS]
        words = otherwise_words({name: text for name, text in pairs if text != NOTHING})
        lines += [f"{engine}: {words}."] if words else []
    return lines + ([likeness(work)] if table.rows and likeness(work) else [])


def engines_table(work: WorkloadSummary) -> Table:
    """A row for each engine that was measured; no rows where there is only one, nor of collectives, whose own tables
    say what a call is."""
    unlike: dict[str, dict[str, dict[str, None]]] = {}
    # an engine that was not measured told nothing of itself, which is not "as under TensorFlow"
    for cell in (cell for cell in work.cells if cell.measured is not None):
        told = unlike.setdefault(engine_name(cell), {})
        for subject, words in cell.trials.executed.unlike.items():
            told.setdefault(subject, {})[words] = None
    subjects = list(dict.fromkeys(subject for told in unlike.values() for subject in told))
    busy = {engine: f"{count:.2f}" for engine, count in processors_of_engines(work).items()}
    measured = {name: by for name, by in zip(MEASURED_COLUMNS, (busy, _fixed_costs(work)), strict=True) if by}
    columns = tuple(Head(name.replace("_", " "), False) for name in ("engine", *subjects, *measured))
    rows = [
        (
            engine,
            *("; ".join(told.get(subject, [NOTHING])) for subject in subjects),
            *(by.get(engine, NOTHING) for by in measured.values()),
        )
        for engine, told in unlike.items()
    ]
    several = len(rows) > 1 and not of_collectives(work)
    return Table(
        "What differs between the engines",
        columns,
        tuple(tuple(printable(text) for text in row) for row in rows) if several else (),
        " ".join(filter(None, (NOTE, likeness(work), tells_not(work)))),
        unfolded=True,
    )
