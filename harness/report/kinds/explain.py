"""Where the time of steps goes."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.record.explain import WHOLE
from harness.record.reading import Run
from harness.report.kinds.base import PageRequest, Presentation
from harness.visible import json_text

if TYPE_CHECKING:
    from harness.report.comparison import Surface
    from harness.report.export.base import Exporter


class _Explain(Presentation):
    name = "explain"
    page_kind = "explanation"

    def write_page(self, run: Run, request: PageRequest) -> list[str]:
        """See Presentation."""
        from harness.analysis.explain import explanations_of
        from harness.report.export.base import write
        from harness.report.page.findings import findings_page
        from harness.report.tables.explain import METHOD, explain_lines, explain_tables

        found = explanations_of(run)
        lines, tables = explain_lines(found), explain_tables(found)
        page = findings_page(run.manifest, self.page_kind, "Where the step's time goes", lines, tables, METHOD)
        write(request.target, page.encode("utf-8", "replace"), "FILE.html")
        return lines

    def text(self, run: Run, results: Path, surface: "Surface") -> str:
        """See Presentation."""
        from harness.analysis.explain import explanations_of
        from harness.report.tables.explain import explain_lines, explain_tables
        from harness.report.terminal.table import table_text

        found = explanations_of(run)
        tables = "".join(table_text(table, surface.width, surface.styled) for table in explain_tables(found))
        return "".join(f"{line}\n" for line in explain_lines(found)) + "\n" + tables

    def as_json(self, run: Run, results: Path) -> str:
        """See Presentation."""
        from harness.analysis.explain import explanations_of

        return json_text({"run_id": run.manifest.run_id, "cells": [_as_json(found) for found in explanations_of(run)]})

    def exporters(self) -> "Mapping[str, Exporter]":
        """Its trials; figures of cells would take instruments for them."""
        formats = super().exporters()
        return {name: formats[name] for name in ("csv",)}

    def cell_rows(self, run: Run) -> list[dict[str, Any]]:
        """Of the whole steps."""
        from dataclasses import replace

        return super().cell_rows(replace(run, trials=[trial for trial in run.trials if trial.side == WHOLE]))


def _as_json(found: Any) -> dict[str, Any]:
    return {
        "cell_id": found.cell.cell_id,
        "label": found.cell.label,
        "blocks": found.blocks,
        "step_time_s": found.step_time_s,
        "bound_by": found.bound_by,
        "parts": [asdict(share) for share in (*found.parts, *found.within)],
        "lacking": dict(found.lacking),
    }


KIND = _Explain()
