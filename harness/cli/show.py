"""`harness show`: a run as a table on the terminal."""

from pathlib import Path
from typing import Annotated

import typer

VERB = "show"
HELP = "Show a run as a table: every cell with its throughput, interval, scaling and status."


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run's folder, its id, a prefix of it, or 'latest'.")],
    results: Annotated[Path, typer.Option("--results", metavar="DIR", help="Folder that runs are kept in.")] = Path(
        "results"
    ),
    json_out: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Run the verb."""
    from rich.console import Console
    from rich.table import Table

    from harness.analysis.summary import summarise
    from harness.record.reading import load_run, resolve_run
    from harness.report.answer import answer_lines
    from harness.report.export import exporters
    from harness.report.table import summary_table

    loaded = load_run(resolve_run(run, results))
    if json_out:
        exporters()["json"].export(loaded.manifest, loaded.trials, None)
        return 0
    summary = summarise(loaded.manifest, loaded.trials)
    columns, rows = summary_table(summary)
    table = Table(title=loaded.manifest.run_id, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right", no_wrap=number == 0)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
    print("\n".join(answer_lines(summary)))
    return 0
