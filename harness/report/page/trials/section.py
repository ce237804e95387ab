"""The section: what of it stands in the page as plain HTML, and what its script reads."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from harness.record.kind import TRIALS_NAME
from harness.record.manifest import RunManifest
from harness.record.trial import TrialRecord
from harness.report.page.trials.columns import DIGITS_SHOWN, columns_of, described_cells, labels_of, varying_keys
from harness.report.page.trials.detail import GRAIN, PER_CHUNK, Details, details_of
from harness.report.page.trials.encoding import packed
from harness.report.words.text import NOTHING, STATUS_WORDS, seconds, significant, size
from harness.spec.work import Cell, quantity_of
from harness.visible import plural, printable

FIRST_ROWS = 25
"""Rows that stand in the page itself, for a reader without JavaScript and for paper."""
HEADINGS = (
    ("number", "#", True),
    ("label", "cell", False),
    ("block", "block", True),
    ("status", "status", False),
    ("throughput_examples_per_s", "examples/s", True),
    ("step_time_s", "step", True),
    ("cpu_seconds_per_example", "CPU/example", True),
    ("peak_memory_bytes", "peak memory", True),
    ("fixed_s", "fixed cost", True),
    ("windows", "windows", True),
)
"""(column to sort by, heading, whether it is a number)."""
_MOST_CHOICES = 200


@dataclass(frozen=True)
class Filter:
    """A key of the cell, or the status, by which the table can be narrowed."""

    key: str
    name: str
    choices: tuple[str, ...]
    """As a reader sees them. The script knows a choice by its place: names may be empty, or differ in spaces only."""
    values: tuple[str, ...]
    """What each choice stands for: the status in words, or the key's value as the script's String() writes it."""


@dataclass(frozen=True)
class TrialsSection:
    """What the template shows."""

    headings: tuple[tuple[str, str, bool], ...]
    rows: tuple[tuple[str, ...], ...]
    """The first `FIRST_ROWS` trials."""
    total: int
    without_script: str
    """Where the rest is, for a reader without JavaScript."""
    notes: tuple[str, ...]
    """What the page shows, and where the rest is."""
    filters: tuple[Filter, ...]
    data: str
    chunks: tuple[str, ...]


def trials_section(
    manifest: RunManifest, trials: Sequence[TrialRecord], place: str | None = None, records: str = TRIALS_NAME
) -> TrialsSection | None:
    """Every trial of the run; None when there is none yet. `place` is its folder as a command names it, and `records`
    the file in it that has the trials."""
    if not trials:
        return None
    where = printable(place or f"results/{manifest.run_id}")
    cells = list(dict.fromkeys(trial.cell for trial in trials))
    quantity = quantity_of(cells)
    details = details_of(trials)
    filters = _filters(trials, cells)
    data = columns_of(trials, cells) | {
        "run": printable(manifest.run_id),
        "records": f"{where}/{records}",
        "cells": described_cells(manifest, cells),
        "grain": GRAIN,
        "perChunk": PER_CHUNK,
        "there": [int(there) for there in details.there],
        "choices": {filter.key: filter.values for filter in filters},
    }
    labels = dict(zip((cell.cell_id for cell in cells), labels_of(cells), strict=True))
    first = trials[:FIRST_ROWS]
    return TrialsSection(
        headings=tuple((quantity.worded(key), quantity.worded(name), numeric) for key, name, numeric in HEADINGS),
        rows=tuple(_row(number, trial, labels[trial.cell_id]) for number, trial in enumerate(first, start=1)),
        total=len(trials),
        without_script=_without_script(where, records, len(trials)),
        notes=_notes(f"{where}/{records}", details, len(trials)),
        filters=filters,
        data=packed(data),
        chunks=details.chunks,
    )


def _row(number: int, trial: TrialRecord, label: str) -> tuple[str, ...]:
    rate, windows = trial.throughput, trial.windows
    ended = trial.measured or trial.status == "wrong_result"
    return (
        str(number),
        label,
        str(trial.block),
        STATUS_WORDS[trial.status],
        NOTHING if rate is None else significant(rate),
        seconds(trial.step_time_s),
        seconds(trial.cpu_seconds_each),
        size(trial.peak_memory_bytes),
        seconds(trial.phases.fixed_s) if ended else NOTHING,
        str(len(windows.seconds) - windows.measured_from) if windows is not None else NOTHING,
    )


def _without_script(place: str, records: str, total: int) -> str:
    shown = min(total, FIRST_ROWS)
    rest = f"The first {shown} of {plural(total, 'trial')}" if shown < total else f"{plural(total, 'trial')}"
    export = f"python -m harness export {shlex.quote(place)} --format csv"
    return (
        f"{rest}, in the order recorded. To sort, filter and open them this page needs JavaScript; without it, all are "
        f"in {place}/{records}, and `{export}` makes a table of them."
    )


def _notes(records: str, details: Details, total: int) -> tuple[str, ...]:
    where = f"{records}, whose line number is the trial's number here"
    figures = (
        f"Figures are rounded to {DIGITS_SHOWN} digits and windows to a thousandth of the trial's median window; "
        f"unrounded they are in {where}."
    )
    if details.count == total:
        return (figures,)
    held = (
        f"All {plural(total, 'trial')} are in the table. The single windows of {details.count:,} of them are in this "
        "page, first of those that did not end well, then block after block; those of the other "
        f"{total - details.count:,} would make it too large and are in the same file."
    )
    return (figures, held)


def _filters(trials: Sequence[TrialRecord], cells: Sequence[Cell]) -> tuple[Filter, ...]:
    statuses = tuple(sorted({STATUS_WORDS[trial.status] for trial in trials}))
    found = [Filter("status", "status", statuses, statuses)] if len(statuses) > 1 else []
    for key in varying_keys(cells):
        if key == "global_batch_size":
            continue  # follows from batch size and replicas
        values = tuple(map(_value, sorted({value for cell in cells if (value := cell.get(key)) is not None})))
        if len(values) <= _MOST_CHOICES:
            found.append(Filter(key, key.replace("_", " "), tuple(map(_choice, values)), values))
    return tuple(found)


def _value(value: object) -> str:
    """As the script's String() writes it."""
    return printable(str(value).lower() if isinstance(value, bool) else str(value))


def _choice(value: str) -> str:
    """In a list no choice may be blank, and spaces that a browser would leave out are shown."""
    if not value.strip():
        return f"({plural(len(value), 'space')})" if value else "(none)"
    return value if value == " ".join(value.split()) else value.replace(" ", "\N{NO-BREAK SPACE}")
