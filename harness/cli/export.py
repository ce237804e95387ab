"""`harness export`: a run for other tools."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli._options import FOLDER, RankUnproved, ResultsFolder, RunName, with_names

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


def _formats(incomplete: str = "") -> list[str]:
    from harness.report.kinds import formats

    return [name for name in formats() if name.startswith(incomplete)]


COMMAND = with_names(lambda _: ", ".join(_formats()))


def command(
    run: RunName,
    format_name: Annotated[
        str,
        typer.Option("--format", metavar="FORMAT", help="One of: {names}.", autocompletion=_formats),
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
    if format_name in MEASURED_ONLY:
        _say_what_is_left_out(loaded)
    return 0


def _say_what_is_left_out(run: "Run") -> None:
    """A cell that failed is in no file of these formats; somebody must say so."""
    from harness.analysis.summary import summarise

    left_out = sum(cell.measured is None for cell in summarise(run.manifest, run.trials).cells)
    if left_out:
        cells = "1 cell" if left_out == 1 else f"{left_out} cells"
        sys.stderr.write(f"left out, without a throughput: {cells}; --format csv says why\n")
