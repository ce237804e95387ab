"""`validate`: the method itself, measured on this machine.

A round takes one cell in three arms: the cell, the cell again (A/A), and the cell with a slow-down planted. The first
two hold the placebo of that slow-down, so that what it does anyway is on both sides. They are set up together, alive
together and take turns as the two sides of an `ab` are, in the same two stages. The two decisions of a round share side
A and its cost.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.analysis.comparison.pairs import blocks_wanted, pairs_of
from harness.engines.tensorflow.plants import PLACEBO
from harness.errors import HarnessError, UsageError
from harness.plan.blocks import Blocks
from harness.plan.estimate import estimate
from harness.record.manifest import ArmRecord, PlanRecord, RoundRecord, ValidationPlan
from harness.record.store import RunStore
from harness.record.trial import Plant
from harness.run.ending import end_recorded
from harness.run.kinds.arms import PATIENCE, Arm, ArmBlocks, is_hopeless, start_order, taken_back_when_empty
from harness.run.kinds.decision import AbSettings
from harness.run.kinds.measure import PREFLIGHT_S, check_machine, data_dir_of, new_manifest
from harness.run.launchers import open_launchers
from harness.run.process.preflight import preflight
from harness.run.process.zygote import Zygote
from harness.run.progress.base import Progress, Quiet
from harness.run.request import request_for
from harness.spec.cell import Cell
from harness.spec.sweep import Sweep

SHARES = (0.03, 0.05, 0.03, 0.05, 0.02, 0.10)
"""Planted in turn, one a round: those that have a goal twice as often."""
ALIKE = 2
"""Rounds of a cell in a row with one kind of slow-down: their placebo is the same, so that they can be compared."""
KINDS = ("device_work", "input_stall", "slow_replica")
QUICK_ROUNDS = 2
QUICK_SHARE = 0.05
FULL_ROUNDS = 60
"""60 A/A decisions: with no false alarm among them the one-sided upper limit is 4.9 %."""


@dataclass(frozen=True)
class ValidateSettings:
    """What is validated and how often: `rounds` rounds, going through `cells` in turn."""

    sweep: Sweep
    cells: Sequence[Cell]
    ab: AbSettings
    rounds: int
    quick: bool = False

    def plan(self) -> ValidationPlan:
        """Every round with its arms and the blocks of its pilot."""
        return ValidationPlan(
            quick=self.quick,
            delta=self.ab.margins.delta,
            epsilon=self.ab.margins.epsilon,
            half_width=self.ab.target,
            max_blocks=self.ab.max_blocks,
            placebo=PLACEBO,
            rounds=[self._round(number) for number in range(self.rounds)],
        )

    def _round(self, number: int) -> RoundRecord:
        turn, which = divmod(number, len(self.cells))
        cell = self.cells[which]
        kinds = [kind for kind in KINDS if kind != "slow_replica" or cell.replicas > 1]
        cycle, phase = divmod(turn, len(SHARES))
        # a kind further with each cycle, so that every kind is planted in every size
        plant = Plant(kind=kinds[(cycle + phase // ALIKE) % len(kinds)], share=SHARES[phase])
        if self.quick:
            plant = Plant(kind=kinds[-1], share=QUICK_SHARE)
        first = number * self.ab.pilot_blocks
        return RoundRecord(
            cell_id=cell.cell_id,
            arms=_arms(plant),
            pilot=list(range(first, first + self.ab.pilot_blocks)),
        )


def _arms(plant: Plant) -> list[ArmRecord]:
    """The cell, the cell again, and the cell with `plant`."""
    placebo = Plant(kind=plant.kind, share=0.0)
    return [
        ArmRecord(name="a", plant=placebo),
        ArmRecord(name="a-again", against="a", plant=placebo),
        ArmRecord(name=f"{plant.kind}-{plant.share:.0%}".removesuffix("%"), against="a", plant=plant),
    ]


class ValidationRun:
    """Runs what is missing of a validation's rounds."""

    def __init__(self, store: RunStore, zygote: Zygote, progress: Progress) -> None:
        assert store.manifest.validation is not None
        self.store = store
        self._zygote = zygote
        self._progress = progress
        self._cells = {cell.cell_id: cell for cell in store.manifest.cells}
        sweep = store.manifest.sweep
        self._blocks = ArmBlocks(
            store, progress, sweep.windows, sweep.max_warmup, sweep.seed, list(store.earlier_trials)
        )

    @property
    def plan(self) -> ValidationPlan:
        """The plan as it stands: second stages are added as they are planned."""
        assert self.store.manifest.validation is not None
        return self.store.manifest.validation

    def run(self) -> None:
        """Run to the end; raises Interrupted when the person asked to stop, with everything kept."""
        sweep, cells = self.store.manifest.sweep, self.store.manifest.cells
        each = estimate(sweep, cells).seconds / sweep.trials / len(cells)
        self._progress.started(self.store.manifest.run_id, self._left(), each * self._left())
        with end_recorded(self.store, self._progress, self._go_on), self._blocks.interrupts:
            self._blocks.prepare([self._arm(cell_id, ArmRecord(name="a")) for cell_id in self._cells])
            self._blocks.rehearse(self._planted())
            for number in range(len(self.plan.rounds)):
                self._run_round(number)

    def _planted(self) -> list[Arm]:
        """One arm of every kind of slow-down at every cell."""
        found = {(of.cell_id, arm.slowed.kind): arm for of in self.plan.rounds for arm in of.arms if arm.slowed}
        return [self._arm(cell_id, arm) for (cell_id, _), arm in found.items()]

    def _run_round(self, number: int) -> None:
        self._run_blocks(number, self.plan.rounds[number].pilot)
        if self.plan.rounds[number].second is None:
            self._plan_second_stage(number)
        self._run_blocks(number, self.plan.rounds[number].second or [])

    def _run_blocks(self, number: int, blocks: Sequence[int]) -> None:
        of = self.plan.rounds[number]
        arms = [self._arm(of.cell_id, arm) for arm in of.arms]
        for block in blocks:
            if not self._blocks.complete(block, _pairs(of)):
                self._progress.block(number, len(self.plan.rounds), len(arms))
                ended = self._blocks.run(block, arms, _pairs(of))
                failed = [trial for trial in ended if trial.status != "ok"]
                hopeless = [trial for trial in failed if is_hopeless(trial)]
                if hopeless or self._blocks.failed_in_a_row >= PATIENCE:
                    trial = (hopeless or failed)[0]
                    raise HarnessError(
                        f"{trial.cell.label}, {trial.side}: {trial.status}: {trial.reason}; {self._go_on()}"
                    )

    def _plan_second_stage(self, number: int) -> None:
        """As many blocks more as the noisiest decision of the round wants, written down before they run."""
        of, plan = self.plan.rounds[number], self.plan
        trials = [trial for trial in self._blocks.trials if trial.block in of.pilot]
        wanted = len(of.pilot)
        for arm in of.decisions:
            values = [pair.wall for pair in pairs_of(trials, arm.against or "", arm.name)]
            if len(values) >= 2:
                wanted = max(wanted, blocks_wanted(values, plan.half_width, plan.max_blocks))
        first = 1 + max(max([*item.pilot, *(item.second or [])]) for item in plan.rounds)
        second = list(range(first, first + wanted - len(of.pilot)))
        rounds = [
            item.model_copy(update={"second": second}) if index == number else item
            for index, item in enumerate(plan.rounds)
        ]
        plans = [*self.store.manifest.plans]
        if second:
            seed = self.store.manifest.sweep.seed
            plans.append(PlanRecord.sealed(seed, 2, _groups(seed, of, second), first))
            self._progress.more(len(second) * len(of.arms))
        changes = {"plans": plans, "validation": plan.model_copy(update={"rounds": rounds})}
        self.store.update_manifest(self.store.manifest.model_copy(update=changes))

    def _arm(self, cell_id: str, arm: ArmRecord) -> Arm:
        sweep = self.store.manifest.sweep
        request = request_for(self._cells[cell_id], sweep, data_dir_of(sweep), arm.plant)
        return Arm(arm.name, request, self._zygote, sweep.timeout)

    def _left(self) -> int:
        return sum(
            len(of.arms)
            for of in self.plan.rounds
            for block in [*of.pilot, *(of.second or [])]
            if not self._blocks.complete(block, _pairs(of))
        )

    def _go_on(self) -> str:
        path = str(self.store.path)
        way = f"python -m harness validate --resume {shlex.quote(path)}"
        return f"what was measured is kept in {path}; go on with: {way}"


def validate(
    settings: ValidateSettings, results: Path, command: Sequence[str] = (), progress: Progress | None = None
) -> Path:
    """Measure a new validation; returns its folder.

    Raises UsageError when a user's own model cannot be loaded (nothing is then left), StorageError,
    HarnessError when a cell cannot be validated since it fails, Interrupted; each with how to go on.
    """
    plan, seed = settings.plan(), settings.sweep.seed
    pilot = [block for of in plan.rounds for block in _groups(seed, of, of.pilot)]
    manifest = new_manifest(
        "validation",
        command,
        sweep=settings.sweep,
        cells=list(settings.cells),
        plans=[PlanRecord.sealed(seed, 1, pilot)],
        validation=plan,
    )
    requests = [request_for(cell, settings.sweep, data_dir_of(settings.sweep)) for cell in settings.cells]
    with Zygote() as zygote:
        preflight(zygote, requests, min(PREFLIGHT_S, settings.sweep.timeout))
        open_launchers(requests, zygote)
        with RunStore.create(results, manifest) as store, taken_back_when_empty(store):
            ValidationRun(store, zygote, progress or Quiet()).run()
    return store.path


def resume_validation(path: Path, progress: Progress | None = None) -> None:
    """Run what a validation still misses; UsageError when the run is none."""
    with RunStore.open_for_resume(path) as store:
        if store.manifest.validation is None:
            raise UsageError(f"--resume: '{path.name}' is no validation")
        if store.manifest.status == "finished":
            return
        _check_placebos(store.manifest.validation, path)
        check_machine(store.manifest)
        sweep = store.manifest.sweep
        requests = [request_for(cell, sweep, data_dir_of(sweep)) for cell in store.manifest.cells]
        with Zygote() as zygote:
            open_launchers(requests, zygote)
            ValidationRun(store, zygote, progress or Quiet()).run()


def _check_placebos(plan: ValidationPlan, path: Path) -> None:
    """UsageError for a plan that was made before planted arms were compared with their placebo, or with another one."""
    begin = "begin a new one: python -m harness validate"
    for of in plan.rounds:
        bare = {arm.name for arm in of.arms if arm.plant is None}
        if any(arm.slowed and arm.against in bare for arm in of.arms):
            raise UsageError(
                f"--resume: '{path.name}' was begun by an older version, which compared slow-downs with nothing at all "
                f"instead of a placebo; {begin}"
            )
    if plan.placebo != PLACEBO:
        raise UsageError(
            f"--resume: '{path.name}' was begun by another version, whose placebo was another one than this one's "
            f"{PLACEBO:g} of a window's steps; {begin}"
        )


def _pairs(of: RoundRecord) -> list[tuple[str, str]]:
    return [(arm.against or "", arm.name) for arm in of.decisions]


def _groups(seed: int, of: RoundRecord, blocks: Sequence[int]) -> Blocks:
    return [[start_order(seed, block, [arm.name for arm in of.arms])] for block in blocks]
