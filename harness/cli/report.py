"""`harness report`: one HTML file from a run."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli._completion import RUN_HELP, run_ids

if TYPE_CHECKING:
    from harness.analysis.comparison import Comparison
    from harness.record import Run
    from harness.record.manifest import RunManifest

VERB = "report"
HELP = "Write the HTML report of a run; of ab and validate the verdict, of faults the cost: one file, no network."
EXAMPLES = (
    "Examples: harness report latest --open\n\n"
    "harness report latest --base results/reference --output reports/change.html"
)


def command(
    run: Annotated[
        str,
        typer.Argument(metavar="RUN", help=RUN_HELP, autocompletion=run_ids),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE.html", help="Default: reports/<run>.html.")
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            "--base", metavar="RUN", help="Compare with this run: a section with verdicts.", autocompletion=run_ids
        ),
    ] = None,
    across_machines: Annotated[
        bool, typer.Option("--across-machines", help="With --base: although the machines differ in speed.")
    ] = False,
    open_it: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    overlay: Annotated[
        str | None,
        typer.Option(
            "--overlay", metavar="RUN", help="Imported figures to draw beside the efficiencies, off at first."
        ),
    ] = None,
    results: Annotated[Path, typer.Option("--results", metavar="DIR", help="Folder that runs are kept in.")] = Path(
        "results"
    ),
    json_out: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Run the verb."""
    from harness.cli._index import list_in_index
    from harness.errors import UsageError
    from harness.record.reading import load_manifest, load_run, resolve_run

    if across_machines and base is None:
        raise UsageError("--across-machines: is for a comparison; --base names the run to compare with")
    loaded = load_run(resolve_run(run, results))
    if base is not None and loaded.manifest.kind != "sweep":
        raise UsageError(f"--base: '{loaded.manifest.run_id}' is no sweep; only sweeps are compared with a base run")
    against = None if base is None else _against(load_run(resolve_run(base, results)), loaded, results, across_machines)
    target = output or Path("reports") / f"{_file_name(loaded.manifest.run_id)}.html"
    beside = None if overlay is None else load_manifest(resolve_run(overlay, results))
    lines = _written(loaded, target, results, against, beside)
    list_in_index(target)
    if json_out:
        print(json.dumps({"run_id": loaded.manifest.run_id, "report": str(target), "answer": lines}, indent=2,
                         ensure_ascii=False))  # fmt: skip
    else:
        print("\n".join([*lines, f"report: {target}"]))
    if open_it:
        _open(target)
    return 0


def _file_name(run_id: str) -> str:
    """The id as the name of a file in a folder, whatever a record of others calls itself."""
    from harness.report.words.text import printable

    return "-".join(printable(run_id).replace("/", "-").split())


def _written(
    loaded: "Run", target: Path, results: Path, against: "Comparison | None", beside: "RunManifest | None"
) -> list[str]:
    """Write the page of whatever kind the run is; what it answers, in sentences."""
    from harness.analysis.validation.summary import validation_of as validation_record
    from harness.cli._comparison import comparison_of, validation_of
    from harness.record.validation import with_recorded_rules
    from harness.report.comparison import Surface, renderer
    from harness.report.comparison.words import change_lines, headline, verdict_sentences
    from harness.report.export.base import write
    from harness.report.page.report import write_report
    from harness.report.tables.validation import validation_lines, validation_page
    from harness.report.words.answer import answer_lines

    if loaded.manifest.comparison is not None:
        comparison = comparison_of(loaded, results)
        write(target, renderer("html").render(comparison, Surface()).encode("utf-8", "replace"), "FILE.html")
        differing = [f"the environments differ: {line}" for line in change_lines(comparison)]
        return [*differing, headline(comparison), *verdict_sentences(comparison)]
    if loaded.manifest.validation is not None:
        record = with_recorded_rules(validation_record(loaded), loaded.path)
        write(target, validation_page(record).encode("utf-8", "replace"), "FILE.html")
        return list(validation_lines(record))
    if loaded.manifest.faults is not None:
        from harness.analysis.faults import summarise_faults
        from harness.record.fault_log import load_faults
        from harness.report.faults.page import faults_lines, faults_page

        faults = summarise_faults(loaded.manifest.faults, load_faults(loaded.path))
        write(target, faults_page(loaded.manifest, faults).encode("utf-8", "replace"), "FILE.html")
        return list(faults_lines(faults))
    if loaded.manifest.imported is not None:
        from harness.report.tables.published import imported_page

        write(target, imported_page(loaded.manifest).encode("utf-8", "replace"), "FILE.html")
        return []
    from harness.report.tables.published import overlay_of

    summary = write_report(
        loaded.manifest, loaded.trials, target, validation_of(loaded, results), against,
        run_folder=loaded.path, overlay=None if beside is None else overlay_of(beside),
    )  # fmt: skip
    said = [] if against is None else [f"against {against.title_a}: {headline(against)}", *verdict_sentences(against)]
    return [*answer_lines(summary), *said]


def _against(base: "Run", run: "Run", results: Path, across_machines: bool) -> "Comparison":
    from harness.analysis.comparison import choose_margins, compare_runs
    from harness.cli._comparison import validation_of
    from harness.errors import UsageError

    if base.manifest.run_id == run.manifest.run_id:
        raise UsageError(f"--base: '{base.manifest.run_id}' is the run itself, expected another one")
    same = base.manifest.facts.get("machine.id") == run.manifest.facts.get("machine.id")
    validation = validation_of(run, results) if same else None
    margins = choose_margins(validation, unpaired=True)
    return compare_runs(base, run, margins, across_machines=across_machines, validation=validation)


def _open(page: Path) -> None:
    """Show the page in the browser; where there is none, say how to see it."""
    import webbrowser

    here = page.resolve()
    screen = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    if not (screen and webbrowser.open(here.as_uri())):
        sys.stderr.write(
            f"harness: --open: no browser was found here: open {here} by double-click, copy it to a machine that "
            "has one, or name one in the variable BROWSER\n"
        )
