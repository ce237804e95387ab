"""A sweep: cells in tables and figures, and which of them is fastest."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.record.reading import Run
from harness.report.kinds.base import PageRequest, Presentation

if TYPE_CHECKING:
    from harness.report.comparison import Surface
    from harness.report.export.base import Exporter
    from harness.report.page.sections import Part


class _Sweep(Presentation):
    name = "sweep"
    page_kind = "run"
    beside = "Collectives"
    takes_base = True

    def write_page(self, run: Run, request: PageRequest) -> list[str]:
        """See Presentation."""
        from harness.analysis.comparison.asked import known_validation
        from harness.report.comparison.words import headline, verdict_sentences
        from harness.report.limits import known_limits
        from harness.report.page.report import write_report
        from harness.report.tables.published import overlay_of
        from harness.report.words.answer import answer_lines

        against, beside = request.against, request.beside
        summary = write_report(
            run.manifest,
            run.trials,
            request.target,
            known_validation(request.results, run),
            against,
            run_folder=run.path,
            overlay=None if beside is None else overlay_of(beside),
            rank_unproved=run.rank_unproved,
            limits=known_limits(run, request.results),
            others=request.others,
        )
        if against is None:
            return list(answer_lines(summary))
        return [*answer_lines(summary), f"against {against.title_a}: {headline(against)}", *verdict_sentences(against)]

    def parts_beside(self, run: Run, results: Path) -> "tuple[Part, ...]":
        """Of collectives; see Presentation."""
        from harness.analysis.summary import summarise
        from harness.report.limits import known_limits
        from harness.report.page.sections import PageSource, collective_parts

        summary = summarise(run.manifest, run.trials, run.rank_unproved)
        return collective_parts(PageSource(run.manifest, run.trials, summary, limits=known_limits(run, results)))

    def text(self, run: Run, results: Path, surface: "Surface") -> str:
        """See Presentation."""
        from harness.analysis.summary import summarise
        from harness.report.limits import known_limits
        from harness.report.terminal.run import run_text
        from harness.report.words.traces import trace_lines

        summary = summarise(run.manifest, run.trials, run.rank_unproved)
        limits = known_limits(run, results)
        page = run_text(run.manifest, run.trials, summary, surface.width, surface.styled, limits)
        return page + "".join(f"{line}\n" for line in trace_lines(run.trials, run.path))

    def as_json(self, run: Run, results: Path) -> str:
        """See Presentation."""
        return self.exporters()["json"].export(replace(run, results=results), None) or ""

    def exporters(self) -> "Mapping[str, Exporter]":
        """Beside those of every kind, what `--work collective`, `--work pipeline` and `doctor --limits` tell."""
        from harness.report.export.as_tables import CsvTable
        from harness.report.export.rows import to_csv
        from harness.report.limits import limit_rows, results_of
        from harness.report.tables.collectives import collective_rows
        from harness.report.tables.pipelines import pipeline_rows

        collectives = CsvTable(
            "collectives",
            "CSV, one row a collective of a size, of a run of --work collective",
            lambda run: to_csv(collective_rows(run)),
        )
        pipelines = CsvTable(
            "pipelines",
            "CSV, one row an input pipeline beside what its model takes, and one a stage, of a run of --work pipeline",
            lambda run: to_csv(pipeline_rows(run)),
        )
        limits = CsvTable(
            "limits",
            "CSV, one row a cell: FLOP/s, arithmetic intensity, and the limits that doctor --limits measured",
            lambda run: to_csv(limit_rows(run, results_of(run))),
        )
        return {**super().exporters(), **{own.name: own for own in (collectives, pipelines, limits)}}


KIND = _Sweep()
