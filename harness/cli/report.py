"""`harness report`: one HTML file from a run."""

from pathlib import Path
from typing import Annotated

import typer

VERB = "report"
HELP = "Write the HTML report of a run: one file, no network needed."
EXAMPLES = "Example: harness report latest --output reports/today.html"


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run's folder, its id, a prefix of it, or 'latest'.")],
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE.html", help="Default: reports/<run>.html.")
    ] = None,
    results: Annotated[Path, typer.Option("--results", metavar="DIR", help="Folder that runs are kept in.")] = Path(
        "results"
    ),
) -> int:
    """Run the verb."""
    from harness.record.reading import load_run, resolve_run
    from harness.report import write_report
    from harness.report.answer import answer_lines

    loaded = load_run(resolve_run(run, results))
    target = output or Path("reports") / f"{loaded.manifest.run_id}.html"
    summary = write_report(loaded.manifest, loaded.trials, target)
    print("\n".join(answer_lines(summary)))
    print(f"report: {target}")
    return 0
