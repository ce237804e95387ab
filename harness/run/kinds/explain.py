"""`explain`: a cell's step and the same with one thing left out, alive together, taking turns.

Each block of a cell has a fresh trial of the whole step and of every instrument (`harness.record.explain`), of one
replica by itself, and of the input pipeline by itself. An instrument that cannot be built, whose program lacks more
than its name says, or that fails in block after block is left out of the blocks that follow; its record says why, and
the rest is explained. So is a cell whose whole step cannot be measured, as long as another one's can.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.errors import HarnessError, UsageError
from harness.plan.estimate import estimate
from harness.record.explain import (
    ALONE,
    BARRIER,
    FORWARD_BACKWARD,
    INSTRUMENTS,
    NO_PULL,
    NO_PUSH,
    NO_REDUCTION,
    OF_SERVERS,
    ONLY_INPUT,
    REDUCTION,
    WHOLE,
    ExplainPlan,
    FamilyRecord,
)
from harness.record.manifest import PlanRecord
from harness.record.store import RunStore
from harness.record.trial import PATIENCE, is_given_up, is_hopeless
from harness.run.kinds.arms import ArmBlocks, must_live_together, start_order
from harness.run.kinds.base import Arm, TrialRun
from harness.run.progress import Progress, Quiet
from harness.run.runner import begin, new_manifest
from harness.spec.axes import TABLE
from harness.spec.catalogue import Catalogue
from harness.spec.cell import TrainingCell, trained
from harness.spec.engines import engine_for
from harness.spec.inputs import LeftOut
from harness.spec.pipeline import PipelineCell
from harness.spec.sweep import Sweep
from harness.spec.work import TAG, Cell
from harness.trial.engines import catalogue_of, engines_that

OF_EXPLAIN = {"window": 0.05, "windows": 14, "max_warmup": 2, "trials": 6}
"""The keys of a spec that `explain` sets where nobody else does; `trials` are blocks. In the kept run, of 24 windows,
an arm's ratio to the whole step scattered from block to block by 1.9 %, of which windows made 1.5: with 14 it is a
fifth more. `benchmarks/goals/answers.py` says how long two cells take."""
MOST_CELLS = 8


def no_instruments(cell: Cell, engine: str = "") -> str | None:
    """Why a cell's step cannot be taken apart, which begins with the key that is in the way; None where it can.

    `engine` is what trains, where the cell does not say so itself.
    """
    if not cell.TAKEN_APART:
        return "work: explain takes trainings of a model, whose steps it knows"
    cell = trained(cell)
    catalogue = catalogue_of(engine or cell.engine)
    able = sorted(_with_instruments(catalogue), key=TABLE["strategy"].rank)
    if not able:
        known = " or ".join(engines_that(_with_instruments))
        return f"engine: given {engine or cell.engine!r}, expected {known}: instruments are of its programs"
    if cell.strategy not in able:
        return f"strategy: '{cell.strategy}' has no instruments; expected one of {', '.join(able)}"
    if cell.loop not in catalogue.instruments:
        return f"loop: '{cell.loop}' has no instruments; expected {' or '.join(catalogue.instruments)}"
    if cell.asynchronous and cell.updates != "locked":
        return f"updates: '{cell.updates}' has no instruments; expected locked"
    if cell.steps_per_execution > 1:
        return f"steps_per_execution: {cell.steps_per_execution} has no instruments; expected 1, a call for each step"
    return None


def _with_instruments(catalogue: Catalogue) -> list[str]:
    """The strategies whose steps can be taken apart."""
    return [name for name, traits in catalogue.strategies.items() if traits.instruments]


@dataclass(frozen=True)
class ExplainSettings:
    """Which cells are explained, with the settings of a sweep whose `trials` are blocks, and what of a spec is not."""

    sweep: Sweep
    cells: Sequence[TrainingCell]
    left_out: Sequence[LeftOut] = ()

    def __post_init__(self) -> None:
        """UsageError for what has no instruments."""
        if len(self.cells) > MOST_CELLS:
            raise UsageError(
                f"explain: {len(self.cells)} cells are asked for, expected at most {MOST_CELLS}: give axes fewer values"
            )
        if self.sweep.trials < 2:
            raise UsageError("trials: given 1, expected at least 2: how sure a part is, its spread over blocks says")
        for cell in self.cells:
            engine = engine_for(cell, self.sweep)
            if fault := no_instruments(cell, engine):
                raise UsageError(fault)
            must_live_together([cell], engine)

    def plan(self) -> ExplainPlan:
        """Every family and its arms."""
        families = [_family(cell, engine_for(cell, self.sweep)) for cell in self.cells]
        return ExplainPlan(families=families, blocks=self.sweep.trials)


def _family(cell: TrainingCell, engine: str) -> FamilyRecord:
    several, pipeline = cell.replicas_in_sync > 1, pipeline_of(cell, engine)
    beside = [*([ALONE] if several else []), *([ONLY_INPUT] if pipeline is not None else [])]
    return FamilyRecord(
        cell_id=cell.cell_id,
        arms=[WHOLE, *_instruments_of(cell, engine), *beside],
        alone=alone_of(cell).cell_id if several else None,
        pipeline=None if pipeline is None else pipeline.cell_id,
        at_once=cell.workers if cell.asynchronous else 1,
    )


def _instruments_of(cell: TrainingCell, engine: str) -> list[str]:
    if cell.asynchronous:
        return list(OF_SERVERS)
    has = catalogue_of(engine).instruments[cell.loop]
    left_out = {NO_PULL, NO_PUSH}
    left_out |= set() if cell.replicas_in_sync > 1 else {NO_REDUCTION, REDUCTION}
    left_out |= set() if cell.workers > 1 else {BARRIER}
    return [name for name in INSTRUMENTS if name in has and name not in left_out]


def alone_of(cell: TrainingCell) -> TrainingCell:
    """One replica's share of the batch, on a device of its own; of workers that do not wait for each other one.

    Where a replica is a process it keeps its strategy, in one process: what a step is called by is no contention.
    """
    if cell.asynchronous:
        return cell.model_copy(update={"workers": 1})
    size = cell.replica_batch_size
    share = {"batch_scope": "per_replica", "batch_size": size, "global_batch_size": size}
    traits = catalogue_of(cell.engine).strategies.get(cell.strategy)
    if traits is not None and traits.replica_a_process:
        return cell.model_copy(update={"workers": 1, "network": TABLE["network"].base, **share})
    return cell.base.model_copy(update=share)


def pipeline_of(cell: TrainingCell, engine: str) -> PipelineCell | None:
    """The input pipeline of a cell by itself: what one process reads for all of its replicas.

    None where there is no pipeline; where several workers read each its own; of a tf.data service, of which each window
    would ask for a whole pass; and where replicas have memory of their own, into which one process by itself would not
    bring its batches as they come there.
    """
    catalogue = catalogue_of(engine)
    apart = cell.replicas > 1 and not catalogue.devices[cell.device].on_processors
    if cell.workers > 1 or cell.ps or cell.data_service or apart or not catalogue.has_pipeline(cell.data):
        return None
    shared = (PipelineCell.model_fields.keys() & TrainingCell.model_fields.keys()) - {TAG}
    return PipelineCell(**{**{key: cell.get(key) for key in shared}, "batch_size": cell.global_batch_size})


class ExplainRun(TrialRun):
    """Runs what is missing of the blocks of each family."""

    name = "explain"

    def __init__(self, store: RunStore, listener: Progress) -> None:
        super().__init__(store, listener)
        self._cells = {cell.cell_id: cell for cell in store.manifest.cells}
        self._blocks = ArmBlocks.of(self)

    @property
    def plan(self) -> ExplainPlan:
        """What was planned."""
        return self.store.manifest.part(ExplainPlan)

    def arms(self) -> Sequence[Arm]:
        """The whole step of each cell."""
        return [self._arm(family, WHOLE) for family in self.plan.families]

    def announce(self) -> None:
        """What is left, and about how long that takes."""
        sweep = self.store.manifest.sweep
        arms = [(family, arm) for block in self._left() for family in [self.plan.family(block)] for arm in family.arms]
        cells = [self._cells[family.cell_of(arm)] for family, arm in arms]
        whole = estimate(sweep, cells)
        self.progress.started(self.store.manifest.run_id, len(arms), whole.seconds / sweep.trials, whole.unknown)

    def execute(self) -> None:
        """Block after block, each family in turn, without those whose whole step cannot be measured: its trials say
        why. HarnessError where that is so of all."""
        blocks = len(self.plan.families) * self.plan.blocks
        given_up: dict[str, str] = {}
        failed: Counter[str] = Counter()
        for block in self._left():
            family = self.plan.family(block)
            if family.cell_id in given_up:
                continue
            arms = [self._traced(self._arm(family, name), block) for name in self._possible(family)]
            self.progress.block(block, blocks, len(arms))
            ended = self._blocks.run(block, arms, [(WHOLE, arm.name) for arm in arms if arm.name != WHOLE])
            [whole] = [trial for trial in ended if trial.side == WHOLE][-1:]
            failed[family.cell_id] = 0 if whole.measured else failed[family.cell_id] + 1
            if is_hopeless(whole) or failed[family.cell_id] >= PATIENCE:
                given_up[family.cell_id] = f"{whole.cell.label}: {whole.status}: {whole.reason}"
        if len(given_up) == len(self.plan.families):
            raise HarnessError(next(iter(given_up.values())))

    def _possible(self, family: FamilyRecord) -> list[str]:
        """The whole step, and its instruments but those that another block would only see fail again."""
        own = [trial for trial in self.trials if self._is_of(trial.block, family) and trial.status != "interrupted"]
        return [name for name in family.arms if name == WHOLE or not is_given_up([t for t in own if t.side == name])]

    def _is_of(self, block: int, family: FamilyRecord) -> bool:
        return self.plan.family(block) == family

    def _left(self) -> list[int]:
        numbers = range(len(self.plan.families) * self.plan.blocks)
        return [number for number in numbers if not self._complete(number)]

    def _complete(self, block: int) -> bool:
        others = [name for name in self._possible(self.plan.family(block)) if name != WHOLE]
        return self._blocks.complete(block, [(WHOLE, name) for name in others])

    def _traced(self, arm: Arm, block: int) -> Arm:
        """The whole step is profiled once, where that is asked for."""
        return replace(arm, request=self.traced(block, arm.request)) if arm.name == WHOLE else arm

    def _arm(self, family: FamilyRecord, name: str) -> Arm:
        cell = self._cells[family.cell_of(name)]
        sweep = self.store.manifest.sweep
        arm = Arm.of(name, cell, sweep, self.zygotes[engine_for(cell, sweep)])
        instrument = {WHOLE: "", ALONE: FORWARD_BACKWARD}.get(name, name)
        return replace(arm, request=arm.request.model_copy(update={"instrument": instrument}))


def explain(
    settings: ExplainSettings, results: Path, command: Sequence[str] = (), progress: Progress | None = None
) -> Path:
    """Measure a new run of `explain`; returns its folder.

    Raises UsageError when a user's own model cannot be loaded (nothing is then left), StorageError, HarnessError when
    the whole step of every cell fails, Interrupted; each with how to go on.
    """
    plan, seed = settings.plan(), settings.sweep.seed
    alone = [alone_of(cell) for cell in settings.cells if cell.replicas_in_sync > 1]
    pipelines = filter(None, (pipeline_of(cell, engine_for(cell, settings.sweep)) for cell in settings.cells))
    cells = {cell.cell_id: cell for cell in [*settings.cells, *alone, *pipelines]}
    blocks = [[start_order(seed, block, plan.family(block).arms)] for block in range(len(plan.families) * plan.blocks)]
    manifest = new_manifest(
        "explain",
        command,
        sweep=settings.sweep,
        cells=list(cells.values()),
        left_out=settings.left_out,
        plans=[PlanRecord.sealed(seed, 1, blocks)],
        explain=plan,
    )
    return begin(ExplainRun, results, manifest, progress or Quiet())


KIND = ExplainRun
__all__ = ["ExplainRun", "ExplainSettings", "explain"]
