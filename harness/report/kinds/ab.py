"""A decision between two sides: its verdict."""

from pathlib import Path
from typing import TYPE_CHECKING

from harness.record.manifest import ComparisonRecord
from harness.record.reading import Run
from harness.report.kinds.base import OfSides, PageRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.analysis.comparison import Comparison
    from harness.report.comparison import Surface


def comparison_of(run: Run, results: Path) -> "Comparison":
    """The decision of an `ab` run, by its own margins, with this machine's validation when there is one."""
    from harness.analysis.comparison import comparison_of_ab
    from harness.analysis.comparison.asked import known_validation

    return comparison_of_ab(run, validation=known_validation(results, run))


class _Ab(OfSides):
    name = "ab"
    page_kind = "comparison"
    by_side = "python -m harness compare {run} --format json"

    def each_side(self, run: Run) -> "Mapping[str | None, Run]":
        """See Presentation."""
        return {side.name: run.of_side(side.name, [side.cell_id]) for side in run.manifest.part(ComparisonRecord).sides}

    def write_page(self, run: Run, request: PageRequest) -> list[str]:
        """See Presentation."""
        from harness.report.comparison import Surface, renderer
        from harness.report.comparison.words import change_lines, headline, verdict_sentences
        from harness.report.export.base import write

        comparison = comparison_of(run, request.results)
        page = renderer("html").render(comparison, Surface())
        write(request.target, page.encode("utf-8", "replace"), "FILE.html")
        differing = [f"the environments differ: {line}" for line in change_lines(comparison)]
        return [*differing, headline(comparison), *verdict_sentences(comparison)]

    def text(self, run: Run, results: Path, surface: "Surface") -> str:
        """See Presentation."""
        from harness.report.comparison import renderer

        return renderer("terminal").render(comparison_of(run, results), surface)

    def as_json(self, run: Run, results: Path) -> str:
        """See Presentation."""
        from harness.report.comparison import Surface, renderer

        return renderer("json").render(comparison_of(run, results), Surface())


KIND = _Ab()
