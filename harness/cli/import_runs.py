"""`harness import`: a published table as a run of figures that were not measured here."""

from pathlib import Path
from typing import Annotated

import typer

from harness.cli._options import FOLDER, AsJson, ResultsFolder
from harness.visible import json_text, plural

VERB = "import"
HELP = (
    "Keep a published table (CSV) as a run, marked as imported: for overlays and comparisons. It has no trials and no "
    "windows, and an interval only where the table gives one."
)
EXAMPLES = "Example: harness import harness/report/data/published_scaling.csv"


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="The table; docs/exports.md has the columns.")],
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Part of the run's id. Default: the file's name.")
    ] = None,
    source: Annotated[
        str | None, typer.Option("--source", metavar="TEXT", help="Where rows come from that do not say so themselves.")
    ] = None,
    results: ResultsFolder = FOLDER,
    json_out: AsJson = False,
) -> int:
    """Run the verb."""
    from harness.record.imported import ImportedRecord
    from harness.record.reading import load_manifest
    from harness.run.kinds.published_table import import_table

    path, count = import_table(file, results, name, source)
    left_out = load_manifest(path).part(ImportedRecord).left_out
    if json_out:
        answer = {"run_id": path.name, "path": str(path), "figures": count, "left_out": left_out}
        print(json_text(answer), end="")
        return 0
    without = f" ({plural(left_out, 'row')} without a figure in examples/s left out)" if left_out else ""
    print(f"{plural(count, 'published figure')}, not measured here{without}: {path}")
    return 0
