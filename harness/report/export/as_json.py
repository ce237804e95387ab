"""JSON: the manifest, all trials, cells' estimates, collectives, pipelines, limits and the answers in one document."""

import json
from dataclasses import dataclass
from pathlib import Path

from harness.analysis import summarise
from harness.record.reading import Run
from harness.report.export.base import Exporter, deliver
from harness.report.export.rows import answer_row, cell_rows
from harness.report.limits import known_rates, rate_rows
from harness.report.tables.collectives import rows_of_collectives
from harness.report.tables.pipelines import rows_of_pipelines
from harness.report.values import plain
from harness.visible import json_without_commands


@dataclass(frozen=True)
class _Json:
    name: str = "json"
    summary: str = "one document: manifest, trials with all windows, estimates, collectives, pipelines, limits, answers"
    suffix: str = ".json"

    def export(self, run: Run, target: Path | None) -> str | None:
        """See Exporter."""
        summary = summarise(run.manifest, run.trials, run.rank_unproved)
        document = {
            "manifest": plain(run.manifest.model_dump(mode="json")),
            "answers": [answer_row(work) for work in summary.workloads],
            "cells": cell_rows(summary),
            "collectives": [plain(row) for row in rows_of_collectives(run, summary)],
            "pipelines": [plain(row) for row in rows_of_pipelines(summary)],
            "limits": [plain(row) for row in rate_rows(known_rates(run, summary))],
            "trials": [plain(trial.model_dump(mode="json")) for trial in run.trials],
        }
        return deliver(json_without_commands(json.dumps(document, indent=1, allow_nan=False)) + "\n", target)


EXPORTER: Exporter = _Json()
