"""`harness report`: one HTML file from a run."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli._completion import run_ids
from harness.cli._options import FOLDER, AsJson, RankUnproved, ResultsFolder, RunName
from harness.visible import json_text

if TYPE_CHECKING:
    from harness.analysis.comparison import Comparison
    from harness.record import Run
    from harness.report.page.sections import Section

VERB = "report"
HELP = "Write the HTML report of a run; of ab and validate the verdict, of faults the cost: one file, no network."
EXAMPLES = (
    "Examples: harness report latest --open\n\n"
    "harness report latest --base results/reference --output reports/change.html"
)

_Base = Annotated[
    str | None,
    typer.Option(
        "--base", metavar="RUN", help="Compare with this run: a section with verdicts.", autocompletion=run_ids
    ),
]

_Overlay = Annotated[
    str | None,
    typer.Option(
        "--overlay",
        metavar="RUN",
        help="Imported figures to draw beside the efficiencies, shown from the start.",
        autocompletion=run_ids,
    ),
]

_With = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        metavar="RUN",
        help="A run of explain or of collectives on the same machine, which gets a section; may be repeated.",
        autocompletion=run_ids,
    ),
]

_Across = Annotated[bool, typer.Option("--across-machines", help="With --base: although the machines differ in speed.")]


def command(
    run: RunName,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE.html", help="Default: reports/<run>.html.")
    ] = None,
    base: _Base = None,
    across_machines: _Across = False,
    open_it: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    overlay: _Overlay = None,
    others: _With = None,
    rank_unproved: RankUnproved = False,
    results: ResultsFolder = FOLDER,
    json_out: AsJson = False,
) -> int:
    """Run the verb."""
    from harness.cli._index import REPORTS, list_in_index
    from harness.environment.commits import telling_unignored
    from harness.errors import UsageError
    from harness.record.reading import load_manifest, load_run, resolve_run
    from harness.report.kinds import PageRequest, presentation_of

    if across_machines and base is None:
        raise UsageError("--across-machines: is for a comparison; --base names the run to compare with")
    loaded = replace(load_run(resolve_run(run, results)), rank_unproved=rank_unproved)
    _refuse_beside_no_sweep(loaded, {"--base": base, "--overlay": overlay, "--with": next(iter(others or ()), None)})
    against = None if base is None else _against(base, loaded, results, across_machines)
    target = _target(output, loaded.manifest.run_id)
    beside = None if overlay is None else load_manifest(resolve_run(overlay, results))
    with telling_unignored(REPORTS):
        request = PageRequest(target, results, against, beside, _others(others or [], loaded, results))
        lines = presentation_of(loaded.manifest).write_page(loaded, request)
    list_in_index(target)
    if json_out:
        print(json_text({"run_id": loaded.manifest.run_id, "report": str(target), "answer": lines}), end="")
    else:
        print("\n".join([*(lines if against else ()), f"report: {target}"]))
    if open_it:
        _open(target)
    return 0


def _refuse_beside_no_sweep(run: "Run", others: Mapping[str, str | None]) -> None:
    """UsageError for a flag that names another run to show with `run`, where that is no sweep."""
    from harness.errors import UsageError
    from harness.report.kinds import presentation_of

    for flag, named in others.items():
        if named is not None and not presentation_of(run.manifest).takes_base:
            raise UsageError(f"{flag}: '{run.manifest.run_id}' is no sweep; only sweeps are shown with another run")


def _others(names: Sequence[str], run: "Run", results: Path) -> "list[Section]":
    """Of each run that is named a section. UsageError for one of another machine, or one that is named twice."""
    from harness.errors import UsageError
    from harness.record.reading import load_run, resolve_run
    from harness.report.kinds import section_of

    found: dict[str, Section] = {}
    for name in names:
        other = load_run(resolve_run(name, results))
        run_id = other.manifest.run_id
        if run_id in found:
            raise UsageError(f"--with: '{run_id}' is given twice")
        if other.manifest.facts.get("machine.id") != run.manifest.facts.get("machine.id"):
            raise UsageError(f"--with: '{run_id}' was measured on another machine, expected one of that of the run")
        found[run_id] = section_of(other, results)
    return list(found.values())


def _target(output: Path | None, run_id: str) -> Path:
    """The file of the page. Raises what `refuse_place` does."""
    from harness.cli._index import REPORTS
    from harness.report.export.base import refuse_place

    if output is None:
        return REPORTS / f"{_file_name(run_id)}.html"
    refuse_place(output, "FILE.html")
    return output


def _file_name(run_id: str) -> str:
    """The id as the name of a file in a folder, whatever a record of others calls itself."""
    from harness.visible import printable

    return "-".join(printable(run_id).replace("/", "-").split())


def _against(base_name: str, run: "Run", results: Path, across_machines: bool) -> "Comparison":
    from harness.analysis.comparison.asked import ComparisonAsked
    from harness.errors import UsageError
    from harness.record.reading import load_run, resolve_run

    base = load_run(resolve_run(base_name, results))
    if base.manifest.run_id == run.manifest.run_id:
        raise UsageError(f"--base: '{base.manifest.run_id}' is the run itself, expected another one")
    asked = ComparisonAsked(
        across_machines=across_machines, names=("--base", "RUN"), of_ones_own="give compare a --delta"
    )
    return asked.comparison(base, run, results)


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
