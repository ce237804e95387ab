"""`harness export`: a run for other tools."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from harness.cli._completion import RUN_HELP, run_ids

VERB = "export"
HELP = "Export a run: csv (a row a trial), cells (a row a cell), json, markdown, parquet."
EXAMPLES = "Example: harness export latest --format csv --output run.csv"


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help=RUN_HELP, autocompletion=run_ids)],
    format_name: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="cells, csv, json, markdown, parquet.")
    ] = "csv",
    output: Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Default: standard output.")] = None,
    results: Annotated[Path, typer.Option("--results", metavar="DIR", help="Folder that runs are kept in.")] = Path(
        "results"
    ),
) -> int:
    """Run the verb."""
    from harness.errors import not_one_of
    from harness.record.reading import load_run, resolve_run
    from harness.report.export import exporters

    known = exporters()
    if format_name not in known:
        raise not_one_of("--format", format_name, known)
    loaded = load_run(resolve_run(run, results))
    text = known[format_name].export(loaded, output)
    if output is None:
        sys.stdout.write(text or "")
    else:
        sys.stderr.write(f"{format_name}: {output}\n")
    return 0
