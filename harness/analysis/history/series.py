"""A series of runs on one machine: each cell's throughput from run to run, and where its level changes."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.analysis.comparison.runs import changes_between
from harness.analysis.estimates.intervals import Interval, Sample, log_ratio
from harness.analysis.history.change_points import FEWEST, change_points
from harness.analysis.summary import JUDGED, summarise
from harness.environment import Change, Fact
from harness.record.manifest import RunManifest
from harness.record.reading import Run
from harness.spec.cell import cell_names
from harness.spec.sweep import PROVING
from harness.spec.work import Cell

Measure = Literal["throughput", "speed-up"]
SMALLEST_CHANGE = 0.01
"""Changes of level below this share are not marked: the δ of `docs/protocol.md#deciding-a-against-b`."""


@dataclass(frozen=True)
class HistoryPoint:
    """One run of a series."""

    run_id: str
    created_utc: str
    value: Interval
    """Throughput in the unit of the cell's work, or × the no-strategy base of the same run."""
    trials: int
    unproved: bool = False
    """Whether its gate left something unproved."""


@dataclass(frozen=True)
class Gap:
    """A run that holds the cell and gave no figure."""

    run_id: str
    created_utc: str
    status: str


@dataclass(frozen=True)
class LevelChange:
    """Where the level of a series changes: between `before` and `after`, two runs that follow each other in it."""

    index: int
    """Of the first point of the new level."""
    p_value: float
    ratio: Interval
    """New level over the old one, Welch. Where to split was chosen by the same data, so it is a little too narrow."""
    before: str
    after: str
    environment: tuple[Change, ...]
    """How the two runs' environments and settings differ."""
    revisions: tuple[str | None, str | None]
    """The commits that the two runs recorded."""


@dataclass(frozen=True)
class Series:
    """One cell on one machine, oldest run first."""

    machine: str
    processor: str
    cell: Cell
    measure: Measure
    points: tuple[HistoryPoint, ...]
    gaps: tuple[Gap, ...]
    changes: tuple[LevelChange, ...]

    @property
    def long_enough(self) -> bool:
        """Whether a change of level can be found at all."""
        return len(self.points) >= FEWEST


@dataclass(frozen=True)
class _Seen:
    """What is kept of a run: its manifest, and what each cell gave."""

    manifest: RunManifest
    values: dict[tuple[str, Measure], HistoryPoint]
    failed: dict[str, str]


def history(runs: Iterable[Run], cells: Sequence[str] = ()) -> tuple[Series, ...]:
    """Every series of the finished sweeps among `runs`, by machine and cell, in the order in which they first appear.

    `cells` are ids and names, or parts of names where no cell has the whole one; without any, all. Runs of `ab` and
    `validate`, those that prove and do not time, and runs that do not say on which machine they were made, are no part
    of a series. One run is held in memory at a time.
    """
    seen = sorted((_seen(run) for run in runs if _counts(run)), key=lambda item: item.manifest.created_utc)
    found: dict[tuple[str, str, Measure], Cell] = {}
    every = {cell.cell_id: cell for item in seen for cell in item.manifest.cells}
    wanted = _wanted(list(every.values()), cells)
    for item in seen:
        for cell in item.manifest.cells:
            if cell.cell_id in wanted:
                for measure in ("throughput", "speed-up"):
                    found.setdefault((_machine(item.manifest), cell.cell_id, measure), cell)
    series = (_series(machine, cell, measure, seen) for (machine, _, measure), cell in found.items())
    return tuple(one for one in series if one.points or (one.gaps and one.measure == "throughput"))


def _counts(run: Run) -> bool:
    manifest = run.manifest
    comparable = manifest.what.kind.uncompared is None
    judged = comparable and manifest.status == JUDGED and not proves_only(manifest)
    return judged and bool(_machine(manifest)) and bool(run.trials)


def proves_only(manifest: RunManifest) -> bool:
    """Whether the run's settings are those of a proof, whose figures are of a first moment and of one trial."""
    return all(getattr(manifest.sweep, key) == value for key, value in PROVING.items())


def _machine(manifest: RunManifest) -> str:
    return str(manifest.facts.get("machine.id") or "")


def _wanted(cells: Sequence[Cell], texts: Sequence[str]) -> set[str]:
    """Ids of the cells that are meant by `texts`."""
    among = cell_names(cells)
    names = {cell.cell_id: (_typed(cell.label), _typed(among[cell.cell_id])) for cell in cells}
    whole = {cell.cell_id: (cell.cell_id, _typed(cell.full_name)) for cell in cells}
    wanted = set() if texts else set(names)
    for text in map(_typed, texts):
        meant = {cell for cell in names if text in names[cell] + whole[cell]}
        wanted |= meant or {cell for cell in names if any(text in name for name in names[cell])}
    return wanted


def _typed(text: str) -> str:
    """As it can be typed on every keyboard."""
    return text.replace("×", "x")


def _seen(run: Run) -> _Seen:
    values: dict[tuple[str, Measure], HistoryPoint] = {}
    failed: dict[str, str] = {}
    when = run.manifest.created_utc
    for cell in summarise(run.manifest, run.trials).cells:
        if cell.measured is None:
            failed[cell.trials.cell_id] = cell.trials.status
            continue
        trials = cell.measured.trials
        values[cell.trials.cell_id, "throughput"] = HistoryPoint(
            run.manifest.run_id, when, cell.measured.throughput, trials, cell.trials.status == "unproved"
        )
        if cell.vs_none is not None and not cell.trials.cell.is_base:
            values[cell.trials.cell_id, "speed-up"] = HistoryPoint(
                run.manifest.run_id, when, cell.vs_none.speed_up, trials, cell.trials.status == "unproved"
            )
    return _Seen(run.manifest, values, failed)


def _series(machine: str, cell: Cell, measure: Measure, seen: Sequence[_Seen]) -> Series:
    here = [item for item in seen if _machine(item.manifest) == machine]
    with_value = [item for item in here if (cell.cell_id, measure) in item.values]
    points = tuple(item.values[cell.cell_id, measure] for item in with_value)
    gaps = tuple(
        Gap(item.manifest.run_id, item.manifest.created_utc, item.failed[cell.cell_id])
        for item in here
        if cell.cell_id in item.failed
    )
    processor = str(here[-1].manifest.facts.get("cpu.model") or "unknown processor")
    changes = _changes(points, [item.manifest for item in with_value])
    return Series(machine, processor, cell, measure, points, gaps, changes)


def _changes(points: Sequence[HistoryPoint], manifests: Sequence[RunManifest]) -> tuple[LevelChange, ...]:
    logs = [math.log(point.value.value) for point in points]
    found = change_points(logs)
    edges = [0, *(change.index for change in found), len(logs)]
    changes = []
    for number, change in enumerate(found):
        old, new = logs[edges[number] : change.index], logs[change.index : edges[number + 2]]
        ratio = log_ratio(_sample(new, "new"), _sample(old, "old")).interval()
        if abs(statistics.fmean(new) - statistics.fmean(old)) < math.log1p(SMALLEST_CHANGE):
            continue
        before, after = manifests[change.index - 1], manifests[change.index]
        changes.append(
            LevelChange(
                change.index,
                change.p_value,
                ratio,
                before.run_id,
                after.run_id,
                changes_between(before, after),
                (_revision(before), _revision(after)),
            )
        )
    return tuple(changes)


def _sample(logs: Sequence[float], side: str) -> Sample:
    """Runs as a sample in which no two share a block."""
    return Sample(tuple(logs), tuple(f"{side} {number}" for number in range(len(logs))))


def _revision(manifest: RunManifest) -> str | None:
    found: Fact = manifest.facts.get("git.revision")
    return found if isinstance(found, str) else None
