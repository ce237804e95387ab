"""A sweep from its plan to its last record."""

import hashlib
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from harness.analysis.estimates.intervals import stein_trials
from harness.environment import usable_cores
from harness.errors import UsageError
from harness.plan import Estimate, beside_bases, estimate, make_plan, missing_groups, part_of
from harness.record.manifest import PlanRecord
from harness.record.store import RunStore
from harness.record.trial import TrialRecord
from harness.run.data import data_key, unavailable
from harness.run.kinds.base import Arm, TrialRun, must_import_in_trials
from harness.run.kinds.pilot import log_deviation
from harness.run.process.hosts import note_hosts
from harness.run.progress import Progress
from harness.run.turns.cards import watch_of
from harness.run.turns.group import TurnGroup, TurnRules
from harness.run.turns.live import LiveTrial, Slot
from harness.run.turns.steps import StepCounts
from harness.spec.engines import engine_for
from harness.spec.sweep import Sweep
from harness.spec.work import Cell
from harness.trial.engines import DEFAULT, devices_of

MOST_TOGETHER = 8
"""Trials that are set up at the same time, on however many cores: each compiles, and takes memory while it does."""
FEWEST_BLOCKS = 2
"""Blocks that no limit on time takes away: one has no interval."""
FINAL = {"unsupported"}
"""Statuses that another block would only repeat."""
RETRIED = {"crashed", "timeout", "out_of_memory"}
"""Statuses that another try may change, since what else the machine did, or a host, may have been the reason."""


class SweepRun(TrialRun):
    """Runs what is missing of the plans in the manifest, appending a record as each trial ends."""

    name = "sweep"
    may_reopen = True
    goes_on_without_some = True

    def __init__(self, store: RunStore, listener: Progress) -> None:
        super().__init__(store, listener)
        self.sweep = store.manifest.sweep
        self.cells = {cell.cell_id: cell for cell in store.manifest.cells}
        self._steps = StepCounts(self.trials)
        self._earlier = len(self.trials)
        self._unsupported = {t.cell_id: t.reason or "" for t in self.trials if is_final(t)}
        self._arms: dict[str, Arm] = {}
        self._over = store.manifest.status == "finished"
        """Whether it was: what is to run again is then among the blocks that there are."""
        self._began = time.monotonic()
        self._block_s = expected(self.sweep, store.manifest.cells).seconds / self.sweep.trials
        """What the last block took; before the first of this sitting, what one is thought to take."""

    @property
    def left(self) -> int:
        """Planned trials that are still to run."""
        return sum(len(group) for group in self._missing(self._done_by_block(), self.store.manifest.plans))

    @property
    def complete(self) -> bool:
        """Whether nothing is left to run or to plan."""
        return not self.left and self._another() is None

    def arms(self) -> Sequence[Arm]:
        """A cell each."""
        self._arms = {
            cell_id: Arm.of(cell_id, cell, self.sweep, self.zygotes[engine_for(cell, self.sweep)])
            for cell_id, cell in self.cells.items()
        }
        return list(self._arms.values())

    def announce(self) -> None:
        """What is planned, what is left of it, and about how long that takes."""
        whole = expected(self.sweep, self.store.manifest.cells)
        self.progress.plan(self.store.manifest, self.trials)
        seconds = whole.seconds * self.left / max(1, whole.trials)
        self.progress.started(self.store.manifest.run_id, self.left, seconds, whole.unknown)

    def without_data(self, arm: Arm, task: LiveTrial) -> None:
        """The cells that want the data are unsupported with the reason, and the sweep goes on.

        UsageError where there are no such data.
        """
        reason = unavailable(arm.request, task.reason)
        if task.status == "crashed" and task.outcome is not None:
            raise UsageError(reason)
        wanted = data_key(arm.request)
        cells = [self.cells[cell_id] for cell_id, other in self._arms.items() if data_key(other.request) == wanted]
        for order, cell in enumerate(cells):
            if cell.cell_id not in self._unsupported:
                failed = task.failed_before_start(cell, order, reason)
                self._keep(failed)
                self.progress.ended(failed)

    def execute(self) -> None:
        """Run the plans, then the blocks that there is time for, or the second stage that the spread asks for."""
        for plan in self.store.manifest.plans:
            self._run_plan(plan)
        while more := self._another():
            plans = [*self.store.manifest.plans, more]
            self.store.update_manifest(self.store.manifest.model_copy(update={"plans": plans}))
            self.progress.more(self.left)
            self._run_plan(more)

    def _run_plan(self, plan: PlanRecord) -> None:
        for offset, planned in enumerate(plan.blocks):
            block, began = plan.first_block + offset, time.monotonic()
            done = self._done_in(block)
            if all(zygote.due for zygote in self.zygotes.values()):
                self.renew_zygotes()
            for planned_group in missing_groups(planned, done, self.cells, self._unsupported):
                # What an earlier group of this block found unsupported may be a base case of this one too.
                group = [cell_id for cell_id in planned_group if cell_id not in self._unsupported]
                self.progress.skipped(len(planned_group) - len(group))
                if group:
                    self.progress.group([self.cells[cell_id] for cell_id in group], self._later(block, group))
                    self.progress.block(block, self._blocks, len(group))
                    self._run_group(block, group)
            if not done:  # a part of a block does not say what a whole one takes
                self._block_s = time.monotonic() - began
            if block == 0 and not any(trial.block for trial in self.trials):  # later a few of its cells are tried again
                self._steps.choose_again((trial for trial in self.trials if trial.block == 0), self.sweep.window)

    def _run_group(self, block: int, group: Sequence[str]) -> None:
        """Run a group; what memory had no room for, or what ran out of it in company, runs again by itself."""
        waiting = list(group)
        crowded: list[str] = []
        part = 0
        while waiting:
            trials = self._live_trials(block, waiting)
            left = self._group(trials, block, part).run()
            short = [t.cell.cell_id for t in trials if t.status == "out_of_memory" and t.beside_others]
            crowded += [cell_id for cell_id in short if cell_id not in self._too_large()]
            waiting = beside_bases([trial.cell.cell_id for trial in left], self.cells, self._unsupported)
            self.progress.more(len(waiting) - len(left))
            part += 1
        self.progress.more(len(crowded))
        for cell_id in crowded:
            self._group(self._live_trials(block, [cell_id]), block, part).run()
            part += 1

    def _too_large(self) -> set[str]:
        """Cells that have run out of memory by themselves: company was not the reason. What others held of it in an
        earlier sitting may be free by now."""
        return {t.cell_id for t in self._standing if t.status == "out_of_memory" and t.interleaving != "turns"}

    def _live_trials(self, block: int, group: Sequence[str]) -> list[LiveTrial]:
        name = hashlib.sha256("/".join([str(len(self.trials)), *group]).encode()).hexdigest()[:8]
        alone = "none" if len(self.cells) == 1 else "blocks"
        return [
            LiveTrial(
                cell=self.cells[cell_id],
                slot=Slot(
                    self.store.manifest.run_id,
                    block,
                    f"b{block}-{name}",
                    order,
                    self.attempt(block, cell_id),
                    "turns" if len(group) > 1 else alone,  # type: ignore[arg-type]
                ),
                zygote=self._arms[cell_id].zygote,
                request=self.traced(block, self._arms[cell_id].request),
                timeout_s=self.sweep.timeout,
                interrupts=self.interrupts,
            )
            for order, cell_id in enumerate(group)
        ]

    def _group(self, trials: Sequence[LiveTrial], block: int, part: int) -> TurnGroup:
        """As many trials are set up at the same time as there are cores; of several processes, one trial.

        On accelerators too: kernels that are chosen by their times, in company, would be kept for the whole trial.
        """
        devices = devices_of(self.sweep.asked("engine"))
        shapes = [trial.cell.shape for trial in trials]
        of_cores = all(shape.device in devices and devices[shape.device].on_processors for shape in shapes)
        alone = not of_cores or any(shape.workers + shape.servers > 1 for shape in shapes)
        together = 1 if alone else min(MOST_TOGETHER, usable_cores())
        rules = TurnRules(self.sweep.windows, self.sweep.max_warmup, hash((self.sweep.seed, block, part)), together)
        cards = watch_of((trial.cell for trial in trials), *self.sweep.asked("engine"))
        return TurnGroup(trials, rules, self._keep, self.progress, self._steps.agree, cards)

    def _keep(self, record: TrialRecord) -> None:
        note_hosts(self.store, record, self._arms[record.cell_id].zygote.hosts)
        self.store.append(record)
        self.trials.append(record)
        if is_final(record) and record.cell_id not in self._unsupported:
            self._unsupported[record.cell_id] = record.reason or ""
            self.progress.skipped(self._still_planned(record.cell_id))

    def _still_planned(self, cell_id: str) -> int:
        """Trials of a cell in blocks that have none yet."""
        return sum(
            group.count(cell_id)
            for plan in self.store.manifest.plans
            for offset, block in enumerate(plan.blocks)
            if cell_id not in self._done_in(plan.first_block + offset)
            for group in block
        )

    def _done_in(self, block: int) -> set[str]:
        return {t.cell_id for t in self._done() if t.block == block}

    def _done(self) -> list[TrialRecord]:
        """Trials that are not to be run again."""
        return [trial for trial in self._standing if trial.status != "interrupted"]

    @property
    def _standing(self) -> list[TrialRecord]:
        """All but those of earlier sittings that may end otherwise now."""
        earlier = (trial for trial in self.trials[: self._earlier] if not self._runs_again(trial))
        return [*earlier, *self.trials[self._earlier :]]

    def _runs_again(self, trial: TrialRecord) -> bool:
        """Whether a trial of an earlier sitting may end otherwise now, as one of which a later try was interrupted."""
        if trial.status not in RETRIED:
            return trial.may_pass
        return self.retry or any(
            later.status == "interrupted" and later.attempt > trial.attempt
            for later in self.trials
            if (later.cell_id, later.block) == (trial.cell_id, trial.block)
        )

    def _later(self, block: int, group: Sequence[str]) -> list[list[Cell]]:
        """The groups after `group` of `block`, with those of a second stage as it would be planned by now."""
        done = self._done_by_block()
        done[block] |= set(group)
        second = self._second_stage()
        plans = [*self.store.manifest.plans, *self._in_time(self._blocks - block), *([second] if second else [])]
        return [[self.cells[cell_id] for cell_id in left] for left in self._missing(done, plans)]

    def _done_by_block(self) -> defaultdict[int, set[str]]:
        done: defaultdict[int, set[str]] = defaultdict(set)
        for trial in self._done():
            done[trial.block].add(trial.cell_id)
        return done

    def _missing(self, done: Mapping[int, set[str]], plans: Sequence[PlanRecord]) -> list[list[str]]:
        """The groups of `plans` that are still to run, once what is `done` of each block is."""
        return [
            left
            for plan in plans
            for offset, planned in enumerate(plan.blocks)
            for left in missing_groups(planned, done[plan.first_block + offset], self.cells, self._unsupported)
        ]

    @property
    def _blocks(self) -> int:
        """Blocks that are planned."""
        return sum(len(plan.blocks) for plan in self.store.manifest.plans)

    def _another(self) -> PlanRecord | None:
        """What to plan once all that is planned has run; None at the end."""
        return None if self._over else next(iter(self._in_time()), None) or self._second_stage()

    def _in_time(self, ahead: int = 0) -> list[PlanRecord]:
        """A plan for each block beyond the planned ones, of which `ahead` are to run, that should end in time."""
        if not self.sweep.time:
            return []
        left_s = self._began + self.sweep.time - time.monotonic()
        room = max(0, int(left_s / self._block_s) - ahead)
        whole = all_blocks(self.sweep, self.store.manifest.cells)
        return [part_of(whole, number, number + 1) for number in range(self._blocks, self.sweep.trials)][:room]

    def _second_stage(self) -> PlanRecord | None:
        """Stein's second stage, from the first stage's variance alone; None when there is none to run."""
        plans = self.store.manifest.plans
        if not self.sweep.half_width or any(plan.stage == 2 for plan in plans):
            return None
        extra = {}
        for cell_id in self.cells:
            deviation, pilot = log_deviation(self.trials, cell_id)
            if deviation is not None and pilot >= 2:
                wanted = min(self.sweep.max_trials, stein_trials(deviation, pilot, self.sweep.half_width))
                extra[cell_id] = max(0, wanted - pilot)
        if not any(extra.values()):
            return None
        return make_plan(list(self.cells.values()), extra, self.sweep.seed, live_limits(self.sweep), 2, self._blocks)


def all_blocks(sweep: Sweep, cells: Sequence[Cell]) -> PlanRecord:
    """Every block that a sweep of `cells` asks for."""
    return make_plan(cells, sweep.trials, sweep.seed, live_limits(sweep))


def first_plan(sweep: Sweep, cells: Sequence[Cell]) -> PlanRecord:
    """What is planned before anything ran: every block, or those that a limit on time does not take away."""
    whole = all_blocks(sweep, cells)
    return part_of(whole, 0, FEWEST_BLOCKS) if sweep.time else whole


def expected(sweep: Sweep, cells: Sequence[Cell]) -> Estimate:
    """How long it will take."""
    whole = estimate(sweep, cells, must_import_in_trials(cells, DEFAULT))
    kinds = devices_of(sweep.asked("engine"))
    devices = sorted({cell.shape.device for cell in cells} & kinds.keys())
    starts = [f"starting on {device}" for device in devices if not kinds[device].on_processors]
    return replace(whole, unknown=" and ".join(filter(None, (*starts, whole.unknown))))


def is_final(trial: TrialRecord) -> bool:
    """Whether another block, or the same one resumed, would only repeat how a trial ended."""
    return trial.status in FINAL and not trial.may_pass


def live_limits(sweep: Sweep) -> dict[str, int]:
    """The largest group on each device kind; a `live_trials` of the sweep comes before the kind's own, unless that is
    1: such a device one process at a time may hold."""
    limits = {}
    for name, traits in devices_of(sweep.asked("engine")).items():
        limit = 1 if traits.live_trials == 1 else sweep.live_trials or traits.live_trials
        if limit is not None:
            limits[name] = limit
    return limits


KIND = SweepRun
