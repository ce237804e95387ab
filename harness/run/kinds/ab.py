"""`ab`: two sides measured alive together, block after block, by a plan that is sealed before it runs.

Stein's two stages (`docs/protocol.md#how-many-trials`): a pilot gives the spread, the spread gives the number
of blocks, and that number is written down before the second stage begins. Nothing here looks at which
side is ahead.
"""

import contextlib
import functools
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from harness.analysis.comparison.pairs import blocks_wanted, pairs_of
from harness.plan.estimate import estimate
from harness.record.manifest import ComparisonRecord, PlanRecord, RunManifest
from harness.record.reading import Run, load_run
from harness.record.store import RunStore
from harness.run.kinds.arms import PATIENCE, ArmBlocks, is_hopeless, start_order
from harness.run.kinds.base import Arm, TrialRun
from harness.run.kinds.decision import AbSettings
from harness.run.kinds.sides import (
    SIDE_NAMES,
    Side,
    side_records,
    side_remarks,
    side_zygotes,
    sides_of_record,
    with_versions,
)
from harness.run.process.zygote import Zygote
from harness.run.progress.base import Progress, Quiet
from harness.run.runner import begin, check_machine, new_manifest


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

    def check(self) -> None:
        """The machine, the interpreters and the commits are those that the run was begun with."""
        check_machine(self.store.manifest)
        self._sides = sides_of_record(self.store.manifest)

    @contextlib.contextmanager
    def environments(self) -> Iterator[Mapping[str, Zygote]]:
        """One process for each distinct environment of a side, by the side's name."""
        with side_zygotes(self._sides) as zygotes:
            yield zygotes

    def arms(self) -> Sequence[Arm]:
        """The two sides."""
        self._arms = [
            Arm.of(side.name, side.cell, side.sweep, self.zygotes[side.name], side.plant) for side in self._sides
        ]
        return self._arms

    def ready(self) -> None:
        """Write down the versions of both sides, which are to be the same in later sittings."""
        manifest = with_versions(self.store.manifest, self.zygotes)
        if manifest != self.store.manifest:
            self.store.update_manifest(manifest)

    def announce(self) -> None:
        """What is left of the plans, and about how long that takes. The limit on time begins here."""
        self._began = time.monotonic()
        sweep, left = self.store.manifest.sweep, self._left(self.store.manifest.plans)
        each = estimate(sweep, [arm.request.cell for arm in self._arms]).seconds / sweep.trials
        self.progress.started(self.store.manifest.run_id, len(SIDE_NAMES) * len(left), each * len(left))

    def execute(self) -> None:
        """Run both stages, unless it makes no sense to go on or the time is over."""
        plans = self.store.manifest.plans
        if self._run_stage(plans) and len(plans) == 1 and (second := self._second_stage()):
            self.store.update_manifest(self.store.manifest.model_copy(update={"plans": [*plans, second]}))
            self.progress.more(len(SIDE_NAMES) * len(second.blocks))
            self._run_stage(self.store.manifest.plans)

    def _run_stage(self, plans: Sequence[PlanRecord]) -> bool:
        """Run the blocks that are left; False when it makes no sense to go on, or the time is over."""
        left = self._left(plans)
        for block in left:
            if self._out_of_time(block):
                return False
            self.progress.block(block, sum(len(plan.blocks) for plan in plans), len(SIDE_NAMES))
            ended = self._blocks.run(block, self._arms, [SIDE_NAMES])
            if any(map(is_hopeless, ended)):
                return False
            if self._blocks.failed_in_a_row >= PATIENCE:
                self.gave_up = len(plans) == 1 or bool(self._left(plans))
                return False
        return True

    def _left(self, plans: Sequence[PlanRecord]) -> list[int]:
        numbers = [plan.first_block + offset for plan in plans for offset in range(len(plan.blocks))]
        return [number for number in numbers if not self._blocks.complete(number, [SIDE_NAMES])]

    def _out_of_time(self, block: int) -> bool:
        """The limit on time, looked at between blocks. The first two run in any case: one pair has no spread."""
        limit = self._set_out.time_s
        return limit is not None and block >= 2 and time.monotonic() - self._began >= limit

    def _second_stage(self) -> PlanRecord | None:
        """Stein's second stage from the pilot's spread, within the caps; None when there is none to run."""
        first = self.store.manifest.plans[0]
        values = [pair.wall for pair in pairs_of(self.trials)]
        if len(values) < 2:
            return None
        wanted = blocks_wanted(values, self._set_out.half_width, self._set_out.max_blocks) - len(values)
        extra = max(0, min(wanted, self._set_out.max_blocks - len(first.blocks), self._affordable(len(first.blocks))))
        return plan_blocks(first.seed, 2, extra, len(first.blocks)) if extra else None

    def _affordable(self, done: int) -> int:
        """Blocks that the time left has room for, at the pace of the first stage."""
        if self._set_out.time_s is None:
            return self._set_out.max_blocks
        spent = time.monotonic() - self._began
        return int((self._set_out.time_s - spent) // (spent / done))


def plan_blocks(seed: int, stage: Literal[1, 2], count: int, first: int) -> PlanRecord:
    """`count` blocks of both sides from number `first` on, the order of their start drawn from the seed, sealed."""
    blocks = [[start_order(seed, number, SIDE_NAMES)] for number in range(first, first + count)]
    return PlanRecord.sealed(seed, stage, blocks, first)


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
    make = functools.partial(AbRun, sides=sides)
    return load_run(begin(make, results, _manifest(sides, settings, command), progress or Quiet()))


def _manifest(sides: tuple[Side, Side], settings: AbSettings, command: Sequence[str]) -> RunManifest:
    sweep = sides[0].sweep
    cells = {side.cell.cell_id: side.cell for side in sides}
    return new_manifest(
        "ab" if sweep.name == "sweep" else sweep.name,
        command,
        sweep=sweep,
        cells=list(cells.values()),
        plans=[plan_blocks(sweep.seed, 1, settings.pilot_blocks, 0)],
        comparison=ComparisonRecord(
            sides=side_records(sides),
            delta=settings.margins.delta,
            epsilon=settings.margins.epsilon,
            margins_source=settings.margins.source,
            half_width=settings.target,
            max_blocks=settings.max_blocks,
            time_s=settings.time_s,
            remarks=side_remarks(sides),
        ),
    )


KIND = AbRun
