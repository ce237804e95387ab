"""`harness export`: a run for other tools."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli._completion import one_of
from harness.cli._options import FOLDER, RankUnproved, ResultsFolder, RunName, with_names
from harness.visible import plural

if TYPE_CHECKING:
    from harness.record import Run

VERB = "export"
MEASURED_ONLY = ("pytest-benchmark", "github-action-bigger", "github-action-smaller")
"""Formats that have no place for a cell without a throughput."""
HELP = "Export a run for another tool."
EXAMPLES = (
    "Examples: harness export latest --format csv --output run.csv; "
    "harness export latest --format tensorboard --output logs"
)


def _formats() -> list[str]:
    from harness.report.kinds import formats

    return list(formats())


COMMAND = with_names(lambda _: ", ".join(_formats()))


def command(
    run: RunName,
    format_name: Annotated[
        str,
        typer.Option("--format", metavar="FORMAT", help="One of: {names}.", autocompletion=one_of(_formats)),
    ] = "csv",
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Default: standard output. asv, tensorboard: a folder."),
    ] = None,
    rank_unproved: RankUnproved = False,
    results: ResultsFolder = FOLDER,
) -> int:
    """Run the verb."""
    from harness.errors import UsageError, not_one_of
    from harness.record.reading import load_run, resolve_run
    from harness.report.kinds import formats, presentation_of

    if format_name not in (known := formats()):
        raise not_one_of("--format", format_name, known)
    loaded = replace(load_run(resolve_run(run, results)), rank_unproved=rank_unproved, results=results)
    kind = presentation_of(loaded.manifest)
    if format_name not in (fitting := kind.exporters()):
        raise UsageError(kind.lacks_format(loaded))
    text = fitting[format_name].export(loaded, output)
    if output is None:
        sys.stdout.write(text or "")
    else:
        sys.stderr.write(f"{format_name}: {output}\n")
    _say_what_is_to_come(loaded)
    if format_name in MEASURED_ONLY:
        _say_what_is_left_out(loaded)
    return 0


def _say_what_is_to_come(run: "Run") -> None:
    """In most formats a run that was stopped or is under way looks like a whole one."""
    from harness.analysis.summary import JUDGED, planned_trials

    if run.manifest.what.kind.measured and run.manifest.status != JUDGED:
        planned = sum(planned_trials(run.manifest).values())
        sys.stderr.write(f"not finished: {min(len(run.trials), planned)} of {plural(planned, 'trial')}\n")


def _say_what_is_left_out(run: "Run") -> None:
    """A cell that failed is in no file of these formats; somebody must say so."""
    from harness.analysis.summary import summarise

    left_out = sum(cell.measured is None for cell in summarise(run.manifest, run.trials).cells)
    if left_out:
        sys.stderr.write(f"left out, without a throughput: {plural(left_out, 'cell')}; --format csv says why\n")
