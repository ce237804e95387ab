"""A whole run in one object: what the report, `show` and the exporters all read."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from harness.analysis.cells import CellTrials, Measured, marked, read_cell
from harness.analysis.estimates.intervals import Interval, cell_estimate, log_ratio, pooled_deviation
from harness.analysis.estimates.layout import Layout
from harness.analysis.ops import OpGroup, op_groups
from harness.analysis.ranking import Answer, Place, RankingScope, answer, rank, references_of
from harness.analysis.scaling import Scaling, both_bases, no_strategy_bases
from harness.analysis.trends import trend_of, trends_of
from harness.analysis.validation.turns import turn_cost
from harness.record.manifest import RunManifest
from harness.record.trial import TF32, TrialRecord
from harness.spec.axes import ENGINE
from harness.spec.cell import cell_names
from harness.spec.grouping import BESIDE_PROGRAM, experiment, family

JUDGED = "finished"
"""The status of runs that are judged: a sweep that is under way or was stopped may be looked at, not decided by."""


@dataclass(frozen=True)
class CellSummary:
    """A cell, what its trials say, its place, and how it compares with its two base cases."""

    trials: CellTrials
    place: Place | None
    """None unless the cell is ranked."""
    vs_none: Scaling | None
    vs_own: Scaling | None
    same_experiment_as: tuple[str, ...]
    """Other cells that ran the same experiment: their traced programs have one fingerprint and they are equal in every
    key that the program does not show, or their records are equal in what shows that key."""

    @property
    def cell_id(self) -> str:
        """The cell's identity."""
        return self.trials.cell_id

    @cached_property
    def label(self) -> str:
        """The cell's short name, with a mark where it is unproved."""
        return marked(f"{self.trials.cell.label} {self.trials.engine_told}".rstrip(), self.trials)

    @property
    def measured(self) -> Measured | None:
        """The measurement, None unless the cell is ok or unproved."""
        return self.trials.measured


@dataclass(frozen=True)
class WorkloadSummary:
    """The cells that compete with one another, their ranking and the answer."""

    workload: RankingScope
    cells: tuple[CellSummary, ...]
    """In the manifest's order, failed ones included."""
    answer: Answer
    ops: tuple[OpGroup, ...]
    linked: bool
    """Whether every ranked cell took turns with the best, or with others that did: kept runs had each precision's cells
    in groups of their own."""
    judged: bool = True
    """Whether the sweep finished: before that its figures are figures, and nothing is decided by them."""

    @property
    def ranking(self) -> tuple[CellSummary, ...]:
        """The ranked cells, the fastest first."""
        placed = [cell for cell in self.cells if cell.place is not None]
        return tuple(sorted(placed, key=lambda cell: cell.place.rank if cell.place else 0))

    @property
    def unranked(self) -> tuple[CellSummary, ...]:
        """The measured cells that no ranking takes in, because they are unproved."""
        left_out = (cell for cell in self.cells if cell.place is None and cell.measured is not None)
        return tuple(cell for cell in left_out if cell.trials.cell.competes)


@dataclass(frozen=True)
class Noise:
    """How quiet the run was."""

    paired_deviation: float | None
    """Pooled standard deviation of ln(X_cell/X_base) between blocks, cells that took turns with their base."""
    pairs: int
    cell_deviation: float | None
    """Pooled standard deviation of ln X between trials of a cell: the same, with the machine's drift in it."""
    waiting_s: float
    """Seconds that live trials spent waiting for a turn, all together."""
    waiting_cpu_seconds: float
    turn: Interval | None = None
    """Time of a window after another trial's ÷ that of one after the trial's own: what taking turns costs an absolute
    throughput, and no ratio. None where too few trials tell."""

    @property
    def waiting_cpu_share(self) -> float | None:
        """Processors used per waiting trial: near zero, or those who wait disturb the one at the clock."""
        return self.waiting_cpu_seconds / self.waiting_s if self.waiting_s > 0 else None


@dataclass(frozen=True)
class RunSummary:
    """Everything the report says about a run."""

    run_id: str
    status: str
    workloads: tuple[WorkloadSummary, ...]
    noise: Noise
    trials: int
    planned: int
    """Trials in the sealed plans; what is not recorded of them is missing, but for `not_run_again`."""
    blocks: int
    counts: Mapping[str, int]
    """Cells by status."""
    no_time_for: int = 0
    """Blocks that were asked for, and that the sweep's limit on time had no room for."""

    @property
    def judged(self) -> bool:
        """Whether there are verdicts: its plan was carried out, as far as this machine can."""
        return self.status == JUDGED

    @property
    def cells(self) -> tuple[CellSummary, ...]:
        """All cells of all workloads."""
        return tuple(cell for workload in self.workloads for cell in workload.cells)

    @property
    def names(self) -> dict[str, str]:
        """What tells each cell from the others of the run, with a mark where it is unproved, by identity."""
        names = cell_names([cell.trials.cell for cell in self.cells])
        told = {cell.cell_id: f", {told}" if (told := cell.trials.engine_told) else "" for cell in self.cells}
        return {cell.cell_id: marked(names[cell.cell_id] + told[cell.cell_id], cell.trials) for cell in self.cells}

    @property
    def not_run_again(self) -> int:
        """Planned trials of cells that turned out to be unsupported: a sweep does not try these a second time."""
        return sum(cell.trials.not_run for cell in self.cells if cell.trials.status == "unsupported")

    @property
    def again(self) -> int:
        """Trials that were run again: they are none of those that are planned."""
        return sum(cell.trials.again for cell in self.cells)

    @property
    def by_id(self) -> dict[str, CellSummary]:
        """Cells by identity."""
        return {cell.cell_id: cell for cell in self.cells}


def summarise(manifest: RunManifest, trials: Iterable[TrialRecord], rank_unproved: bool = False) -> RunSummary:
    """Read a run's records into a summary. Pure; a second over ten thousand trials.

    Cells that are `unproved` are in no ranking and no answer unless `rank_unproved`.

    Raises HarnessError when a measurement is not a number that can be compared. A trial of a cell that
    the manifest does not list is taken in as a cell of its own, since a record is never dropped.
    """
    records = list(trials)
    in_blocks = _planned_in_blocks(manifest)
    read = _read_cells(manifest, records, in_blocks)
    samples = {cell.cell_id: cell.measured.sample for cell in read if cell.measured is not None}
    layout = Layout(samples, pilot_blocks_of(manifest))
    judged = manifest.status == JUDGED
    workloads = _workloads(read, rank_unproved, layout, judged)
    blocks = sum(len(plan.blocks) for plan in manifest.plans)
    counts: defaultdict[str, int] = defaultdict(int)
    for cell in read:
        counts[cell.status] += 1
    return RunSummary(
        run_id=manifest.run_id,
        status=manifest.status,
        workloads=workloads,
        noise=_noise(read, records),
        trials=len(records),
        planned=sum(in_blocks.values()),
        blocks=blocks,
        counts=dict(counts),
        no_time_for=max(0, manifest.sweep.trials - blocks) if manifest.sweep.time and judged else 0,
    )


def _read_cells(
    manifest: RunManifest, records: Sequence[TrialRecord], in_blocks: Counter[tuple[str, int]]
) -> list[CellTrials]:
    """Each cell over its trials, those first that the manifest lists."""
    by_cell: defaultdict[str, list[TrialRecord]] = defaultdict(list)
    cells = {cell.cell_id: cell for cell in manifest.cells}
    for trial in records:
        by_cell[trial.cell_id].append(trial)
        cells.setdefault(trial.cell_id, trial.cell)
    planned, again = _over_blocks(in_blocks), _run_again(in_blocks, records)
    pilot_blocks, found = pilot_blocks_of(manifest), trends_of(records)
    return [
        read_cell(
            cell,
            by_cell[cell_id],
            planned[cell_id],
            manifest.device_of(cell),
            pilot_blocks,
            manifest.facts,
            trend_of(found, cell_id),
            again[cell_id],
        )
        for cell_id, cell in cells.items()
    ]


def planned_trials(manifest: RunManifest) -> defaultdict[str, int]:
    """How many trials the sealed plans hold of each cell id."""
    return _over_blocks(_planned_in_blocks(manifest))


def _over_blocks(in_blocks: Counter[tuple[str, int]]) -> defaultdict[str, int]:
    planned: defaultdict[str, int] = defaultdict(int)
    for (cell_id, _), count in in_blocks.items():
        planned[cell_id] += count
    return planned


def _planned_in_blocks(manifest: RunManifest) -> Counter[tuple[str, int]]:
    """The same of each cell id and block."""
    cell_of = manifest.what.cell_of  # what a run is about is looked up in all of its manifest
    return Counter(
        (cell_of(member), block)
        for plan in manifest.plans
        for block, groups in enumerate(plan.blocks, plan.first_block)
        for group in groups
        for member in group
    )


def _run_again(planned: Counter[tuple[str, int]], trials: Iterable[TrialRecord]) -> Counter[str]:
    """How many trials of each cell id there are beyond those that are planned of their blocks, of cells that the plans
    name: those of some kinds name something else."""
    beyond, named = Counter((trial.cell_id, trial.block) for trial in trials) - planned, {cell for cell, _ in planned}
    again: Counter[str] = Counter()
    for (cell_id, _), count in beyond.items():
        again[cell_id] += count if cell_id in named else 0
    return again


def pilot_blocks_of(manifest: RunManifest) -> int | None:
    """Blocks of the first stage, where a second was planned from its spread (Stein); else None."""
    if not any(plan.stage == 2 for plan in manifest.plans):
        return None
    return sum(len(plan.blocks) for plan in manifest.plans if plan.stage == 1)


def _workloads(
    cells: Sequence[CellTrials], rank_unproved: bool, layout: Layout, judged: bool
) -> tuple[WorkloadSummary, ...]:
    grouped: defaultdict[tuple[object, ...], list[CellTrials]] = defaultdict(list)
    several = len({cell.cell.get("engine") for cell in cells} - {None}) > 1
    for cell in cells:
        told = replace(cell, engine_told=ENGINE) if several and cell.cell.get("engine") == ENGINE else cell
        grouped[tuple(cell.cell.scope.items())].append(told)
    return tuple(_summarise_workload(members, rank_unproved, layout, judged) for members in grouped.values())


def _summarise_workload(
    members: Sequence[CellTrials],
    rank_unproved: bool,
    layout: Layout,
    judged: bool,
) -> WorkloadSummary:
    families: defaultdict[tuple[object, ...], list[CellTrials]] = defaultdict(list)
    for cell in members:
        families[family(cell.cell)].append(cell)
    references, bases = references_of(members), no_strategy_bases(members)
    competing = [cell for cell in members if cell.measured is not None and cell.cell.competes]
    ranked = [cell for cell in competing if cell.status == "ok" or rank_unproved]
    places = rank((cell.cell_id for cell in ranked), layout, judged)
    place_of = {place.cell_id: place for place in places}
    twins = _same_experiments(members)
    ops = op_groups(members, layout)
    summaries = []
    for cell in members:
        vs_none, vs_own = both_bases(cell, bases.get(cell.cell_id), families[family(cell.cell)], references)
        twin = twins.get(cell.cell_id, ())
        summaries.append(CellSummary(cell, place_of.get(cell.cell_id), vs_none, vs_own, twin))
    # its name claims no value of cells without a place
    workload = RankingScope.of([cell.cell for cell in ranked or members], _untrue(ranked))
    linked = all(layout.met(place.cell_id, places[0].cell_id) for place in places)
    found = answer(members, places, layout, judged)
    return WorkloadSummary(workload, tuple(summaries), found, ops, linked, judged)


def _untrue(ranked: Sequence[CellTrials]) -> frozenset[str]:
    """Values that a ranked cell was asked for and did otherwise: its engine compiled what it was not asked to, or
    computed float32 as TF32."""
    ran = [cell.executed for cell in ranked]
    compiled = any("XLA" in one.unlike.get("compiler", "") for one in ran)
    as_tf32 = any(one.arithmetic == TF32 for one in ran)
    return frozenset(["no XLA"] * compiled + ["float32"] * as_tf32)


def _same_experiments(cells: Sequence[CellTrials]) -> dict[str, tuple[str, ...]]:
    """Cells with one fingerprint, equal in every key that the traced program does not show, or in its evidence."""
    alike: dict[tuple[object, ...], list[str]] = {}
    for cell in cells:
        if not cell.executed.fingerprint:
            continue
        by_value = (cell.executed.fingerprint, *experiment(cell.cell))
        by_evidence = (cell.executed.fingerprint, *experiment(cell.cell, _evidence(cell)))
        members = alike.setdefault(by_value, [])
        others = alike.setdefault(by_evidence, members)
        if others is not members:
            others += members
            alike.update(dict.fromkeys([key for key, found in alike.items() if found is members], others))
        others.append(cell.cell_id)
    sets = {id(members): members for members in alike.values()}
    return {
        cell_id: tuple(other for other in members if other != cell_id)
        for members in sets.values()
        if len(members) > 1
        for cell_id in members
    }


def _evidence(cell: CellTrials) -> dict[str, object]:
    """By key, what the records show of an axis beside the program; nothing of an axis of which they do not show all."""
    parts = {"executed": cell.executed, "resources": cell.resources}
    found: dict[str, object] = {}
    for key, places in BESIDE_PROGRAM.items():
        shown = [getattr(parts.get(part), name, None) for part, _, name in (place.partition(".") for place in places)]
        if all(shown):
            found[key] = repr(shown)
    return found


def _noise(cells: Sequence[CellTrials], trials: Sequence[TrialRecord]) -> Noise:
    bases = no_strategy_bases(cells)
    ratios = []
    for cell in cells:
        base = bases.get(cell.cell_id)
        if base is None or base.measured is None or cell.measured is None or base.cell_id == cell.cell_id:
            continue
        ratio = log_ratio(cell.measured.sample, base.measured.sample)
        if ratio.method == "paired t":
            ratios.append(ratio)
    turn = turn_cost(trial for trial in trials if trial.measured)
    waited = [trial for trial in trials if trial.windows is not None and trial.phases.waiting_s is not None]
    return Noise(
        paired_deviation=pooled_deviation(ratios),
        pairs=sum(ratio.count for ratio in ratios),
        cell_deviation=pooled_deviation(cell_estimate(cell.measured.sample) for cell in cells if cell.measured),
        waiting_s=sum(trial.phases.waiting_s or 0.0 for trial in waited),
        waiting_cpu_seconds=sum(trial.windows.waiting_cpu_seconds for trial in waited if trial.windows),
        turn=None if turn is None else turn.interval(),
    )
