"""The report: one self-contained HTML file."""

import contextlib
import functools
import gc
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from harness.analysis import RunSummary, summarise
from harness.analysis.cells import PHASE_FIELDS
from harness.analysis.comparison import Comparison
from harness.record.kind import TRIALS_NAME
from harness.record.limits import LimitsRecord
from harness.record.manifest import RunManifest
from harness.record.packed import records_file
from harness.record.trial import TrialRecord
from harness.record.validation import ValidationRecord
from harness.report.export.base import write
from harness.report.figures.ranking import glance_figure
from harness.report.figures.svg import style
from harness.report.page.sections import PageSource, Section, sections_of
from harness.report.page.sections.figures import margins_of_ops
from harness.report.page.templating import rendered
from harness.report.tables.overlay import Published
from harness.report.tables.overview import overview_table
from harness.report.tables.table import MOST_ROWS
from harness.report.words.answer import AnswerText, answers, run_sentences
from harness.report.words.machine import busy_words, machine_words
from harness.report.words.text import sentence
from harness.report.words.where import pointers
from harness.spec.work import quantity_of
from harness.visible import plural, printable

_SCRIPTS = ("print.js", "csv.js", "cut.js")
"""What every report needs, beside what its sections name."""


def write_report(
    manifest: RunManifest,
    trials: Sequence[TrialRecord],
    output: Path,
    validation: ValidationRecord | None = None,
    comparison: Comparison | None = None,
    *,
    run_folder: Path | None = None,
    overlay: tuple[Published, ...] | None = None,
    rank_unproved: bool = False,
    limits: LimitsRecord | None = None,
    others: Sequence[Section] = (),
) -> RunSummary:
    """Write the page to `output`, whole or not at all, and return the summary that it shows.

    `validation`, of the machine that measured, is cited where the method is described; `comparison` is that with a
    base run, its side A. `run_folder` is where the run lies, for links to its traces and for commands; `overlay` takes
    the place of the published series that come with the package. With `rank_unproved` the ranking takes in cells that
    are unproved. `limits` are those of the machine that measured; `others` is what other runs of it show here.

    Raises StorageError when `output` cannot be written, HarnessError when a record cannot be summarised.
    """
    summary = summarise(manifest, trials, rank_unproved)
    source = PageSource(
        *(manifest, trials, summary, validation, comparison, overlay),
        output=output,
        limits=limits,
        others=tuple(others),
    )
    if run_folder is not None:
        seen, place = os.path.relpath(run_folder, output.parent), _place(run_folder)
        source = replace(source, run_folder=seen, run_place=place, records=records_file(run_folder / TRIALS_NAME).name)
    write_page(source, output)
    return summary


def write_page(source: PageSource, output: Path) -> None:
    """Write the page of `source` to `output`, whole or not at all. Raises StorageError."""
    write(output, page_of(source).encode("utf-8", "replace"), "FILE.html")


def render(
    manifest: RunManifest,
    trials: Sequence[TrialRecord],
    summary: RunSummary,
    validation: ValidationRecord | None = None,
) -> str:
    """The page as text. Pure: the same records give the same bytes."""
    return page_of(PageSource(manifest, trials, summary, validation))


def page_of(source: PageSource) -> str:
    """The page: the answer, then each section that the run has something for."""
    with _records_set_aside(), style():
        return _page_of(source)


@contextlib.contextmanager
def _records_set_aside() -> Iterator[None]:
    """The collector passes over what is there already: walking through 10,000 trials again and again took a tenth.

    Not where who calls has set objects aside too: those would be given back with ours.
    """
    if _set_aside_before():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@functools.cache
def _set_aside_before() -> bool:
    """Whether who imported this had set objects aside. Asked once: they are counted one by one."""
    return gc.get_freeze_count() > 0


def _page_of(source: PageSource) -> str:
    sections = sections_of(source)
    works, margins = source.summary.workloads, margins_of_ops(source)[0]
    texts = answers(source.summary, _block_s(source.trials, source.summary), margins)
    glances = [glance_figure(work, f"glance-w{place}") for place, work in enumerate(works)]
    scripts = (*_SCRIPTS, *(name for section in sections for name in section.scripts))
    return rendered(
        "report.html.j2",
        manifest=source.manifest,
        place=source.place,
        machine=machine_words(source.manifest.facts),
        busy=busy_words(source.manifest.facts),
        measured=printable(f"{source.manifest.created_utc[:16].replace('T', ' ')} UTC"),
        answers=texts,
        headline_of_all=_headline(texts),
        overview=overview_table(source.summary) if len(texts) == len(works) else None,
        glances=glances if len(texts) == len(works) else [None] * len(texts),
        run_sentences=run_sentences(source.summary),
        pointers=pointers(source.output),
        sections=sections,
        wrong=any(section.slug == "problems" for section in sections),
        scripts=list(dict.fromkeys(scripts)),
        worded=quantity_of(cell.trials.cell for cell in source.summary.cells).worded,
        most_rows=MOST_ROWS,
        plural=plural,
        printable=printable,
        sentence=sentence,
    )


def _headline(texts: Sequence[AnswerText]) -> str:
    """What the index says of the page: of several answers the first, for all would be cut in their middle."""
    if not texts:
        return "Nothing was measured."
    if len(texts) == 1:
        return f"{texts[0].headline} {texts[0].fastest}".strip()
    return f"{texts[0].workload}: {texts[0].headline} And {len(texts) - 1} more."


def _place(folder: Path) -> str:
    """The folder as a command names it: seen from the working folder where it lies below that, else as it was given."""
    try:
        here, whole = Path.cwd(), folder.absolute()
    except OSError:  # somebody has removed the working folder
        return folder.as_posix()
    if whole != here and whole.is_relative_to(here):
        return whole.relative_to(here).as_posix()
    return (whole if folder == Path() else folder).as_posix()


def _block_s(trials: Sequence[TrialRecord], summary: RunSummary) -> float | None:
    """Seconds that one block took, of a run that ended; None where that is not known.

    Of each group from its first start to its last end: a run that was resumed stood still between groups.
    """
    if not summary.blocks or summary.status != "finished":
        return None
    groups: defaultdict[tuple[int, str], list[tuple[datetime, datetime]]] = defaultdict(list)
    try:
        for trial in trials:
            begun = datetime.fromisoformat(trial.started_utc)
            lasted = sum(getattr(trial.phases, name) or 0 for name in PHASE_FIELDS)
            groups[trial.block, trial.group].append((begun, begun + timedelta(seconds=lasted)))
        spans = [max(ended for _, ended in of) - min(begun for begun, _ in of) for of in groups.values()]
        total = sum(spans, timedelta()).total_seconds()
    except (ValueError, TypeError, OverflowError):  # written by hand, or one with a time zone and one without
        return None
    return total / summary.blocks if total > 0 else None
