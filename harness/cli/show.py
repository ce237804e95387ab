"""`harness show`: a run as a table on the terminal."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from harness.report.table import Table

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
    from harness.analysis.summary import summarise
    from harness.record.reading import load_run, resolve_run
    from harness.report.answer import answer_lines
    from harness.report.export import exporters
    from harness.report.table import show_tables

    loaded = load_run(resolve_run(run, results))
    if json_out:
        print(exporters()["json"].export(loaded, None))
        return 0
    summary = summarise(loaded.manifest, loaded.trials)
    print(loaded.manifest.run_id)
    for table in show_tables(summary):
        _print(table)
    print("\n".join(answer_lines(summary)))
    return 0


def _print(table: "Table") -> None:
    """A table as wide as the terminal allows; in a pipe, as wide as it needs."""
    import sys

    from rich import box
    from rich.console import Console
    from rich.table import Table as Drawn
    from rich.text import Text

    drawn = Drawn(title=table.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for column in table.columns:
        drawn.add_column(column.name, justify="right" if column.numeric else "left", overflow="fold")
    for number, row in enumerate(table.rows):
        drawn.add_row(*(Text(cell) for cell in row), style="bold" if number in table.marked else None)
    Console(width=None if sys.stdout.isatty() else 240).print(drawn)
    if table.note:
        print(table.note + "\n")
