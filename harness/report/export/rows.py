"""Records and summaries as flat rows of plain values, for the exporters, and rows as CSV."""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from harness.analysis import CellSummary, Interval, RunSummary, Scaling, WorkloadSummary
from harness.record.cluster import NetworkRecord
from harness.record.trial import TrialRecord
from harness.report.tables.columns import TRIAL_COLUMNS
from harness.report.words.text import printable

Row = dict[str, Any]


def trial_rows(trials: Sequence[TrialRecord]) -> list[Row]:
    """One row a trial, in the order recorded: the columns of `TRIAL_COLUMNS`, whatever the run."""
    return [{column.name: column.of(trial) for column in TRIAL_COLUMNS} for trial in trials]


def cell_rows(summary: RunSummary) -> list[Row]:
    """One row a cell: what it is, what became of it, and its estimates."""
    return [cell_row(cell) for work in summary.workloads for cell in work.cells]


def cell_row(cell: CellSummary) -> Row:
    """One cell as a flat row; what is not known is None."""
    measured, trials = cell.measured, cell.trials
    row: Row = {"cell_id": cell.cell_id, "label": cell.label, **trials.cell.model_dump(mode="json")}
    row |= {
        "status": trials.status,
        "trials": trials.trials,
        "planned": trials.planned,
        "trials_ok": trials.counts.get("ok", 0),
        "unsteady": measured.unsteady if measured else None,
        "reason": trials.problems[0].reason if trials.problems else None,
        "rank": cell.place.rank if cell.place else None,
        "with_best": cell.place.with_best if cell.place else None,
        **interval_row("throughput_examples_per_s", measured.throughput if measured else None),
        **interval_row("step_time_s", measured.step_time_s if measured else None),
        "cpu_seconds_per_example": measured.cpu_seconds_per_example if measured else None,
        "peak_memory_bytes": measured.peak_memory_bytes if measured else None,
        "peak_device_memory_bytes": measured.peak_device_memory_bytes if measured else None,
        **interval_row("against_best", cell.place.against_best if cell.place else None),
        **_scaling("vs_none", cell.vs_none),
        **_scaling("vs_own", cell.vs_own),
        "shared": trials.shared,
        "physical_devices": trials.physical_devices,
        "fixed_s": trials.fixed_s,
        **{f"phases.{name}": value for name, value in trials.phases_s.items()},
        "executed.fingerprint": trials.executed.fingerprint or None,
        "executed.differs_from_request": trials.executed.differs_from_request,
        "same_experiment_as": " ".join(cell.same_experiment_as) or None,
        **_network("measured_network", trials.network),
    }
    return {key: plain(value) for key, value in row.items()}


def answer_row(work: WorkloadSummary) -> Row:
    """A workload's answer for machines."""
    answer = asdict(work.answer)
    return {"workload": asdict(work.workload), "answer": plain(answer)}


def plain(value: Any) -> Any:
    """`value` with every number that JSON lacks as None, tuples as lists."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def to_csv(rows: Sequence[Row]) -> str:
    """RFC 4180 with a header; the columns are the union over rows, what is unknown or no number is an empty field."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_field(row.get(key)) for key in columns] for row in rows)
    return text.getvalue()


def _field(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def interval_row(name: str, interval: Interval | None) -> Row:
    """The three columns of an interval; None where there is none."""
    return {
        name: interval.value if interval else None,
        f"{name}_low": interval.low if interval else None,
        f"{name}_high": interval.high if interval else None,
    }


def _scaling(name: str, scaling: Scaling | None) -> Row:
    return {
        f"{name}.base_cell_id": scaling.base_id if scaling else None,
        **interval_row(f"{name}.speed_up", scaling.speed_up if scaling else None),
        **interval_row(f"{name}.efficiency", scaling.efficiency if scaling else None),
        **interval_row(f"{name}.resource_efficiency", scaling.resource_efficiency if scaling else None),
        f"{name}.method": scaling.log_ratio.method if scaling else None,
    }


def _network(name: str, network: NetworkRecord | None) -> Row:
    """What an emulated network turned out to be; None throughout without one."""
    return {f"{name}.{key}": getattr(network, key, None) for key in NetworkRecord.model_fields}
