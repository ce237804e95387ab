"""`harness show`: a run as a table on the terminal."""

from pathlib import Path
from typing import Annotated

import typer

from harness.cli._completion import RUN_HELP, run_ids
from harness.errors import harmless

VERB = "show"
EXAMPLES = "Examples: harness show latest\n\nharness show latest --json | jq '.manifest.status'"
HELP = (
    "Show a run in words and a table: what was measured, each cell with its windows, the answer, what failed and why; "
    "of ab, validate and faults, what they found."
)


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help=RUN_HELP, autocompletion=run_ids)],
    results: Annotated[Path, typer.Option("--results", metavar="DIR", help="Folder that runs are kept in.")] = Path(
        "results"
    ),
    json_out: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Run the verb."""
    from harness.analysis.summary import summarise
    from harness.cli._comparison import comparison_of, deliver
    from harness.cli._table import print_table, surface
    from harness.record.reading import load_run, resolve_run
    from harness.report.export import exporters
    from harness.report.terminal.run import shown
    from harness.report.words.traces import trace_lines

    loaded = load_run(resolve_run(run, results))
    if loaded.manifest.comparison is not None:
        deliver(comparison_of(loaded, results), "json" if json_out else "terminal", None)
        return 0
    if loaded.manifest.validation is not None:
        from harness.analysis.validation.summary import validation_of
        from harness.cli.validate import tell
        from harness.record.validation import with_recorded_rules

        tell(with_recorded_rules(validation_of(loaded), loaded.path), loaded.path, json_out)
        return 0
    if loaded.manifest.faults is not None:
        from harness.cli.faults import tell as tell_faults

        tell_faults(loaded, json_out)
        return 0
    if loaded.manifest.imported is not None and not json_out:
        from harness.report.tables.published import imported_table

        print(harmless(loaded.manifest.run_id))
        print_table(imported_table(loaded.manifest.imported))
        return 0
    if json_out:
        print(exporters()["json"].export(loaded, None))
        return 0
    summary = summarise(loaded.manifest, loaded.trials)
    page = surface()
    print(shown(loaded.manifest, loaded.trials, summary, page.width, page.styled), end="")
    for line in trace_lines(loaded.trials, loaded.path):
        print(line)
    return 0
