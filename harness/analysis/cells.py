"""One cell over its trials: what became of it, and what was measured."""

import functools
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from harness.analysis.estimates.intervals import Interval, Sample, own_estimate
from harness.analysis.estimates.windows import diagnose
from harness.analysis.gpus import GpuWindows, gpu_windows
from harness.analysis.paging import Paging, paging_of
from harness.environment import Fact
from harness.record.cluster import NetworkRecord
from harness.record.manifest import DeviceRecord
from harness.record.trial import MEASURED, Executed, Phases, Resources, Status, TrialRecord, Windows
from harness.spec.work import Cell

CellStatus = Literal[
    "ok", "unproved", "wrong_result", "unsupported", "out_of_memory", "timeout", "crashed", "interrupted", "missing"
]
WORST_FIRST: tuple[Status, ...] = ("unsupported", "out_of_memory", "timeout", "crashed", "interrupted")
"""Which status names a cell none of whose trials was measured, when its trials ended differently."""
UNPROVED = " (unproved)"
"""The mark behind the name of a cell that is."""
PHASE_FIELDS: tuple[str, ...] = tuple(Phases.model_fields)


@dataclass(frozen=True)
class Problem:
    """One way in which trials of a cell did not end well, with how many did so."""

    status: Status
    trials: int
    phase: str | None
    reason: str
    evidence: str | None
    failed_checks: tuple[str, ...]
    details: tuple[tuple[str, str], ...]
    """Evidence of the correctness gate by check, in words."""


@dataclass(frozen=True)
class WindowSummary:
    """The measured windows of a cell's trials: diagnostics, which change no estimate."""

    count: int
    """Windows that enter the estimate, all trials together."""
    outliers: int
    """Of these, beyond Tukey's fences of their own trial: counted, not removed."""
    window_s: float
    """Median wall time of a window."""
    steps: tuple[int, int]
    """Smallest and largest number of steps per window."""
    step_time_p50_s: float
    """Percentiles of window time ÷ steps: the median over trials of each trial's own."""
    step_time_p95_s: float
    step_time_p99_s: float
    lag1_autocorrelation: float | None


@dataclass(frozen=True)
class Measured:
    """What the measured trials of a cell gave."""

    sample: Sample
    throughput: Interval
    """In the unit of the cell's work: A·exp(−ȳ ± t·s/√P)."""
    step_time_s: Interval
    cpu_seconds_each: float | None
    """Processor seconds of an example, or of what else the work is counted in: median over trials."""
    paging: Paging | None
    """What page faults take of its step; None where they were not counted."""
    peak_memory_bytes: int | None
    """The largest of any trial."""
    peak_device_memory_bytes: int | None
    trials: int
    windows: WindowSummary | None
    trend: float | None = None
    """By what share its windows still change in the course of a trial, relative to those that took turns with it; None
    where no trend was found."""

    @property
    def processors(self) -> float | None:
        """How many processors all its processes kept busy while it was timed."""
        each = self.cpu_seconds_each
        return None if each is None or self.throughput.value is None else each * self.throughput.value


@dataclass(frozen=True)
class CellTrials:
    """A cell with everything its trials say on their own; comparisons with other cells come later."""

    cell: Cell
    status: CellStatus
    counts: Mapping[str, int]
    planned: int
    measured: Measured | None
    """None unless the cell is ok or unproved: a wrong answer has no throughput, not even in its good trials."""
    phases_s: Mapping[str, float]
    """Median seconds of each phase over the trials that reached it."""
    fixed_s: float | None
    """Median fixed cost of a trial that ran to its end: `Phases.fixed_s`."""
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    """What the gate remarks on trials that passed it, once each."""
    executed: Executed
    physical_devices: int
    shared: bool
    resources: Resources
    """What the first trial that got its devices ran on."""
    device: DeviceRecord
    """What its devices are. On processors the time of these is all of their computing."""
    network: NetworkRecord | None = None
    """What the emulated network turned out to be: medians over the trials that have one."""
    all_cores: int = 0
    """Usable cores, of a cell without a strategy that had all of them where virtual devices share them; else 0."""
    gpus: GpuWindows | None = None
    """What its GPUs did in the windows of its measured trials; None where none was read."""
    again: int = 0
    """Trials recorded beyond those that the plan has of their blocks, such as of one that was interrupted."""
    engine_told: str = ""
    """The engine of a cell of which no name says it, where the run has several; else empty."""
    later_fixed_s: float | None = None
    """The same as `fixed_s` without the first trial, which may compile what later ones read, where there are more."""

    @functools.cached_property
    def cell_id(self) -> str:
        """The cell's identity."""
        return self.cell.cell_id

    @property
    def unproved(self) -> str | None:
        """What was left unproved in a trial; None where nothing was, and of what is no rival of others."""
        if not self.cell.competes:
            return None
        return next((problem.reason for problem in self.problems if problem.status == "unproved"), None)

    @property
    def problem(self) -> Problem | None:
        """The first of those that gave the cell its status, else the first; None where every trial ended well."""
        return next((one for one in self.problems if one.status == self.status), next(iter(self.problems), None))

    @property
    def trials(self) -> int:
        """Trials recorded, however they ended."""
        return sum(self.counts.values())

    @property
    def not_run(self) -> int:
        """Planned trials of which there is no record."""
        return max(0, self.planned - self.trials + self.again)


def read_cell(
    cell: Cell,
    trials: Sequence[TrialRecord],
    planned: int,
    device: DeviceRecord,
    pilot_blocks: int | None = None,
    facts: Mapping[str, Fact] = MappingProxyType({}),
    trend: float | None = None,
    again: int = 0,
) -> CellTrials:
    """Everything about one cell that its own trials tell, with the `trend` that all trials of the run showed.

    `pilot_blocks` is the number of blocks of the first stage where a second was planned from its
    variance: the interval then keeps the first stage's s0 and t (Stein). `facts` are the machine's. `again` of the
    trials are beyond those that are planned.
    """
    counts = Counter(trial.status for trial in trials)
    status = status_of(counts)
    measured = [trial for trial in trials if trial.measured]
    told = [t.executed for t in [*measured, *trials] if t.executed.fingerprint or t.executed.input]
    resources = [trial.resources for trial in [*measured, *trials] if trial.resources.logical_devices]
    ended = measured or [trial for trial in trials if trial.status == "wrong_result"]
    fixed_s, later_fixed_s = _fixed(ended)
    return CellTrials(
        cell=cell,
        status=status,
        counts={name: counts[name] for name in ("ok", "unproved", "wrong_result", *WORST_FIRST) if counts[name]},
        planned=planned,
        measured=_measure(cell, measured, facts, pilot_blocks, trend) if status in MEASURED else None,
        phases_s=_phase_medians(trials),
        fixed_s=fixed_s,
        later_fixed_s=later_fixed_s,
        problems=_problems(trials),
        notes=tuple(dict.fromkeys(text for trial in measured for text in trial.checks.detail.values())),
        executed=next(iter(told), Executed()),
        physical_devices=resources[0].physical_devices if resources else 1,
        shared=any(part.shared for part in resources),
        resources=resources[0] if resources else Resources(),
        device=device,
        network=_network(trials),
        all_cores=_all_cores(resources, facts.get("cpu.usable_cores")) if cell.is_base and device.shares_cores else 0,
        gpus=gpu_windows(measured),
        again=again,
    )


def _fixed(trials: Sequence[TrialRecord]) -> tuple[float, float] | tuple[None, None]:
    """The median of what trials cost beside their windows, and that without the first one, if there are more."""
    each = [trial.phases.fixed_s for trial in sorted(trials, key=lambda trial: trial.block)]
    return (statistics.median(each), statistics.median(each[1:] or each)) if each else (None, None)


def _all_cores(resources: Sequence[Resources], cores: object) -> int:
    """`cores` where one process had them all; a record from before threads were recorded has 0."""
    return cores if isinstance(cores, int) and resources and resources[0].intra_op_threads >= cores else 0


def status_of(counts: Mapping[Status, int]) -> CellStatus:
    """One wrong trial makes the cell wrong, else one unproved trial unproved; else one ok trial makes it ok; else the
    first of WORST_FIRST."""
    told: tuple[Status, ...] = ("wrong_result", "unproved", "ok", *WORST_FIRST)
    return next((status for status in told if counts.get(status)), "missing")


def marked(words: str, cell: CellTrials) -> str:
    """`words` of a cell, with a mark where it is unproved."""
    return f"{words}{UNPROVED}" if cell.unproved is not None else words


def _measure(
    cell: Cell,
    trials: Sequence[TrialRecord],
    facts: Mapping[str, Fact],
    pilot_blocks: int | None,
    trend: float | None,
) -> Measured:
    trials = sorted(trials, key=lambda trial: trial.block)
    sample = Sample.of_step_times(
        [trial.step_time_s for trial in trials if trial.step_time_s is not None],
        cell.work.amount,
        [trial.group for trial in trials],
        [trial.block for trial in trials],
    )
    throughput = own_estimate(sample, pilot_blocks).interval()
    return Measured(
        sample=sample,
        throughput=throughput,
        step_time_s=throughput.scaled(1 / cell.work.amount).inverted(),
        cpu_seconds_each=_median(trial.cpu_seconds_each for trial in trials),
        paging=paging_of(trials, facts),
        peak_memory_bytes=_largest(trial.peak_memory_bytes for trial in trials),
        peak_device_memory_bytes=_largest(trial.peak_device_memory_bytes for trial in trials),
        trials=len(trials),
        windows=_summarise_windows([trial.windows for trial in trials if trial.windows is not None]),
        trend=trend,
    )


def _summarise_windows(series: Sequence[Windows]) -> WindowSummary | None:
    measured = [(windows, windows.seconds[windows.measured_from :]) for windows in series]
    measured = [(windows, seconds) for windows, seconds in measured if seconds]
    if not measured:
        return None
    found = [diagnose(seconds, windows.steps_per_window) for windows, seconds in measured]
    steps = [windows.steps_per_window for windows, _ in measured]
    return WindowSummary(
        count=sum(item.windows for item in found),
        outliers=sum(len(item.outliers) for item in found),
        window_s=statistics.median(time for _, seconds in measured for time in seconds),
        steps=(min(steps), max(steps)),
        step_time_p50_s=statistics.median(item.step_time_p50_s for item in found),
        step_time_p95_s=statistics.median(item.step_time_p95_s for item in found),
        step_time_p99_s=statistics.median(item.step_time_p99_s for item in found),
        lag1_autocorrelation=_median(item.lag1_autocorrelation for item in found),
    )


def _phase_medians(trials: Sequence[TrialRecord]) -> dict[str, float]:
    medians = {}
    for name in PHASE_FIELDS:
        reached = [value for trial in trials if (value := getattr(trial.phases, name)) is not None]
        if reached:
            medians[name] = statistics.median(reached)
    return medians


def _problems(trials: Sequence[TrialRecord]) -> tuple[Problem, ...]:
    """Trials that did not end well, those with the same status, phase and reason counted together."""
    kinds: dict[tuple[object, ...], list[TrialRecord]] = {}
    for trial in trials:
        if trial.status != "ok":
            kinds.setdefault((trial.status, trial.phase, trial.reason, trial.checks.failures), []).append(trial)
    return tuple(
        Problem(
            status=first.status,
            trials=len(same),
            phase=first.phase,
            reason=first.reason or "no reason was recorded",
            evidence=next((trial.evidence for trial in same if trial.evidence), None),
            failed_checks=first.checks.failures,
            details=tuple(first.checks.detail.items()),
        )
        for same in kinds.values()
        for first in same[:1]
    )


def _network(trials: Sequence[TrialRecord]) -> NetworkRecord | None:
    found = [trial.cluster.network for trial in trials if trial.cluster is not None and trial.cluster.network]
    if not found:
        return None
    return NetworkRecord(
        round_trip_s=statistics.median(item.round_trip_s for item in found),
        bandwidth_bits_per_s=statistics.median(item.bandwidth_bits_per_s for item in found),
        congestion_control=found[0].congestion_control,
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _largest(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
