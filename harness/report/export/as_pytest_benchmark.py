"""The JSON of pytest-benchmark: what `pytest benchmarks/ --benchmark-json` would have written of the same trials.

Names are those of `benchmarks/bench_cells.py`, so that `pytest benchmarks/ --benchmark-compare` finds its tests.
A round is a measured window, in seconds a step. Rounds of one trial resemble one another: what pytest-benchmark
makes of them is about windows, while the intervals of trials are in `extra_info`.
"""

import importlib.metadata
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.analysis import CellSummary, summarise
from harness.environment import Fact
from harness.errors import HarnessError
from harness.record.reading import Run
from harness.record.trial import TrialRecord
from harness.report.export.base import Exporter, by_cell, deliver, measured_cells
from harness.report.export.rows import cell_row
from harness.report.values import plain
from harness.report.words.names import names_of
from harness.report.words.text import OWN_INTERVAL
from harness.visible import json_without_commands

MODULE = "benchmarks/bench_cells.py"


@dataclass(frozen=True)
class _PytestBenchmark:
    name: str = "pytest-benchmark"
    summary: str = "the JSON of pytest-benchmark, a measured window a round"
    suffix: str = ".json"

    def export(self, run: Run, target: Path | None) -> str | None:
        """See Exporter."""
        summary = summarise(run.manifest, run.trials, run.rank_unproved)
        cells = measured_cells(summary, self.name)
        every = [cell.trials.cell for cell in summary.cells]
        name_of = dict(zip((cell.cell_id for cell in every), names_of(every), strict=True))
        facts, own = run.manifest.facts, by_cell(run.trials)
        commit, _, mark = str(facts.get("git.revision") or "").partition("-")
        document = {
            "machine_info": _machine(facts),
            "commit_info": {
                "id": commit or None,
                "time": None,
                "author_time": None,
                "dirty": mark == "dirty" if commit and mark != "unknown" else None,
                "project": "harness",
                "branch": None,
            },
            "benchmarks": [_benchmark(cell, name_of[cell.cell_id], run, own[cell.cell_id]) for cell in cells],
            "datetime": run.manifest.created_utc,
            "version": importlib.metadata.version("pytest-benchmark"),
        }
        return deliver(json_without_commands(json.dumps(plain(document), indent=1, allow_nan=False)) + "\n", target)


def rounds_of(trials: Sequence[TrialRecord]) -> list[float]:
    """Seconds a step of every measured window of the good ones among a cell's trials, in order; none is dropped."""
    return [
        seconds / trial.windows.steps_per_window
        for trial in trials
        if trial.measured and trial.windows is not None
        for seconds in trial.windows.seconds[trial.windows.measured_from :]
    ]


def _benchmark(cell: CellSummary, name: str, run: Run, trials: Sequence[TrialRecord]) -> dict[str, Any]:
    from pytest_benchmark import stats as theirs  # so that the statistics are theirs in every version

    make: Any = theirs.Stats
    stats = make()
    for seconds in rounds_of(trials):
        stats.update(seconds)
    if not stats.data:
        raise HarnessError(f"{cell.label}: an ok cell without a measured window: the record was edited")
    test = f"test_step[{name}]"
    return {
        "group": cell.trials.cell.subject,
        "name": test,
        "fullname": f"{MODULE}::{test}",
        "params": {"cell": name},
        "param": name,
        "extra_info": {"run_id": run.manifest.run_id, "interval_of_throughput": OWN_INTERVAL, **cell_row(cell)},
        "options": {
            "disable_gc": False,
            "timer": "harness",
            "min_rounds": 1,
            "max_time": 0.0,
            "min_time": 0.0,
            "warmup": False,
        },
        "stats": {**stats.as_dict(), "data": stats.data, "iterations": 1},
    }


def _machine(facts: Mapping[str, Fact]) -> dict[str, Any]:
    """Their keys, as far as the run knows them. No run records the host's name; its identity stands for it."""
    return {
        "node": facts.get("machine.id"),
        "processor": "",
        "machine": facts.get("cpu.architecture"),
        "python_implementation": facts.get("python.implementation"),
        "python_version": facts.get("python.version"),
        "release": facts.get("os.release"),
        "system": facts.get("os.system"),
        "cpu": {"brand_raw": facts.get("cpu.model"), "count": facts.get("cpu.logical_cores")},
    }


EXPORTER: Exporter = _PytestBenchmark()
