"""`harness list`: the runs of a results folder."""

import json
from pathlib import Path
from typing import Annotated

import typer

VERB = "list"
HELP = "List the runs, newest last."
EXAMPLES = "Examples: harness list\n\nharness list --json | jq -r '.[] | select(.status == \"finished\") | .run_id'"


def command(
    results: Annotated[Path, typer.Option("--results", metavar="DIR", help="Folder that runs are kept in.")] = Path(
        "results"
    ),
    json_out: Annotated[bool, typer.Option("--json", help="Print one JSON array.")] = False,
) -> int:
    """Run the verb."""
    from harness.record.reading import list_runs

    listings = list_runs(results)
    if json_out:
        rows = [{**vars(listing), "path": str(listing.path)} for listing in listings]
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return 0
    if not listings:
        print(f"no runs in {results}; make one with: python -m harness sweep")
        return 0
    width = max(len(listing.run_id) for listing in listings)
    for listing in listings:
        if listing.problem:
            print(f"{listing.run_id:<{width}}  unreadable: {listing.problem}")
            continue
        if listing.status == "imported":
            print(f"{listing.run_id:<{width}}  imported     {listing.cells} published figures, not measured here")
            continue
        status = "running now" if listing.live else "killed" if listing.status == "running" else listing.status
        trials = f"{listing.trials:>4} of {listing.planned} {listing.unit}"
        print(f"{listing.run_id:<{width}}  {status:<11}  {trials}  {listing.cells} cells")
    return 0
