"""`harness show`: a run as a table on the terminal."""

from pathlib import Path
from typing import Annotated

import typer

VERB = "show"
HELP = "Show a run as a table: throughput, interval, scaling, status; of ab, validate, faults what they found."


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run's folder, its id, a prefix of it, or 'latest'.")],
    results: Annotated[Path, typer.Option("--results", metavar="DIR", help="Folder that runs are kept in.")] = Path(
        "results"
    ),
    json_out: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Run the verb."""
    from harness.analysis.summary import summarise
    from harness.cli._comparison import comparison_of, deliver
    from harness.cli._table import print_table
    from harness.record.reading import load_run, resolve_run
    from harness.report.answer import answer_lines
    from harness.report.export import exporters
    from harness.report.table import show_tables
    from harness.report.traces import trace_lines

    loaded = load_run(resolve_run(run, results))
    if loaded.manifest.comparison is not None:
        deliver(comparison_of(loaded, results), "json" if json_out else "terminal", None)
        return 0
    if loaded.manifest.validation is not None:
        from harness.analysis.validation import validation_of
        from harness.cli.validate import tell

        tell(validation_of(loaded), loaded.path, json_out)
        return 0
    if loaded.manifest.faults is not None:
        from harness.cli.faults import tell as tell_faults

        tell_faults(loaded, json_out)
        return 0
    if loaded.manifest.imported is not None and not json_out:
        from harness.report.imported import imported_table

        print(loaded.manifest.run_id)
        print_table(imported_table(loaded.manifest.imported))
        return 0
    if json_out:
        print(exporters()["json"].export(loaded, None))
        return 0
    summary = summarise(loaded.manifest, loaded.trials)
    print(loaded.manifest.run_id)
    for table in show_tables(summary):
        print_table(table)
    print("\n".join([*answer_lines(summary), *trace_lines(loaded.trials, loaded.path)]))
    return 0
