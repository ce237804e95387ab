"""The columns of a run as tidy tables, each with its unit and what it means.

CSV, Parquet and the frames of `harness.load` all have these, under the same names: where a name has a dot, it is
the place in the record (`docs/records.md`).
"""

import typing
from collections.abc import Iterator
from typing import Any

from harness.record.checks import FAULTS, GateName
from harness.report.tables.column import INTERVAL_NOW, Column, ColumnKind, interval_columns, kind_of
from harness.spec.cell import TrainingCell


def _cell_columns() -> Iterator[Column]:
    """Every key of a cell, those that later versions add included."""
    for key, field in TrainingCell.model_fields.items():
        yield Column(f"cell.{key}", kind_of(field.annotation), "", "see the cell's keys")


CELL_COLUMNS: tuple[Column, ...] = tuple(_cell_columns())
"""What was measured; explained in `docs/records.md`."""

_PHASES = {
    "start_s": "starting the process",
    "build_s": "strategy, model and data",
    "first_step_s": "trace and first step",
    "check_s": "the correctness gate",
    "warmup_s": "windows of warm-up",
    "steady_s": "measured windows",
    "alone_s": "what each worker computes alone",
    "waiting_s": "others had the turn",
    "exit_s": "ending the process",
}

TRIAL_COLUMNS: tuple[Column, ...] = (
    Column("run_id", "category", "", "the run"),
    Column("cell_id", "category", "", "identity of the cell: equal in every run that measured it"),
    Column("label", "category", "", "the cell's short name", lambda trial: trial.cell.label),
    *CELL_COLUMNS,
    Column("block", "count", "", "the unit of pairing, from 0"),
    Column("group", "category", "", "trials of one group were alive together and took turns"),
    Column("order", "count", "", "place in the group's start order"),
    Column("attempt", "count", "", "1, or more where the trial was run again"),
    Column("interleaving", "category", "", "turns, blocks or none"),
    Column("side", "category", "", "a or b in a comparison, the arm's name in a validation"),
    Column("plant.kind", "category", "", "the slow-down that was planted, in a validation, or its placebo"),
    Column("plant.share", "number", "share", "by how much a step was to take longer; 0 is the placebo"),
    Column("status", "category", "", "ok, or how it ended"),
    Column("phase", "category", "", "the phase under way when a trial that is not ok ended"),
    Column("reason", "text", "", "why it ended so"),
    Column("evidence", "text", "", "stacks, or the end of standard error"),
    Column("started_utc", "time", "", "when the process was started"),
    *(Column(f"phases.{name}", "number", "s", words) for name, words in _PHASES.items()),
    Column("step_time_s", "number", "s", "mean time of a step; only of an ok trial"),
    Column(
        "throughput_examples_per_s",
        "number",
        "examples/s",
        "global batch size ÷ step time; only of an ok trial",
        "throughput",
    ),
    Column(
        "cpu_seconds_per_example", "number", "s", "processor time, user and system, all processes", "cpu_seconds_each"
    ),
    Column("peak_memory_bytes", "count", "bytes", "largest resident set"),
    Column("peak_device_memory_bytes", "count", "bytes", "over the replicas' GPUs"),
    Column("final_loss", "number", "", "the loss at the end of the last window"),
    Column(
        "windows.count",
        "count",
        "",
        "windows, warm-up included",
        lambda trial: len(trial.windows.seconds) if trial.windows else None,
    ),
    Column("windows.measured_from", "count", "", "index of the first window that enters the estimate"),
    Column("windows.steady", "flag", "", "what a rule for single trials once found; of earlier versions"),
    Column("windows.steps_per_window", "count", "", "steps of a window"),
    Column("windows.sync_seconds", "number", "s", "median cost of one synchronisation"),
    Column("windows.waiting_cpu_seconds", "number", "s", "processor time used while others had the turn"),
    Column("windows.system_share", "number", "share", "of the processor time, in the kernel"),
    Column("windows.page_faults_per_step", "number", "", "pages that its processes asked the kernel for"),
    Column("checks.gate", "category", "", f"which checks there are: {', '.join(typing.get_args(GateName))}"),
    Column("checks.reduction", "flag", "", "the exact sum on every replica"),
    Column("checks.update", "flag", "", "the update of a single device"),
    Column("checks.replicas_agree", "flag", "", "variables are identical on every replica"),
    Column("checks.updates_applied", "count", "", "updates that reached the weights"),
    Column("checks.updates_scheduled", "count", "", "updates that were asked for"),
    Column("checks.loss_finite", "flag", "", "every loss is a number"),
    Column("checks.update_error", "number", "share", "largest difference from the reference ÷ what is allowed"),
    Column("checks.losses_agree", "flag", "", "own step: its first losses are those of an uncompiled run"),
    Column("checks.own_check", "flag", "", "what the user's own check said"),
    Column(
        "executed.fingerprint",
        "category",
        "",
        "of the traced program: equal ones are the same experiment",
        lambda trial: trial.executed.fingerprint or None,
    ),
    Column("executed.packs", "count", "", "reductions that a replica takes part in per step"),
    Column("executed.differs_from_request", "text", "", "how what ran is not what was asked for"),
    Column("executed.nccl", "text", "", "NCCL's version, and how ranks reach each other"),
    Column("executed.flops_per_step", "count", "FLOP", "of the step's matrix products and convolutions"),
    Column("executed.bytes_per_step", "count", "bytes", "that these read and write"),
    Column("resources.physical_devices", "count", "", "processors that bound the throughput"),
    Column("resources.shared", "flag", "", "replicas share processors: overhead only, not hardware scaling"),
    Column("resources.intra_op_threads", "count", "", "as set; 0 is the framework's choice"),
    Column("resources.inter_op_threads", "count", "", "as set; 0 is the framework's choice"),
    Column("cluster.launcher", "category", "", "who started the processes of a trial that has several"),
    Column(
        "cluster.processes",
        "count",
        "",
        "how many there are",
        lambda trial: len(trial.cluster.members) if trial.cluster else None,
    ),
    Column("cluster.isolated", "flag", "", "nothing outside could reach the processes' ports"),
    Column("cluster.network.round_trip_s", "number", "s", "measured on the emulated network"),
    Column("cluster.network.bandwidth_bits_per_s", "number", "bit/s", "measured on the emulated network"),
    Column("cluster.network.congestion_control", "category", "", "the kernel's, on the emulated network"),
    Column("trace.path", "text", "", "profile of a few steps, a folder seen from the run's"),
    Column("updates.scheduled", "count", "", "parameter servers: updates asked for"),
    Column("updates.applied", "count", "", "parameter servers: updates that the step counter shows"),
    Column("checks.late", "flag", "", "an update after the last window is the reference's too"),
    Column("checks.loss", "flag", "", "the reported loss is the mean over the global batch"),
    *(
        Column(f"checks.sight.{name}", "number", "× its limit", f"what the gate would have seen of {fault}")
        for name, fault in FAULTS.items()
    ),
)
"""One row a trial, failed ones included."""

WINDOW_KEYS: tuple[str, ...] = ("run_id", "cell_id", "label", "block", "group", "attempt", "side", "status")
"""Columns of the trial that each of its windows repeats, besides the cell's."""

WINDOW_COLUMNS: tuple[Column, ...] = (
    *(column for column in TRIAL_COLUMNS if column.name in WINDOW_KEYS),
    *CELL_COLUMNS,
    Column("window", "count", "", "index within the trial, warm-up included"),
    Column("round", "count", "", "equal rounds of one group are neighbours in time"),
    Column("measured", "flag", "", "whether it enters the estimate"),
    Column("steps", "count", "", "steps of the window"),
    Column("seconds", "number", "s", "wall time between two synchronisations; of several workers the slowest's"),
    Column("cpu_seconds", "number", "s", "processor time, all processes"),
    Column("system_seconds", "number", "s", "of it in the kernel"),
    Column("page_faults", "number", "", "pages that its processes asked the kernel for"),
    Column("step_time_s", "number", "s", "seconds ÷ steps"),
    Column("throughput_examples_per_s", "number", "examples/s", "global batch size ÷ step time"),
    Column("fastest_worker_seconds", "number", "s", "of several workers: the first to be done"),
)
"""One row a window of every trial that took any, whatever became of the trial."""


def _scaling(name: str, base: str) -> tuple[Column, ...]:
    speed_up, efficiency, resources = f"{name}.speed_up", f"{name}.efficiency", f"{name}.resource_efficiency"
    return (
        Column(f"{name}.base_cell_id", "category", "", f"the cell compared with: {base}", f"{name}.base_id"),
        *interval_columns(speed_up, "×", "throughput ÷ the base's, of trials that took turns where they did", speed_up),
        *interval_columns(efficiency, "share", "speed-up × the base's replicas ÷ replicas", efficiency),
        *interval_columns(resources, "share", "speed-up ÷ what the processors allow", resources),
        Column(f"{name}.method", "category", "", "how the interval was made", f"{name}.log_ratio.method"),
    )


def _of_network(name: str, kind: ColumnKind, unit: str, meaning: str) -> Column:
    return Column(
        f"measured_network.{name}", kind, unit, f"{meaning} on the emulated network", f"trials.network.{name}"
    )


def _behind(cell: Any) -> Any:
    return cell.trials.counts.get("ok", 0) if cell.measured is None else cell.measured.trials


SUMMARY_COLUMNS: tuple[Column, ...] = (
    Column("run_id", "category", "", "the run"),
    Column("cell_id", "category", "", "identity of the cell"),
    Column("label", "category", "", "the cell's short name", "trials.cell.label"),
    *(
        Column(column.name.removeprefix("cell."), column.kind, "", column.meaning, f"trials.{column.name}")
        for column in CELL_COLUMNS
    ),
    Column(
        "status",
        "category",
        "",
        "ok, unproved, or why there is no throughput; imported for a published figure (in the export `ok`)",
        "trials.status",
    ),
    Column("trials", "count", "", "trials recorded, however they ended", "trials.trials"),
    Column("planned", "count", "", "trials in the sealed plans", "trials.planned"),
    Column("trials_ok", "count", "", "trials behind the estimates", _behind),
    Column(
        "trend",
        "number",
        "share",
        "by how much windows still change in a trial; empty where no trend was found",
        "measured.trend",
    ),
    Column(
        "reason",
        "text",
        "",
        "why it is not ok",
        lambda cell: cell.trials.problem.reason if cell.trials.problem else None,
    ),
    Column("rank", "count", "", "1 is the fastest of its workload; none for a published figure", "place.rank"),
    Column(
        "with_best",
        "flag",
        "",
        "cannot be told apart from the fastest; empty before the sweep is finished",
        "place.with_best",
    ),
    *interval_columns(
        "throughput_examples_per_s", "examples/s", "geometric mean over trials", "measured.throughput", INTERVAL_NOW
    ),
    *interval_columns("step_time_s", "s", "the same as a step's time", "measured.step_time_s", INTERVAL_NOW),
    Column("cpu_seconds_per_example", "number", "s", "median over trials", "measured.cpu_seconds_each"),
    Column("system_share", "number", "share", "of it in the kernel, median", "measured.paging.system_share"),
    Column("page_faults_per_step", "number", "", "median over trials", "measured.paging.page_faults_per_step"),
    Column("peak_memory_bytes", "count", "bytes", "the largest of any trial", "measured.peak_memory_bytes"),
    Column(
        "peak_device_memory_bytes", "count", "bytes", "the largest of any trial", "measured.peak_device_memory_bytes"
    ),
    *interval_columns(
        "against_best", "share", "throughput ÷ the fastest cell's", "place.against_best", "corrected interval"
    ),
    *_scaling("vs_none", "no strategy, one device, the same batch"),
    *_scaling("vs_own", "the strategy itself at its smallest replica count"),
    Column("shared", "flag", "", "replicas share processors: overhead only, not hardware scaling", "trials.shared"),
    Column("physical_devices", "count", "", "processors that bound the throughput", "trials.physical_devices"),
    Column("fixed_s", "number", "s", "median of what a trial costs besides warm-up and windows", "trials.fixed_s"),
    *(
        Column(f"phases.{name}", "number", "s", f"median: {words}", f"trials.phases_s.{name}")
        for name, words in _PHASES.items()
    ),
    Column(
        "executed.fingerprint",
        "category",
        "",
        "of the traced program",
        lambda cell: cell.trials.executed.fingerprint or None,
    ),
    Column(
        "executed.differs_from_request",
        "text",
        "",
        "how what ran is not what was asked for",
        "trials.executed.differs_from_request",
    ),
    Column(
        "same_experiment_as",
        "text",
        "",
        "cells with the same fingerprint, by cell_id",
        lambda cell: " ".join(cell.same_experiment_as) or None,
    ),
    _of_network("round_trip_s", "number", "s", "measured"),
    _of_network("bandwidth_bits_per_s", "number", "bit/s", "measured"),
    _of_network("congestion_control", "category", "", "the kernel's,"),
)
"""One row a cell, with estimates: `export --format cells`, and `harness.load_cells`."""

RUN_COLUMNS: tuple[Column, ...] = (
    Column("run_id", "text", "", "the run"),
    Column("path", "text", "", "its folder", lambda listing: str(listing.path)),
    Column("name", "category", "", "the sweep's name"),
    Column("kind", "category", "", "what made it: sweep, ab, validation, explain, faults or another"),
    Column("status", "category", "", "running, finished, interrupted or imported"),
    Column("created_utc", "time", "", "when it began"),
    Column("finished_utc", "time", "", "when it ended"),
    Column("cells", "count", "", "cells, or figures of an imported run"),
    Column("planned", "count", "", "trials in the sealed plans"),
    Column("trials", "count", "", "trials recorded"),
    Column("unproved", "count", "", "of these, those that the gate left unproved"),
    Column("unit", "category", "", "what these are of: trials, or another kind's records, such as jobs"),
    Column("live", "flag", "", "still being written"),
    Column("problem", "text", "", "why it cannot be read"),
)
"""One row a run: `harness.runs`."""

_WALL = "verdicts.wall"
COMPARISON_COLUMNS: tuple[Column, ...] = (
    Column("name", "text", "", "the cell, or for an axis what is held fixed and the two values"),
    Column("verdict", "category", "", "faster, slower, equivalent, undecided or invalid", f"{_WALL}.verdict"),
    Column("reason", "text", "", "why it is invalid, or cannot be known", f"{_WALL}.reason"),
    *interval_columns("ratio", "×", "throughput of B ÷ A's", f"{_WALL}.ratio"),
    Column("method", "category", "", "how the interval was made", f"{_WALL}.estimate.method"),
    Column("count", "count", "", "pairs, or trials of the smaller side", f"{_WALL}.estimate.count"),
    Column("noise", "number", "", "standard deviation of the log ratio of one pair", f"{_WALL}.noise"),
    Column("p_different", "number", "", "adjusted p-value of a difference beyond delta", f"{_WALL}.p_different"),
    Column("p_equivalent", "number", "", "adjusted p-value of one within epsilon", f"{_WALL}.p_equivalent"),
    Column(
        "blocks_needed",
        "count",
        "",
        "when undecided: pairs, or trials a side, that would decide it",
        f"{_WALL}.blocks_needed",
    ),
    Column("cpu_verdict", "category", "", "less, more, equivalent, undecided or invalid", "verdicts.cpu_verdict"),
    *interval_columns("cpu_ratio", "×", "processor seconds an example of B ÷ A's", "verdicts.cpu_ratio"),
    Column("a_cell_id", "category", "", "the cell on side A", "a.cell_id"),
    Column("b_cell_id", "category", "", "the cell on side B", "b.cell_id"),
    Column("a_throughput_examples_per_s", "number", "examples/s", "of A by itself", "a.measured.throughput.value"),
    Column("b_throughput_examples_per_s", "number", "examples/s", "of B by itself", "b.measured.throughput.value"),
    Column("a_unproved", "text", "", "what the gate could not prove of A; none where it proved it", "a.unproved"),
    Column("b_unproved", "text", "", "what the gate could not prove of B; none where it proved it", "b.unproved"),
)
"""One row a comparison: `harness.compare`."""
