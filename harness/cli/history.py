"""`harness history`: the runs of one machine as series, and where their level changes."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli._completion import strategies
from harness.cli._index import list_in_index
from harness.cli._options import FOLDER, AsJson, ResultsFolder
from harness.visible import json_text, one_line, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.analysis.history.series import Series
    from harness.record.reading import Run
    from harness.record.validation import Rate
    from harness.report.history.words import Between

VERB = "history"
HELP = (
    "Show each cell's throughput over the runs of a machine, mark where its level changes, and say what differed "
    "there: the environment and the commits between."
)
EXAMPLES = "Example: harness history --cell 'mirrored ×2' --output reports/history.html"


def command(
    cell: Annotated[
        list[str] | None,
        typer.Option(
            "--cell",
            metavar="CELL",
            help="A cell's id or part of its name; may be given again. Default: all.",
            autocompletion=strategies,
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE.html", help="Write a page with a figure for each series.")
    ] = None,
    results: ResultsFolder = FOLDER,
    json_out: AsJson = False,
) -> int:
    """Run the verb."""
    from harness.analysis.history.false_alarms import false_alarms
    from harness.analysis.history.series import history
    from harness.errors import UsageError
    from harness.report.export.base import refuse_place, write
    from harness.report.history import history_json, history_page

    if output is not None:
        refuse_place(output, "FILE.html")
    read: list[str] = []
    series = history(_runs(results, read), cell or ())
    if cell and not series:
        raise UsageError(f"--cell: no run in '{results}' has a cell '{cell[0]}'; `harness show latest` names the cells")
    between, alarms = _between(series), false_alarms(series)
    if output is not None:
        write(output, history_page(series, between, len(read), alarms).encode("utf-8", "replace"), "FILE.html")
        list_in_index(output)
    if json_out:
        print(json_text(history_json(series, between, len(read), alarms)), end="")
        return 0
    _tell(series, between, len(read), alarms)
    if output is not None:
        print(f"history: {output}")
    return 0


def _between(series: "Sequence[Series]") -> "Between":
    """The commits between the two runs of every change."""
    from harness.environment.commits import commits_between

    revisions = dict.fromkeys(change.revisions for one in series for change in one.changes)
    return {pair: commits_between(*pair) for pair in revisions}


def _tell(series: "Sequence[Series]", between: "Between", runs: int, alarms: "Rate | None") -> None:
    from harness.cli._table import print_table
    from harness.report.history import change_lines, false_alarm_line, history_table, summary_lines

    if series:
        print_table(history_table(series))
    lines = [*change_lines(series, between), *summary_lines(series, runs), false_alarm_line(alarms)]
    print("\n".join(line for line in lines if line))


def _runs(results: Path, read: list[str]) -> "Iterator[Run]":
    """Every run that can be read, one at a time; those that cannot are named on standard error, those that only prove
    are counted there."""
    from harness.analysis.history.series import proves_only
    from harness.analysis.summary import JUDGED
    from harness.errors import HarnessError
    from harness.record.reading import list_runs, load_run

    proofs = 0
    for row in list_runs(results):
        if row.status == "imported":
            continue  # published figures: no machine measured them
        if row.status not in (None, JUDGED):
            sys.stderr.write(f"harness: left out: {one_line(row.run_id)} has not finished ({row.status})\n")
            continue
        try:
            run = load_run(row.path)
        except HarnessError as error:
            sys.stderr.write(f"harness: left out: {one_line(str(error))}\n")
            continue
        if proves_only(run.manifest):
            proofs += 1
            continue
        read.append(row.run_id)
        yield run
    if proofs:
        sys.stderr.write(f"harness: left out: {plural(proofs, 'run')} proved, not timed\n")
