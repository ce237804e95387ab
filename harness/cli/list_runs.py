"""`harness list`: the runs of a results folder."""

from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli._options import FOLDER, ResultsFolder
from harness.visible import json_text, printable

if TYPE_CHECKING:
    from harness.record.reading import RunListing

VERB = "list"
HELP = "List the runs, newest last."
EXAMPLES = "Examples: harness list\n\nharness list --json | jq -r '.[] | select(.status == \"finished\") | .run_id'"

_STATUS = 11
"""Letters of the longest one."""


def command(
    results: ResultsFolder = FOLDER,
    json_out: Annotated[bool, typer.Option("--json", help="Print one JSON array.")] = False,
) -> int:
    """Run the verb."""
    from harness.record.reading import list_runs

    listings = list_runs(results)
    if json_out:
        rows = [{**vars(listing), "path": str(listing.path)} for listing in listings]
        print(json_text(rows), end="")
        return 0
    if not listings:
        print(f"no runs in {results}; make one with: python -m harness sweep")
        return 0
    width = max(len(listing.path.name) for listing in listings)
    print(f"{'run':<{width}}  {'status':<{_STATUS}}  recorded of planned, and cells")
    for listing in listings:
        renamed = "" if listing.path.name == listing.run_id else f"  (run {listing.run_id})"
        print(printable(f"{listing.path.name:<{width}}  {_state(listing)}{renamed}"))
    return 0


def _state(listing: "RunListing") -> str:
    if listing.problem:
        return f"unreadable: {listing.problem}"
    from harness.report.kinds import presentations

    status = "running now" if listing.live else "killed" if listing.status == "running" else listing.status
    kind = presentations().get(listing.kind or "")
    return f"{status:<{_STATUS}}  {f'a run of {listing.kind}' if kind is None else kind.listed(listing)}"
