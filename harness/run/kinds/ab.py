"""`ab`: two sides measured alive together, block after block, by a plan that is sealed before it runs.

It is looked at after numbers of blocks, and by boundaries, that are written down and sealed before the first of
them (`docs/protocol.md#how-many-blocks`), and never in between.
"""

import contextlib
import functools
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness.analysis.comparison.standing import Standing, standing_of
from harness.analysis.estimates.verdict import Margins
from harness.plan.estimate import estimate
from harness.record.manifest import ComparisonRecord, LooksRecord, PlanRecord, RunManifest
from harness.record.reading import Run, load_run
from harness.record.store import RunStore
from harness.record.trial import PATIENCE, is_hopeless
from harness.run.kinds.arms import ArmBlocks, start_order
from harness.run.kinds.base import Arm, TrialRun
from harness.run.kinds.decision import AbSettings, sealed_looks
from harness.run.kinds.sides import (
    SIDE_NAMES,
    Side,
    pythons_of,
    side_records,
    side_remarks,
    side_zygotes,
    sides_of_record,
    with_versions,
)
from harness.run.process.renewal import packages_of
from harness.run.process.zygote import Zygote
from harness.run.progress import Progress, Quiet
from harness.run.runner import begin, new_manifest
from harness.spec.work import Cell


class AbRun(TrialRun):
    """Runs what is missing of an `ab` run's plans. Without `sides` it goes on with those of the record."""

    name = "ab"

    def __init__(self, store: RunStore, listener: Progress, sides: Sequence[Side] = ()) -> None:
        super().__init__(store, listener)
        self._sides = sides
        self._set_out = store.manifest.part(ComparisonRecord)
        self._arms: list[Arm] = []
        self._blocks = ArmBlocks.of(self)
        self._began = time.monotonic()
        self._ran = 0
        """Blocks of this sitting."""

    def cells_from_here(self) -> Sequence[Cell]:
        """Of the sides without a revision."""
        here = {side.cell_id for side in self.store.manifest.part(ComparisonRecord).sides if side.commit is None}
        return [cell for cell in self.store.manifest.cells if cell.cell_id in here]

    def check(self) -> None:
        """The interpreters and the commits are those that the run was begun with, and it has looks."""
        sealed_looks(self.store)
        self._sides = sides_of_record(self.store.manifest)

    def check_versions(self) -> None:
        """Each side's own process tells its versions once it is there, see `ready`."""

    @contextlib.contextmanager
    def environments(self) -> Iterator[Mapping[str, Zygote]]:
        """One process for each distinct environment of a side, by the side's name."""
        with side_zygotes(self._sides, pythons_of(self._sides)) as zygotes:
            yield zygotes

    def arms(self) -> Sequence[Arm]:
        """The two sides."""
        self._arms = [
            Arm.of(side.name, side.cell, side.sweep, self.zygotes[side.name], side.plant) for side in self._sides
        ]
        return self._arms

    def ready(self) -> None:
        """Write down the versions of both sides, which are to be the same in later sittings, and name newer ones than
        their engines were tested with."""
        manifest = with_versions(self.store.manifest, self.zygotes)
        if manifest != self.store.manifest:
            self.store.update_manifest(manifest)
        for side in self._sides:
            self._warn_of_newer({side.engine: packages_of(self.zygotes[side.name])})

    def announce(self) -> None:
        """What is left up to the next look, and about how long that takes. The limit on time begins here."""
        self._began = time.monotonic()
        sweep, left = self.store.manifest.sweep, self._left()
        whole = estimate(sweep, [arm.request.cell for arm in self._arms])
        seconds = whole.seconds / sweep.trials * len(left)
        self.progress.started(self.store.manifest.run_id, len(SIDE_NAMES) * len(left), seconds, whole.unknown)

    def execute(self) -> None:
        """Measure up to one look after the other, until one decides or it makes no sense to go on."""
        after = self._looks.after
        for number, blocks in enumerate(after, start=1):
            if not self._plan_up_to(blocks):
                return
            self.progress.look(number, len(after), blocks)
            if not self._run() or self._standing().decided:
                return

    def _plan_up_to(self, after: int) -> bool:
        """Seal the blocks up to a look, unless they are; False when the time left has no room for them."""
        manifest = self.store.manifest
        planned = sum(len(plan.blocks) for plan in manifest.plans)
        if planned >= after:
            return True
        if not self._affordable(after - planned):
            return False
        plans = [*manifest.plans, plan_blocks(manifest.plans[0].seed, range(planned, after))]
        self.store.update_manifest(manifest.model_copy(update={"plans": plans}))
        self.progress.more(len(SIDE_NAMES) * (after - planned))
        return True

    def _run(self) -> bool:
        """Run the blocks that are left; False when it makes no sense to go on, or the time is over."""
        planned = sum(len(plan.blocks) for plan in self.store.manifest.plans)
        left = self._left()
        for number, block in enumerate(left):
            if self._out_of_time(block):
                return False
            self._blocks.renew(self._arms, at_look=number == 0)
            self.progress.block(block, planned, len(SIDE_NAMES))
            ended = self._blocks.run(block, self._arms, [SIDE_NAMES])
            self._ran += 1
            if any(map(is_hopeless, ended)):
                return False
            if self._blocks.failed_in_a_row >= PATIENCE:
                self.gave_up = not self._standing().ended
                return False
        return True

    def _left(self) -> list[int]:
        plans = self.store.manifest.plans
        numbers = [plan.first_block + offset for plan in plans for offset in range(len(plan.blocks))]
        return [number for number in numbers if not self._blocks.complete(number, [SIDE_NAMES])]

    def _out_of_time(self, block: int) -> bool:
        """The limit on time, looked at between blocks. The first runs in any case."""
        limit = self._set_out.time_s
        return limit is not None and block >= 1 and time.monotonic() - self._began >= limit

    @property
    def _looks(self) -> LooksRecord:
        return sealed_looks(self.store)

    def _standing(self) -> Standing:
        margins = Margins(self._set_out.delta, self._set_out.epsilon)
        return standing_of(self.trials, range(self._looks.after[-1]), SIDE_NAMES, self._looks, margins)

    def _affordable(self, blocks: int) -> bool:
        """Whether the time left has room for so many blocks at the pace of those that ran in this sitting."""
        if self._set_out.time_s is None or not self._ran:
            return True
        spent = time.monotonic() - self._began
        return blocks * spent / self._ran <= self._set_out.time_s - spent


def plan_blocks(seed: int, numbers: range, looks: LooksRecord | None = None) -> PlanRecord:
    """Blocks of both sides with these numbers, the order of their start drawn from the seed, sealed."""
    blocks = [[start_order(seed, number, SIDE_NAMES)] for number in numbers]
    return PlanRecord.sealed(seed, 1, blocks, numbers.start, looks)


def decide(
    sides: tuple[Side, Side],
    settings: AbSettings,
    results: Path,
    command: Sequence[str] = (),
    progress: Progress | None = None,
) -> Run:
    """Measure two sides against each other, record a run under `results`, and read it back.

    `harness.analysis.comparison.ab.comparison_of_ab` gives the verdict. Raises UsageError when a side cannot be made
    (nothing is then left), StorageError when `results` cannot be used, Interrupted, with how to go on.
    """
    return decide_as_planned(sides, planned_decision(sides, settings, command), results, progress)


def decide_as_planned(
    sides: tuple[Side, Side], manifest: RunManifest, results: Path, progress: Progress | None = None
) -> Run:
    """The same by the manifest that `planned_decision` made, so that the run's id is known before it begins."""
    return load_run(begin(functools.partial(AbRun, sides=sides), results, manifest, progress or Quiet()))


def planned_decision(sides: tuple[Side, Side], settings: AbSettings, command: Sequence[str]) -> RunManifest:
    """The manifest of a decision that is to be made."""
    sweep = sides[0].sweep
    cells = {side.cell.cell_id: side.cell for side in sides}
    return new_manifest(
        "ab" if sweep.name == "sweep" else sweep.name,
        command,
        sweep=sweep,
        cells=list(cells.values()),
        plans=[plan_blocks(sweep.seed, range(settings.looks[0]), settings.planned())],
        comparison=ComparisonRecord(
            sides=side_records(sides),
            delta=settings.margins.delta,
            epsilon=settings.margins.epsilon,
            margins_source=settings.margins.source,
            max_blocks=settings.max_blocks,
            time_s=settings.time_s,
            remarks=side_remarks(sides),
        ),
    )


KIND = AbRun
