"""`validate`: the method itself, measured on this machine.

A round takes one cell twice (A/A), in every other round from two preloaded processes, as where two interpreters are
compared, and in every fourth each of these has a work tree of one commit, as where revisions are. In every third round
there is a third arm, with a slow-down planted; the others hold the placebo of
that slow-down, so that what it does anyway is on both sides. They are set up together, alive together and take turns
as the two sides of an `ab` are, with the same looks: blocks go on until all decisions of a round have stopped. These
share side A and its cost. Preloaded processes are replaced as often as those of an `ab`.
"""

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.analysis.comparison.standing import Standing, standing_of
from harness.analysis.estimates.verdict import Margins
from harness.analysis.validation.summary import validation_of
from harness.errors import HarnessError, UsageError
from harness.plan.estimate import estimate
from harness.record.manifest import ArmRecord, LooksRecord, PlanRecord, RoundRecord, ValidationPlan
from harness.record.reading import Run
from harness.record.store import RunStore
from harness.record.trial import PATIENCE, Plant, is_hopeless
from harness.record.validation import with_recorded_rules, write_validation
from harness.run.kinds.arms import ArmBlocks, must_live_together, start_order
from harness.run.kinds.base import Arm, TrialRun, launch
from harness.run.kinds.decision import AbSettings, sealed_looks
from harness.run.kinds.sides import revision_zygote
from harness.run.process.engines import python_for
from harness.run.process.worktrees import Repository
from harness.run.process.zygote import Zygote
from harness.run.progress import Progress, Quiet
from harness.run.runner import begin, new_manifest
from harness.spec.engines import only_engine_of
from harness.spec.sweep import Sweep
from harness.spec.work import Cell
from harness.trial.delay import PLACEBO

SHARES = (0.03, 0.05, 0.03, 0.05, 0.02, 0.10)
"""Planted in turn, one a round: those that have a goal twice as often."""
APART, REVISION = "apart", "revision"
"""What a preloaded process is called by: that it is the second, and that it has a work tree."""
TWO_REVISIONS = "two equal revisions"
ALIKE = 2
"""Rounds of a cell in a row with one kind of slow-down: their placebo is the same, so that they can be compared."""
SLOW_DOWNS = ("device_work", "input_stall", "slow_replica")
QUICK_ROUNDS = 2
QUICK_SHARE = 0.05
PLANTED_EVERY = 3
"""Rounds of a cell to one with a slow-down: what is asked first is whether nothing is called nothing."""
APART_EVERY = 2
REVISIONS_EVERY = 4
"""Rounds of a cell to one whose sides are forked from two preloaded processes, and to one of two revisions."""
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
    commit: str | None = None
    """What two equal revisions are made of; None: no round compares any."""
    revisions_left_out: str | None = None
    """Why there is none."""

    def plan(self) -> ValidationPlan:
        """Every round with its arms and the blocks up to its first look."""
        rounds = [self._round(number) for number in range(self.rounds)]
        due = any(self._is_due(REVISIONS_EVERY, number // len(self.cells)) for number in range(self.rounds))
        return ValidationPlan(
            quick=self.quick,
            delta=self.ab.margins.delta,
            epsilon=self.ab.margins.epsilon,
            max_blocks=self.ab.max_blocks,
            placebo=PLACEBO,
            commit=self.commit if due else None,
            revisions_left_out=self.revisions_left_out if due else None,
            rounds=rounds,
        )

    def _is_due(self, every: int, turn: int) -> bool:
        return turn % every == every - 1

    def _round(self, number: int) -> RoundRecord:
        turn, which = divmod(number, len(self.cells))
        cell = self.cells[which]
        kinds = [kind for kind in SLOW_DOWNS if kind != "slow_replica" or cell.shape.replicas > 1]
        cycle, phase = divmod(turn // PLANTED_EVERY, len(SHARES))
        # a kind further with each cycle, so that every kind is planted in every size
        plant = Plant(kind=kinds[(cycle + phase // ALIKE) % len(kinds)], share=SHARES[phase])
        if self.quick:
            plant = Plant(kind=kinds[-1], share=QUICK_SHARE)
        first = number * self.ab.max_blocks
        revisions = self.commit is not None and self._is_due(REVISIONS_EVERY, turn)
        apart = self._two_zygotes and self._is_due(APART_EVERY, turn)
        return RoundRecord(
            cell_id=cell.cell_id,
            arms=_arms(plant, self.quick or turn % PLANTED_EVERY == 0, apart, revisions),
            blocks=list(range(first, first + self.ab.looks[0])),
        )

    @property
    def _two_zygotes(self) -> bool:
        """Whether a second one would be alike: agents on other hosts fork from their own."""
        return self.sweep.launcher == "local"


def _arms(plant: Plant, planted: bool, apart: bool, revision: bool) -> list[ArmRecord]:
    """The cell, the cell again, here or from a second preloaded process, and where it is `planted`, with `plant`.

    Of a `revision` all have the code of work trees: the cell and what is planted of one, the cell again of another.
    """
    placebo = Plant(kind=plant.kind, share=0.0)
    name = "a-revision" if revision else "a-apart" if apart else "a-again"
    again = ArmRecord(name=name, against="a", plant=placebo, apart=apart or revision, revision=revision)
    name = f"{plant.kind}-{plant.share:.0%}".removesuffix("%")
    slow = [ArmRecord(name=name, against="a", plant=plant, revision=revision)] if planted else []
    return [ArmRecord(name="a", plant=placebo, revision=revision), again, *slow]


def equal_revision(sweep: Sweep, cells: Sequence[Cell]) -> tuple[str | None, str | None]:
    """The commit of which a validation can have two work trees, or else why it cannot: one of the two is None."""
    if sweep.launcher != "local":
        return (
            None,
            f"launcher: with '{sweep.launcher}' trials are forked from processes of agents, which have no work trees",
        )
    try:
        repository = Repository.around(Path.cwd(), TWO_REVISIONS)
        commit = repository.commit("HEAD")
    except UsageError as error:
        return None, str(error).removeprefix(f"{TWO_REVISIONS}: ")
    if any(cell.own_code for cell in cells) and repository.has_other_code():
        return None, "the working tree has changes that HEAD has not, so that HEAD may be other code; commit them"
    return commit, None


class ValidationRun(TrialRun):
    """Runs what is missing of a validation's rounds."""

    name = "validation"

    def __init__(self, store: RunStore, listener: Progress) -> None:
        super().__init__(store, listener)
        self._cells = {cell.cell_id: cell for cell in store.manifest.cells}
        self._blocks = ArmBlocks.of(self)

    @property
    def plan(self) -> ValidationPlan:
        """The plan as it stands: a round's blocks after a look are added as they are planned."""
        return self.store.manifest.part(ValidationPlan)

    def check(self) -> None:
        """The placebo is the one that it was begun with, and it has looks."""
        sealed_looks(self.store)
        _check_placebos(self.plan, self.store.path)
        if self.plan.commit is not None:
            Repository.around(Path.cwd(), "--resume").commit(self.plan.commit)

    @contextlib.contextmanager
    def environments(self) -> Iterator[Mapping[str, Zygote]]:
        """One more for each way in which arms of some round are forked, to show what layout alone does."""
        with contextlib.ExitStack() as stack:
            made, several = dict[str, Zygote](), len(self._processes) > 1
            for name, arm in self._processes.items():
                made[name] = self._of_revision(stack) if arm.revision else self._made(self._engine, stack, several)
            found = dict[str, Zygote]()
            for name, arm in self._processes.items():
                one = made[name]
                found[name] = (
                    stack.enter_context(one)
                    if arm.revision
                    else self._imported({self._engine: one}, stack)[self._engine]
                )
            yield found

    def _of_revision(self, stack: contextlib.ExitStack) -> Zygote:
        """A launched process with a work tree of the plan's commit, made as for a side of `ab`."""
        repository = Repository.around(Path.cwd(), TWO_REVISIONS)
        python = python_for(self.store.manifest.sweep) or sys.executable
        tree = stack.enter_context(repository.tree(self.plan.commit or ""))
        made = revision_zygote(repository, tree, python, {}, self._engine)
        launch(made, stack)
        return made

    def arms(self) -> Sequence[Arm]:
        """A cell each, from every preloaded process."""
        return [self._arm(cell_id, arm) for cell_id in self._cells for arm in self._processes.values()]

    @property
    def _engine(self) -> str:
        return only_engine_of(self.store.manifest.sweep)

    @property
    def _processes(self) -> dict[str, ArmRecord]:
        """The preloaded processes by name, the usual one first, and an arm that is forked from each."""
        every = [ArmRecord(name="a"), *(arm for of in self.plan.rounds for arm in of.arms)]
        ways = {(arm.revision, arm.apart): ArmRecord(name="a", revision=arm.revision, apart=arm.apart) for arm in every}
        return {self._process(arm): arm for arm in ways.values()}

    def _process(self, arm: ArmRecord) -> str:
        """What the preloaded process is called that `arm` is forked from."""
        words = [word for word, holds in ((REVISION, arm.revision), (APART, arm.apart)) if holds]
        return "-".join(words) or self._engine

    def announce(self) -> None:
        """What is left of the rounds, and about how long that takes."""
        sweep, cells, left = self.store.manifest.sweep, self.store.manifest.cells, self._left()
        whole = estimate(sweep, cells)
        seconds = whole.seconds / sweep.trials / len(cells) * left
        self.progress.started(self.store.manifest.run_id, left, seconds, whole.unknown)

    def execute(self) -> None:
        """Calibrate every slow-down, run round after round, and write down what they came to: before the run counts as
        finished, and while nobody else writes it."""
        self._blocks.rehearse(self._planted())
        for number in range(len(self.plan.rounds)):
            self._run_round(number)
        path = self.store.path
        found = validation_of(Run(path, self.store.manifest, self.trials, torn=False, live=True))
        write_validation(path, with_recorded_rules(found, path))

    def _planted(self) -> list[Arm]:
        """One arm of every kind of slow-down at every cell."""
        found = {(of.cell_id, arm.slowed.kind): arm for of in self.plan.rounds for arm in of.arms if arm.slowed}
        return [self._arm(cell_id, arm) for (cell_id, _), arm in found.items()]

    def _run_round(self, number: int) -> None:
        for look, after in enumerate(self._looks.after, start=1):
            if self.plan.rounds[number].stopped:
                return
            self._plan_up_to(number, after)
            decision = f"round {number + 1} of {len(self.plan.rounds)}"
            self.progress.look(look, len(self._looks.after), after, decision)
            self._run_blocks(number)
            self._note_stops(number)

    def _run_blocks(self, number: int) -> None:
        of = self.plan.rounds[number]
        arms = [self._arm(of.cell_id, arm) for arm in of.arms]
        left = [block for block in of.blocks if not self._blocks.complete(block, _pairs(of))]
        for block in left:
            self._blocks.renew(arms, at_look=block == left[0])
            self.progress.block(of.blocks.index(block), len(of.blocks), len(arms))
            ended = self._blocks.run(block, arms, _pairs(of))
            failed = [trial for trial in ended if not trial.measured]
            hopeless = [trial for trial in failed if is_hopeless(trial)]
            if hopeless or self._blocks.failed_in_a_row >= PATIENCE:
                trial = (hopeless or failed)[0]
                raise HarnessError(f"{trial.cell.label}, {trial.side}: {trial.status}: {trial.reason}")

    def _plan_up_to(self, number: int, after: int) -> None:
        """Seal the blocks of a round up to a look, unless they are."""
        of, manifest = self.plan.rounds[number], self.store.manifest
        first = of.blocks[0]
        new = list(range(first + len(of.blocks), first + after))
        if new:
            more = of.model_copy(update={"blocks": [*of.blocks, *new]})
            plan = _sealed(manifest.sweep.seed, of, new)
            self._update(number, more, [*manifest.plans, plan])
            self.progress.more(len(new) * len(of.arms))

    def _note_stops(self, number: int) -> None:
        """Write down where each decision of a round stopped, once all have."""
        of = self.plan.rounds[number]
        standings = {arm.name: self._standing(of, arm) for arm in of.decisions}
        if all(one.ended for one in standings.values()):
            stopped = {name: self._looks.after[one.number - 1] for name, one in standings.items()}
            self._update(number, of.model_copy(update={"stopped": stopped}), self.store.manifest.plans)

    def _standing(self, of: RoundRecord, arm: ArmRecord) -> Standing:
        margins = Margins(self.plan.delta, self.plan.epsilon)
        trials = [trial for trial in self._blocks.trials if trial.block in of.blocks]
        return standing_of(trials, of.blocks, (arm.against or "", arm.name), self._looks, margins)

    def _update(self, number: int, changed: RoundRecord, plans: Sequence[PlanRecord]) -> None:
        rounds = [changed if index == number else of for index, of in enumerate(self.plan.rounds)]
        validation = self.plan.model_copy(update={"rounds": rounds})
        changes = {"plans": list(plans), "validation": validation}
        self.store.update_manifest(self.store.manifest.model_copy(update=changes))

    @property
    def _looks(self) -> LooksRecord:
        return sealed_looks(self.store)

    def _arm(self, cell_id: str, arm: ArmRecord) -> Arm:
        sweep = self.store.manifest.sweep
        return Arm.of(arm.name, self._cells[cell_id], sweep, self.zygotes[self._process(arm)], arm.plant)

    def _left(self) -> int:
        return sum(
            len(of.arms)
            for of in self.plan.rounds
            for block in of.blocks
            if not self._blocks.complete(block, _pairs(of))
        )


def validate(
    settings: ValidateSettings, results: Path, command: Sequence[str] = (), progress: Progress | None = None
) -> Path:
    """Measure a new validation; returns its folder.

    Raises UsageError when a user's own model cannot be loaded or a device takes one trial at a time (nothing is then
    left), StorageError, HarnessError when a cell cannot be validated since it fails, Interrupted; each with how to go
    on.
    """
    must_live_together(settings.cells, only_engine_of(settings.sweep))
    plan, seed, looks = settings.plan(), settings.sweep.seed, settings.ab.planned()
    manifest = new_manifest(
        "validation",
        command,
        sweep=settings.sweep,
        cells=list(settings.cells),
        plans=[_sealed(seed, of, of.blocks, looks) for of in plan.rounds],
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


def _sealed(seed: int, of: RoundRecord, blocks: Sequence[int], looks: LooksRecord | None = None) -> PlanRecord:
    names = [arm.name for arm in of.arms]
    return PlanRecord.sealed(seed, 1, [[start_order(seed, block, names)] for block in blocks], blocks[0], looks)


KIND = ValidationRun
