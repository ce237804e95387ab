"""`ab`: two sides measured alive together, block after block, by a plan that is sealed before it runs.

Stein's two stages (`docs/protocol.md#how-many-trials`): a pilot gives the spread, the spread gives the number
of blocks, and that number is written down before the second stage begins. Nothing here looks at which
side is ahead.
"""

import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from harness.analysis.comparison.pairs import blocks_wanted, pairs_of
from harness.errors import UsageError
from harness.plan.estimate import estimate
from harness.record.manifest import ComparisonRecord, PlanRecord, RunManifest
from harness.record.reading import Run, load_run
from harness.record.store import RunStore
from harness.record.trial import TrialRecord
from harness.run.ending import end_recorded
from harness.run.kinds.arms import PATIENCE, Arm, ArmBlocks, is_hopeless, start_order, taken_back_when_empty
from harness.run.kinds.decision import AbSettings
from harness.run.kinds.measure import PREFLIGHT_S, check_machine, data_dir_of, new_manifest
from harness.run.kinds.sides import Side, check_versions, side_records, side_remarks, side_zygotes, sides_of_record
from harness.run.launchers import open_launchers
from harness.run.process.preflight import preflight
from harness.run.process.zygote import Zygote
from harness.run.progress.base import Progress, Quiet
from harness.run.request import request_for

NAMES = ("a", "b")


class AbRun:
    """Runs what is missing of an `ab` run's plans."""

    def __init__(
        self, store: RunStore, sides: Sequence[Side], zygotes: Mapping[str, Zygote], progress: Progress
    ) -> None:
        assert store.manifest.comparison is not None
        self.store = store
        self._set_out = store.manifest.comparison
        self._progress = progress
        self._arms = [
            Arm(side.name, request_for(side.cell, side.sweep, data_dir_of(side.sweep), side.plant), zygotes[side.name],
                side.sweep.timeout)
            for side in sides
        ]  # fmt: skip
        shared = sides[0].sweep
        self._blocks = ArmBlocks(
            store, progress, shared.windows, shared.max_warmup, shared.seed, list(store.earlier_trials)
        )
        self._began = time.monotonic()
        self._gave_up = False
        """Sides died block after block. What is left may be measured all the same, once the reason is gone."""

    @property
    def trials(self) -> list[TrialRecord]:
        """All records so far."""
        return self._blocks.trials

    def run(self) -> None:
        """Run to the end; raises Interrupted when the person asked to stop, with everything kept."""
        plans = self.store.manifest.plans
        sweep = self.store.manifest.sweep
        each = estimate(sweep, [arm.request.cell for arm in self._arms]).seconds / sweep.trials
        self._progress.started(
            self.store.manifest.run_id, len(NAMES) * len(self._left(plans)), each * len(self._left(plans))
        )
        with end_recorded(self.store, self._progress, self._go_on, lambda: self._gave_up), self._blocks.interrupts:
            self._blocks.prepare(self._arms)
            if self._run_stage(plans) and len(plans) == 1 and (second := self._second_stage()):
                self.store.update_manifest(self.store.manifest.model_copy(update={"plans": [*plans, second]}))
                self._progress.more(len(NAMES) * len(second.blocks))
                self._run_stage(self.store.manifest.plans)

    def _go_on(self) -> str:
        go_on = f"go on with: python -m harness ab --resume {shlex.quote(str(self.store.path))}"
        return f"{len(self.trials)} trials are kept in {self.store.path}; {go_on}"

    def _run_stage(self, plans: Sequence[PlanRecord]) -> bool:
        """Run the blocks that are left; False when it makes no sense to go on, or the time is over."""
        left = self._left(plans)
        for block in left:
            if self._out_of_time(block):
                return False
            self._progress.block(block, sum(len(plan.blocks) for plan in plans), len(NAMES))
            ended = self._blocks.run(block, self._arms, [NAMES])
            if any(map(is_hopeless, ended)):
                return False
            if self._blocks.failed_in_a_row >= PATIENCE:
                self._gave_up = len(plans) == 1 or bool(self._left(plans))
                return False
        return True

    def _left(self, plans: Sequence[PlanRecord]) -> list[int]:
        numbers = [plan.first_block + offset for plan in plans for offset in range(len(plan.blocks))]
        return [number for number in numbers if not self._blocks.complete(number, [NAMES])]

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
    blocks = [[start_order(seed, number, NAMES)] for number in range(first, first + count)]
    return PlanRecord.sealed(seed, stage, blocks, first)


def decide(
    sides: tuple[Side, Side],
    settings: AbSettings,
    results: Path,
    command: Sequence[str] = (),
    progress: Progress | None = None,
) -> Run:
    """Measure two sides against each other, record a run under `results`, and read it back.

    `harness.analysis.comparison_of_ab` gives the verdict. Raises UsageError when a side cannot be made
    (nothing is then left), StorageError when `results` cannot be used, Interrupted, with how to go on.
    """
    with side_zygotes(sides) as zygotes:
        for side in sides:
            request = request_for(side.cell, side.sweep, data_dir_of(side.sweep))
            preflight(zygotes[side.name], [request], min(PREFLIGHT_S, side.sweep.timeout))
        _open_launchers(sides, zygotes)
        manifest = _manifest(sides, settings, zygotes, command)
        with RunStore.create(results, manifest) as store, taken_back_when_empty(store):
            AbRun(store, sides, zygotes, progress or Quiet()).run()
    return load_run(store.path)


def resume_ab(path: Path, progress: Progress | None = None) -> Run:
    """Run what an `ab` run still misses, its sides made anew from the record; UsageError when it is none."""
    with RunStore.open_for_resume(path) as store:
        if store.manifest.comparison is None:
            faults = store.manifest.faults is not None
            verb = "faults" if faults else "sweep" if store.manifest.validation is None else "validate"
            way = f"python -m harness {verb} --resume {shlex.quote(str(path))}"
            raise UsageError(f"--resume: '{path.name}' is no ab run; go on with: {way}")
        check_machine(store.manifest)
        sides = sides_of_record(store.manifest)
        with side_zygotes(sides) as zygotes:
            check_versions(store.manifest, zygotes)
            _open_launchers(sides, zygotes)
            AbRun(store, sides, zygotes, progress or Quiet()).run()
    return load_run(path)


def _open_launchers(sides: Sequence[Side], zygotes: Mapping[str, Zygote]) -> None:
    """What all trials of both sides will share, asked for at once where one process forks both."""
    for zygote in dict.fromkeys(zygotes.values()):
        of_it = [side for side in sides if zygotes[side.name] is zygote]
        open_launchers([request_for(side.cell, side.sweep, data_dir_of(side.sweep)) for side in of_it], zygote)


def _manifest(
    sides: tuple[Side, Side], settings: AbSettings, zygotes: Mapping[str, Zygote], command: Sequence[str]
) -> RunManifest:
    sweep = sides[0].sweep
    cells = {side.cell.cell_id: side.cell for side in sides}
    return new_manifest(
        "ab" if sweep.name == "sweep" else sweep.name,
        command,
        sweep=sweep,
        cells=list(cells.values()),
        plans=[plan_blocks(sweep.seed, 1, settings.pilot_blocks, 0)],
        comparison=ComparisonRecord(
            sides=side_records(sides, zygotes),
            delta=settings.margins.delta,
            epsilon=settings.margins.epsilon,
            margins_source=settings.margins.source,
            half_width=settings.target,
            max_blocks=settings.max_blocks,
            time_s=settings.time_s,
            remarks=side_remarks(sides),
        ),
    )
