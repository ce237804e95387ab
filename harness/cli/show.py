"""`harness show`: a run as a table on the terminal."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli._completion import RUN_HELP, RankUnproved, run_ids

if TYPE_CHECKING:
    from harness.record import Run

VERB = "show"
EXAMPLES = "Examples: harness show latest\n\nharness show latest --json | jq '.manifest.status'"
HELP = (
    "Show a run in words and a table: what was measured, each cell with its windows, the answer, what failed and why; "
    "of ab, validate and faults, what they found."
)


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help=RUN_HELP, autocompletion=run_ids)],
    rank_unproved: RankUnproved = False,
    results: Annotated[Path, typer.Option("--results", metavar="DIR", help="Folder that runs are kept in.")] = Path(
        "results"
    ),
    json_out: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Run the verb."""
    from harness.record.reading import load_run, resolve_run

    tell(replace(load_run(resolve_run(run, results)), rank_unproved=rank_unproved), results, json_out)
    return 0


def tell(run: "Run", results: Path, json_out: bool) -> None:
    """Print what a run found as its kind is shown, or one JSON object."""
    from harness.cli._table import surface
    from harness.report.kinds import shown_kind

    kind = shown_kind(run.manifest)
    print(kind.as_json(run, results) if json_out else kind.text(run, results, surface()), end="")
