"""Traces of a run, for people: which cells have one, where it lies, and how to look at it."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from harness.record.trial import TrialRecord
from harness.report.words.text import size
from harness.visible import plural, printable


@dataclass(frozen=True)
class TraceRow:
    """One traced trial. `href` is the trace's folder as the page sees it; empty where there is no trace."""

    cell: str
    words: str
    href: str


def trace_rows(trials: Sequence[TrialRecord], run_folder: str) -> tuple[TraceRow, ...]:
    """Every traced trial, in the order recorded; `run_folder` is the run's folder seen from where the rows stand."""
    rows = []
    for trial in trials:
        trace = trial.trace
        if trace is None:
            continue
        if trace.path is None:
            words = f"no trace: {printable(trace.reason or 'no reason was recorded')}"
        else:
            words = f"{plural(trace.steps, 'step')} of block {trial.block}, {size(trace.bytes)}"
        href = quote(f"{run_folder}/{trace.path}") if trace.path is not None else ""
        rows.append(TraceRow(printable(trial.cell.label), words, href))
    return tuple(rows)


def trace_lines(trials: Sequence[TrialRecord], folder: Path) -> list[str]:
    """The same for the terminal: a line a trace, and the command that opens them; empty where none was asked for."""
    rows = trace_rows(trials, ".")
    if not rows:
        return []
    lines = [f"trace of {row.cell}: {row.words}" for row in rows]
    if any(row.href for row in rows):
        lines.append(f"look at them: {tensorboard(folder / 'traces')}")
    return lines


def tensorboard(folder: Path | str) -> str:
    """The command that opens traces; TensorBoard reads them by the plugin of the package xprof."""
    return f"tensorboard --logdir {shlex.quote(str(folder))}"
