"""`harness doctor`: what this machine can run and why not the rest, what makes timings bad, what it can do at most."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli._options import FOLDER, ResultsFolder
from harness.errors import Interrupted, StorageError, UsageError
from harness.visible import json_text

if TYPE_CHECKING:
    from harness.environment import Description
    from harness.record.limits import LimitsRecord

VERB = "doctor"
EXAMPLES = (
    "Examples: harness doctor\n\nharness doctor --limits\n\nharness doctor --prove\n\n"
    "harness doctor --json | jq '.warnings'"
)
HELP = (
    "Say what this machine can run and why not the rest, what makes its timings bad, what it can do at most, and "
    "whether all that it can run is right."
)


def command(
    limits: Annotated[
        bool,
        typer.Option("--limits", help="Say what this machine can do at most; measured once, in about half a minute."),
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="With --limits: measure it again.")] = False,
    prove: Annotated[
        bool,
        typer.Option("--prove", help="Train a small cell of all that can run here, and ask what only hardware tells."),
    ] = False,
    results: ResultsFolder = FOLDER,
    json_out: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Run the verb."""
    from harness.environment import describe
    from harness.environment.commits import telling_unignored

    if again and not limits:
        raise UsageError("--again: it measures the limits again, and --limits is not given")
    if prove and limits:
        raise UsageError("--prove: it is given beside --limits; ask one of them")
    machine = describe()
    with telling_unignored(results):
        if prove:
            return _prove(machine, results, json_out)
        return _limits(machine, results, again, json_out) if limits else _examine(machine, json_out)


def _examine(machine: "Description", json_out: bool) -> int:
    """Try what there is, each in a process of its own."""
    from harness.run.doctor import examine
    from harness.trial.engines import catalogue_of

    if json_out:
        answer: dict[str, Any] = {
            "tried": [vars(finding) for finding in examine(catalogue_of())],
            "warnings": list(machine.warnings),
            "facts": dict(machine.facts),
        }
        print(json_text(answer), end="")
        return 0
    print("What can run here (each tried in a process of its own)")
    for finding in examine(catalogue_of()):
        verdict = {"ok": "yes", "unsupported": "no"}.get(finding.status, finding.status.replace("_", " "))
        reason = f": {finding.reason}" if finding.reason else ""
        print(f"  {finding.kind:<16} {finding.name:<34} {verdict}{reason}", flush=True)
    print("\nWhat makes timings bad here" if machine.warnings else "\nNothing found that makes timings bad")
    for warning in machine.warnings:
        print(f"  - {warning}")
    print("\nThis machine")
    for key, value in machine.facts.items():
        if value is not None:
            print(f"  {key}: {value}")
    return 0


def _limits(machine: "Description", results: Path, again: bool, json_out: bool) -> int:
    """The kept limits where they are still this machine's, else measured ones, which are kept."""
    from harness.analysis.limits import limits_of
    from harness.record.limits import keep_newest, make_place
    from harness.run.limits import measure_limits

    record = None if again else limits_of(machine.facts, results)
    if record is None:
        make_place(results)
        record = measure_limits(machine)
        _show(record, json_out)
        path = keep_newest(results, record)
        said = f"measured in {record.seconds:.0f} s, kept in {path}"
    else:
        _show(record, json_out)
        said = f"measured {record.created_utc}; --again measures it again"
    if not json_out:
        print(said)
        for warning in record.machine.warnings:
            print(f"  - {warning}")
    return 0


def _prove(machine: "Description", results: Path, json_out: bool) -> int:
    """Ask everything, and keep the answers as JSON and as a page; 1 where something failed."""
    from harness.cli._measuring import progress_for
    from harness.record.limits import keep_sheet, make_place
    from harness.report.proof import line_of, page, summary, verdict_line
    from harness.run.prove.acceptance import prove

    make_place(results)
    tell = (lambda _: None) if json_out else (lambda proof: print(line_of(proof), flush=True))
    try:
        record = prove(machine, results, progress_for(json_out, json_out), tell)
    except (Interrupted, KeyboardInterrupt):
        raise Interrupted("interrupted; no sheet is kept of a part; begin again with --prove") from None
    except StorageError as error:  # of its cells' run, with which alone nobody goes on
        raise StorageError(f"{error.args[0]}, then begin again with --prove") from None
    path = keep_sheet(results, record, page(record))
    if json_out:
        print(json_text(record.model_dump(mode="json")), end="")
    else:
        print(f"\n{verdict_line(record)}\n{summary(record)}; kept in {path} and {path.with_suffix('.html').name}")
    return 1 if record.of("failed") else 0


def _show(record: "LimitsRecord", json_out: bool) -> None:
    from harness.cli._table import print_table
    from harness.report.limits import limits_json, limits_table

    if json_out:
        print(json_text(limits_json(record)), end="")
    else:
        print_table(limits_table(record))
