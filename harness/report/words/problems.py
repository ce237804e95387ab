"""Every cell that is wrong, unsupported, still warming up or ended early, in plain words with its evidence."""

import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from harness.analysis import CellSummary, Problem, RunSummary
from harness.analysis.paging import tried_by
from harness.analysis.trends import trend_words
from harness.report.page.trials.detail import long_text
from harness.report.words.remedies import REMEDY_OF_LOST, remedy, resumed, trend_remedy
from harness.report.words.separation import ENOUGH
from harness.report.words.text import CHECK_WORDS, STATUS_MEANING, STATUS_WORDS, significant
from harness.visible import plural, printable

OTHER_LENGTH = 1.5
"""From this factor on windows are told to be of another length than most."""
_NOT_LOST = ("unproved", "interrupted")
_ORDER = ("wrong_result", "crashed", "timeout", "out_of_memory", "interrupted", "unsupported", "missing")


@dataclass(frozen=True)
class Explained:
    """One reason, and the cells that it holds for."""

    status: str
    heading: str
    meaning: str
    cells: tuple[str, ...]
    """Labels, each with how many of its trials ended so."""
    reason: str
    failed_checks: tuple[str, ...] = ()
    details: tuple[tuple[str, str], ...] = ()
    """Of a failed gate: (what did not hold, which replica and tensor, what was expected and what came)."""
    evidence: str = ""
    """Stacks and output of the first of its trials that has some."""
    other_evidence: int = 0
    """How many other cells have stacks or output of their own, which differ: paths, addresses and times in them do."""
    remedy: str = ""


@dataclass(frozen=True)
class Remark:
    """Something to know about cells that have a throughput."""

    text: str
    cells: tuple[str, ...]
    """Labels, each with what is so of it."""
    remedy: str = ""


def explained(summary: RunSummary) -> tuple[Explained, ...]:
    """All trials that were not measured and all cells that never ran, one entry a reason, the worst first.

    Of a run that has finished no trial that was interrupted: it was run again.
    """
    left_out = _NOT_LOST if summary.judged else ("unproved",)
    grouped: defaultdict[Problem, list[tuple[Problem, str]]] = defaultdict(list)
    names = {cell_id: printable(name) for cell_id, name in summary.names.items()}
    for cell in summary.cells:
        for problem in cell.trials.problems:
            # how many trials differs from cell to cell, and stacks from process to process, for one reason
            key = replace(problem, trials=0, evidence=None)
            if problem.status not in left_out:
                grouped[key].append((problem, f"{names[cell.cell_id]} ({_of_trials(problem.trials, cell)})"))
    entries = [_explain(key, found, summary.run_id) for key, found in grouped.items()]
    missing = tuple(names[cell.cell_id] for cell in summary.cells if cell.trials.status == "missing")
    if missing:
        heading, meaning = STATUS_WORDS["missing"], STATUS_MEANING["missing"]
        told = resumed(summary.run_id)
        entries.append(Explained("missing", heading, meaning, missing, "no trial is recorded", remedy=told))
    return tuple(sorted(entries, key=lambda entry: _ORDER.index(entry.status)))


def remarks(summary: RunSummary) -> tuple[Remark, ...]:
    """Cells with a throughput that deserve a second look, those with one reason together."""
    grouped: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    names = summary.names
    for work in summary.workloads:
        lasted = [cell.measured.windows.window_s for cell in work.cells if cell.measured and cell.measured.windows]
        typical_s = statistics.median(lasted) if lasted else 0.0
        for cell in work.cells:
            for text, of_cell, todo in _remarks_on(cell, summary, typical_s):
                grouped[text, todo].append(printable(names[cell.cell_id]) + (f" ({of_cell})" if of_cell else ""))
    return tuple(Remark(text, tuple(cells), todo) for (text, todo), cells in grouped.items())


def _one_step(cell: CellSummary, lasts: float) -> str:
    """Why a window is longer than others can be made: it is a single step."""
    windows = cell.measured.windows if cell.measured is not None else None
    return ", for one step is" if lasts > 1 and windows is not None and windows.steps[1] == 1 else ""


def _of_trials(count: int, cell: CellSummary) -> str:
    return f"{count} of {plural(cell.trials.trials, 'trial')}"


def _explain(problem: Problem, found: Sequence[tuple[Problem, str]], run_id: str) -> Explained:
    """`problem` is what those of all its cells share."""
    where = f" in phase '{problem.phase}'" if problem.phase else ""
    evidence = [one.evidence for one, _ in found if one.evidence]
    return Explained(
        status=problem.status,
        heading=f"{STATUS_WORDS[problem.status]}{where}",
        meaning=STATUS_MEANING[problem.status],
        cells=tuple(words for _, words in found),
        reason=printable(_reason(problem)),
        failed_checks=tuple(CHECK_WORDS.get(name, name) for name in problem.failed_checks),
        details=tuple((CHECK_WORDS.get(name, name), printable(text)) for name, text in problem.details),
        evidence=long_text(evidence[0]) if evidence else "",
        other_evidence=sum(other != evidence[0] for other in evidence),
        remedy=remedy(problem, run_id),
    )


def _reason(problem: Problem) -> str:
    """The reason, unless it only repeats the evidence of a check."""
    repeated = {f"{name}: {text}" for name, text in problem.details} | {text for _, text in problem.details}
    return "" if problem.reason in repeated else problem.reason


def _remarks_on(cell: CellSummary, summary: RunSummary, typical_s: float) -> Iterator[tuple[str, str, str]]:
    """(what to know, how it is with this cell, what to do about it); windows typically last `typical_s`."""
    measured = cell.measured
    if measured is None:
        return
    if measured.trend is not None:
        words = "Windows that still change in the course of a trial, relative to those of the other trials"
        yield words, trend_words(measured.trend), trend_remedy(measured.trend)
    lasts = measured.windows.window_s / typical_s if measured.windows is not None and typical_s else 1.0
    if not 1 / OTHER_LENGTH <= lasts <= OTHER_LENGTH:
        words = (
            "Windows of another length than most cells', on which what a window costs beside its steps weighs otherwise"
        )
        yield words, f"{significant(lasts, 2)} times as long{_one_step(cell, lasts)}", "use a larger --window"
    if measured.paging is not None and measured.paging.is_much:
        words = "Steps that pay for memory which glibc gives back and takes again"
        yield words, measured.paging.words, f"{tried_by(cell.trials.cell)} measures it with that memory kept"
    for problem in cell.trials.problems:
        if problem.status == "unproved" and cell.trials.unproved is not None:
            words = f"Unproved, so that a fault could have gone unseen: {printable(problem.reason)}"
            yield words, _of_trials(problem.trials, cell), remedy(problem, summary.run_id)
    if lost := sum(problem.trials for problem in cell.trials.problems if problem.status not in _NOT_LOST):
        yield "Trials that did not end well; the throughput is of the rest", _of_trials(lost, cell), REMEDY_OF_LOST
    if missing := cell.trials.not_run:
        words = f"{missing} of {plural(cell.trials.planned, 'planned trial')} not run"
        yield "Planned trials that were not run", words, f"--resume {summary.run_id} runs them"
    if measured.trials == 1:
        todo = f"use --trials {ENOUGH}" if cell.trials.planned < ENOUGH else ""
        yield "One trial: how certain its throughput is cannot be known", "", todo
    for note in cell.trials.notes[:1]:  # trials differ in the figure only
        yield "The gate remarks", printable(note), ""
    differs = cell.trials.executed.differs_from_request
    if differs:
        yield "What ran is not what was asked for", printable(differs), "read the figures as those of what ran"
