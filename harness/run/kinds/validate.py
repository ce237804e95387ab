"""`validate`: the method itself, measured on this machine.

A round takes one cell in three arms: the cell, the cell again (A/A), and the cell with a slow-down planted. The first
two hold the placebo of that slow-down, so that what it does anyway is on both sides. They are set up together, alive
together and take turns as the two sides of an `ab` are, in the same two stages. The two decisions of a round share side
A and its cost.
"""

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
from harness.run.kinds.arms import PATIENCE, ArmBlocks, is_hopeless, start_order
from harness.run.kinds.base import Arm, TrialRun
from harness.run.kinds.decision import AbSettings
from harness.run.progress.base import Progress, Quiet
from harness.run.runner import begin, check_machine, new_manifest
from harness.spec.cell import Cell
from harness.spec.sweep import Sweep

SHARES = (0.03, 0.05, 0.03, 0.05, 0.02, 0.10)
"""Planted in turn, one a round: those that have a goal twice as often."""
ALIKE = 2
"""Rounds of a cell in a row with one kind of slow-down: their placebo is the same, so that they can be compared."""
SLOW_DOWNS = ("device_work", "input_stall", "slow_replica")
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
        kinds = [kind for kind in SLOW_DOWNS if kind != "slow_replica" or cell.shape.replicas > 1]
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


class ValidationRun(TrialRun):
    """Runs what is missing of a validation's rounds."""

    name = "validation"

    def __init__(self, store: RunStore, listener: Progress) -> None:
        super().__init__(store, listener)
        self._cells = {cell.cell_id: cell for cell in store.manifest.cells}
        self._blocks = ArmBlocks.of(self)

    @property
    def plan(self) -> ValidationPlan:
        """The plan as it stands: second stages are added as they are planned."""
        return self.store.manifest.part(ValidationPlan)

    def check(self) -> None:
        """The placebo is the one that it was begun with, and so is the machine."""
        _check_placebos(self.plan, self.store.path)
        check_machine(self.store.manifest)

    def arms(self) -> Sequence[Arm]:
        """A cell each."""
        return [self._arm(cell_id, ArmRecord(name="a")) for cell_id in self._cells]

    def announce(self) -> None:
        """What is left of the rounds, and about how long that takes."""
        sweep, cells, left = self.store.manifest.sweep, self.store.manifest.cells, self._left()
        each = estimate(sweep, cells).seconds / sweep.trials / len(cells)
        self.progress.started(self.store.manifest.run_id, left, each * left)

    def execute(self) -> None:
        """Calibrate every slow-down, then run round after round."""
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
                self.progress.block(number, len(self.plan.rounds), len(arms))
                ended = self._blocks.run(block, arms, _pairs(of))
                failed = [trial for trial in ended if not trial.measured]
                hopeless = [trial for trial in failed if is_hopeless(trial)]
                if hopeless or self._blocks.failed_in_a_row >= PATIENCE:
                    trial = (hopeless or failed)[0]
                    raise HarnessError(f"{trial.cell.label}, {trial.side}: {trial.status}: {trial.reason}")

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
            self.progress.more(len(second) * len(of.arms))
        changes = {"plans": plans, "validation": plan.model_copy(update={"rounds": rounds})}
        self.store.update_manifest(self.store.manifest.model_copy(update=changes))

    def _arm(self, cell_id: str, arm: ArmRecord) -> Arm:
        [zygote] = self.zygotes.values()
        return Arm.of(arm.name, self._cells[cell_id], self.store.manifest.sweep, zygote, arm.plant)

    def _left(self) -> int:
        return sum(
            len(of.arms)
            for of in self.plan.rounds
            for block in [*of.pilot, *(of.second or [])]
            if not self._blocks.complete(block, _pairs(of))
        )


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
    return begin(ValidationRun, results, manifest, progress or Quiet())


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


KIND = ValidationRun
