"""Where the time of steps goes."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.analysis.estimates.intervals import Interval
from harness.record.reading import Run
from harness.report.kinds.base import OF_TRIALS, PageRequest, Presentation
from harness.visible import json_text, printable

if TYPE_CHECKING:
    from harness.analysis.explain import Explanation
    from harness.analysis.tries import Try
    from harness.report.comparison import Surface
    from harness.report.export.base import Exporter
    from harness.report.page.sections import Part


class _Explain(Presentation):
    name = "explain"
    page_kind = "explanation"
    beside = "Where a step's time goes"

    def write_page(self, run: Run, request: PageRequest) -> list[str]:
        """See Presentation."""
        from harness.report.export.base import write
        from harness.report.figures import parts_figure
        from harness.report.page.findings import findings_page
        from harness.report.step_parts import explained
        from harness.report.tables.explain import METHOD

        found = explained(run, request.results)
        lines, tables = found.lines, found.tables
        workload = _workload(run)
        figure = parts_figure(found.explanations, "parts")
        pictures = () if figure is None else (figure,)
        page = findings_page(
            run.manifest, self.page_kind, "Where the step's time goes", lines, tables, METHOD, pictures, workload
        )
        write(request.target, page.encode("utf-8", "replace"), "FILE.html")
        return lines

    def parts_beside(self, run: Run, results: Path) -> "tuple[Part, ...]":
        """See Presentation."""
        from harness.report.figures import parts_figure
        from harness.report.page.sections import Part
        from harness.report.step_parts import explained

        found = explained(run, results)
        figure = parts_figure(found.explanations, "explained-parts")
        figures = () if figure is None else (figure,)
        return (Part("explained", _workload(run), tuple(found.lines), figures, tuple(found.tables)),)

    def text(self, run: Run, results: Path, surface: "Surface") -> str:
        """See Presentation."""
        from harness.report.step_parts import explained
        from harness.report.terminal.table import table_text
        from harness.report.words.traces import trace_lines

        found = explained(run, results)
        kept = [trial for trial in run.trials if trial.trace is not None and trial.trace.path is not None]
        lines = [*found.lines, *trace_lines(kept, run.path)]
        shown = "".join(table_text(table, surface.width, surface.styled) for table in found.tables)
        return "".join(f"{line}\n" for line in (f"{_workload(run)}:", *lines)) + "\n" + shown

    def as_json(self, run: Run, results: Path) -> str:
        """See Presentation."""
        from harness.report.limits import rate_rows
        from harness.report.step_parts import explained

        found = explained(run, results)
        cells = [_as_json(one) for one in found.explanations]
        tries = [_try_as_json(one) for one in found.tries]
        limits = rate_rows(found.rates)
        return json_text({"run_id": run.manifest.run_id, "cells": cells, "tries": tries, "limits": limits})

    def exporters(self) -> "Mapping[str, Exporter]":
        """Its trials and windows, the parts of its steps, and what is said of them; figures of cells would take
        instruments for them."""
        from harness.analysis.explain import explanations_of
        from harness.report.export.as_tables import CsvTable
        from harness.report.export.rows import to_csv
        from harness.report.tables.explain import part_rows

        parts = CsvTable(
            "parts",
            "CSV, one row a part of a cell's step, of a run of explain",
            lambda run: to_csv(part_rows(explanations_of(run))),
        )
        said = CsvTable("markdown", "for a pull request: what is said of the steps, and their tables", _markdown, ".md")
        general = super().exporters()
        return {**{name: general[name] for name in OF_TRIALS}, parts.name: parts, said.name: said}

    def each_side(self, run: Run) -> Mapping[str | None, Run]:
        """Its whole steps alone: instruments are no trials of the cell."""
        from harness.report.step_parts import whole_steps

        return {None: whole_steps(run)}

    def cell_rows(self, run: Run) -> list[dict[str, Any]]:
        """Of the whole steps."""
        from harness.report.step_parts import whole_steps

        return super().cell_rows(whole_steps(run))


def _markdown(run: Run) -> str:
    from harness.report.export.as_markdown import told
    from harness.report.limits import results_of
    from harness.report.step_parts import explained

    found = explained(run, results_of(run))
    return told(run.manifest.run_id, [_workload(run), *found.lines], found.tables, "parts")


def _workload(run: Run) -> str:
    """What its steps are of: model, data, device and engine."""
    from harness.report.step_parts import summary_of_steps
    from harness.report.words.engines import engines_words

    labels = dict.fromkeys(f"{work.workload.label}, {engines_words(work)}" for work in summary_of_steps(run).workloads)
    return printable("; ".join(labels))


def _try_as_json(one: "Try") -> dict[str, Any]:
    ratio = one.comparison.rows[0].verdicts.wall.ratio if one.comparison is not None else None
    size = {"ratio": ratio and ratio.value, "low": ratio and ratio.low, "high": ratio and ratio.high}
    return {**one.record.model_dump(mode="json"), "verdict": one.verdict, **size, "reason": one.reason}


def _as_ends(size: Interval) -> dict[str, float | None]:
    return {end: getattr(size, end) for end in ("value", "low", "high")}


def _as_json(found: "Explanation") -> dict[str, Any]:
    from harness.report.tables.explain import advised, trials_needed

    return {
        "cell_id": found.cell.cell_id,
        "label": found.cell.label,
        "blocks": found.blocks,
        "of_blocks": found.of_blocks,
        "step_time_s": found.step_time_s,
        "bound_by": found.bound_by,
        "input_limit": found.input_limit,
        "headroom": found.headroom and _as_ends(found.headroom),
        "advice": advised(found),
        "trials_needed": trials_needed(found),
        "parts": [{**asdict(share), "most_gain": found.gain_without(share)} for share in (*found.parts, *found.within)],
        "lacking": dict(found.lacking),
        "untold": {name: list(arms) for name, arms in found.untold.items()},
        "traced": [
            {**asdict(part.by_arms), "traced": part.share, "seconds": part.seconds, "differs": part.differs}
            for part in found.traced
        ],
        "trace": found.trace and {"path": found.trace.path, "reason": found.trace.reason},
        "staleness": found.staleness and _as_ends(found.staleness),
        "slow_workers": [
            {"worker": worker.worker, "against_fastest": worker.alone and _as_ends(worker.alone.against_fastest)}
            for worker in found.slow_workers
        ],
    }


KIND = _Explain()
