"""`harness show`: a run as a table on the terminal."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli._options import FOLDER, AsJson, RankUnproved, ResultsFolder, RunName

if TYPE_CHECKING:
    from harness.record import Run

VERB = "show"
EXAMPLES = "Examples: harness show latest\n\nharness show latest --json | jq '.manifest.status'"
HELP = (
    "Show a run in words and a table: what was measured, each cell with its windows, the answer, what failed and why; "
    "of ab, validate and faults, what they found."
)


def command(
    run: RunName,
    rank_unproved: RankUnproved = False,
    results: ResultsFolder = FOLDER,
    json_out: AsJson = False,
) -> int:
    """Run the verb."""
    from harness.record.reading import load_run, resolve_run

    tell(replace(load_run(resolve_run(run, results)), rank_unproved=rank_unproved), results, json_out)
    return 0


def tell(run: "Run", results: Path, json_out: bool) -> None:
    """Print what a run found as its kind is shown, or one JSON object."""
    from harness.cli._table import surface
    from harness.report.kinds import presentation_of

    kind = presentation_of(run.manifest)
    print(kind.as_json(run, results) if json_out else kind.text(run, results, surface()), end="")
