"""Handing a comparison over: to the terminal or to a file, in the format asked for."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.analysis.comparison import Comparison


def format_of(given: str | None, json_out: bool, output: Path | None) -> str:
    """The format asked for, else the one that the end of `output`'s name says, else the terminal's.

    UsageError where --json is given beside another format.
    """
    from harness.report.comparison import FORMATS, renderer

    if json_out and given not in (None, "json"):
        raise UsageError(f"--json: is --format json, but --format {given} is given")
    if json_out or given is not None:
        return renderer("json" if json_out else given or "").name
    ends = {renderer(name).suffix: name for name in FORMATS}
    return ends.get(output.suffix.lower(), "terminal") if output is not None else "terminal"


def deliver(comparison: "Comparison", format_name: str, output: Path | None) -> None:
    """Print the comparison, or write it whole to `output` and print its verdict. Raises StorageError."""
    from harness.cli._index import list_in_index
    from harness.cli._table import surface
    from harness.report.comparison import Surface, renderer
    from harness.report.comparison.words import change_lines, headline, verdict_sentences
    from harness.report.export.base import write

    chosen = renderer(format_name)
    if output is None:
        sys.stdout.write(chosen.render(comparison, surface()))
        return
    write(output, chosen.render(comparison, Surface()).encode("utf-8", "replace"), f"FILE{chosen.suffix}")
    if chosen.suffix == ".html":
        list_in_index(output)
    differing = [f"the environments differ: {line}" for line in change_lines(comparison)]
    print("\n".join([*differing, headline(comparison), *verdict_sentences(comparison), f"comparison: {output}"]))
