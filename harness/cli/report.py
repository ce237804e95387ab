"""`harness report`: one HTML file from a run."""

from pathlib import Path
from typing import Annotated

import typer

VERB = "report"
HELP = "Write the HTML report of a run, of an ab or validate run its verdict: one file, no network needed."
EXAMPLES = "Example: harness report latest --output reports/today.html"


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run's folder, its id, a prefix of it, or 'latest'.")],
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE.html", help="Default: reports/<run>.html.")
    ] = None,
    overlay: Annotated[
        str | None,
        typer.Option(
            "--overlay", metavar="RUN", help="Imported figures to draw beside the efficiencies, off at first."
        ),
    ] = None,
    results: Annotated[Path, typer.Option("--results", metavar="DIR", help="Folder that runs are kept in.")] = Path(
        "results"
    ),
) -> int:
    """Run the verb."""
    from harness.analysis.validation import validation_of as validation_record
    from harness.cli._comparison import comparison_of, deliver, validation_of
    from harness.cli._index import list_in_index
    from harness.record.reading import load_manifest, load_run, resolve_run
    from harness.report import write_report
    from harness.report.answer import answer_lines
    from harness.report.export.base import write
    from harness.report.imported import imported_page, overlay_of
    from harness.report.validation import validation_page

    loaded = load_run(resolve_run(run, results))
    target = output or Path("reports") / f"{loaded.manifest.run_id}.html"
    beside = None if overlay is None else overlay_of(load_manifest(resolve_run(overlay, results)))
    if loaded.manifest.comparison is not None:
        deliver(comparison_of(loaded, results), "html", target, said="report")
        return 0
    if loaded.manifest.validation is not None:
        write(target, validation_page(validation_record(loaded)).encode("utf-8", "replace"), "FILE.html")
        list_in_index(target)
        print(f"report: {target}")
        return 0
    if loaded.manifest.imported is not None:
        write(target, imported_page(loaded.manifest).encode("utf-8", "replace"), "FILE.html")
        list_in_index(target)
        print(f"report: {target}")
        return 0
    summary = write_report(loaded.manifest, loaded.trials, target, validation_of(loaded, results), loaded.path, beside)
    list_in_index(target)
    print("\n".join(answer_lines(summary)))
    print(f"report: {target}")
    return 0
