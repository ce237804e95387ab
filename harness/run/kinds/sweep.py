"""A sweep from its plan to its last record."""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.analysis.estimates.intervals import stein_trials
from harness.environment import Facts
from harness.errors import Interrupted
from harness.plan import beside_bases, make_plan, missing_groups
from harness.protocol.messages import Request, TraceRequest
from harness.record.manifest import PlanRecord
from harness.record.store import RunStore
from harness.record.trial import TrialRecord
from harness.run.interrupts import Interrupts
from harness.run.kinds.pilot import log_deviation
from harness.run.launchers import launchers
from harness.run.process.hosts import note_hosts
from harness.run.process.zygote import Zygote
from harness.run.progress.base import Progress
from harness.run.request import request_for
from harness.run.turns.group import TurnGroup, TurnRules
from harness.run.turns.live import LiveTrial, Place
from harness.run.turns.steps import StepCounts
from harness.spec.catalogue import Catalogue
from harness.spec.cell import Cell
from harness.spec.sweep import Sweep

FINAL = {"unsupported"}
"""Statuses that another block would only repeat."""
PREPARE_LIMIT_S = 3600.0
"""Preparing a data set may download it."""


@dataclass
class SweepRun:
    """Runs what is missing of the plans in `store`'s manifest, appending a record as each trial ends."""

    store: RunStore
    sweep: Sweep
    catalogue: Catalogue
    progress: Progress
    data_dir: Path
    trials: list[TrialRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cells = {cell.cell_id: cell for cell in self.store.manifest.cells}
        self._interrupts = Interrupts()
        self._steps = StepCounts(self.trials)
        self._earlier = len(self.trials)
        self._hosts: Mapping[str, Facts] = {}
        self._unsupported = {t.cell_id: t.reason or "" for t in self.trials if is_final(t)}

    @property
    def left(self) -> int:
        """Planned trials that are still to run."""
        return self._left()

    @property
    def complete(self) -> bool:
        """Whether nothing is left to run or to plan."""
        return not self._left() and self._second_stage() is None

    def requests(self) -> list[Request]:
        """What the trial of each cell will be asked."""
        return [self._request(cell) for cell in self.cells.values()]

    def run(self, zygote: Zygote, estimate_s: float) -> None:
        """Run to the end; raises Interrupted when the person asked to stop, with everything kept."""
        self._hosts = zygote.hosts
        self.progress.plan(self.store.manifest, self.trials)
        self.progress.started(self.store.manifest.run_id, self._left(), estimate_s)
        try:
            with self._interrupts:
                self._run_plans(zygote)
        except (Interrupted, KeyboardInterrupt):
            self.store.end("interrupted")
            raise Interrupted("interrupted") from None
        finally:
            self.progress.finished()
        self.store.end("finished")

    def _run_plans(self, zygote: Zygote) -> None:
        self._prepare_data(zygote)
        for plan in self.store.manifest.plans:
            self._run_plan(zygote, plan)
        if plan_two := self._second_stage():
            plans = [*self.store.manifest.plans, plan_two]
            self.store.update_manifest(self.store.manifest.model_copy(update={"plans": plans}))
            self.progress.more(self._left())
            self._run_plan(zygote, plan_two)

    def _run_plan(self, zygote: Zygote, plan: PlanRecord) -> None:
        blocks = sum(len(p.blocks) for p in self.store.manifest.plans)
        for offset, planned in enumerate(plan.blocks):
            block = plan.first_block + offset
            for planned_group in missing_groups(planned, self._done_in(block), self.cells, self._unsupported):
                # What an earlier group of this block found unsupported may be a base case of this one too.
                group = [cell_id for cell_id in planned_group if cell_id not in self._unsupported]
                self.progress.skipped(len(planned_group) - len(group))
                if group:
                    self.progress.group([self.cells[cell_id] for cell_id in group], self._later(block, group))
                    self.progress.block(block, blocks, len(group))
                    self._run_group(zygote, block, group)

    def _run_group(self, zygote: Zygote, block: int, group: Sequence[str]) -> None:
        """Run a group; what memory had no room for, or what ran out of it in company, runs again by itself."""
        waiting = list(group)
        crowded: list[str] = []
        part = 0
        while waiting:
            trials = self._live_trials(zygote, block, waiting)
            before = len(self.trials)
            left = TurnGroup(trials, self._rules(block, part), self._keep, self.progress, self._steps.agree).run()
            if len(waiting) - len(left) > 1:
                crowded += [t.cell_id for t in self.trials[before:] if t.status == "out_of_memory"]
            waiting = beside_bases([trial.cell.cell_id for trial in left], self.cells, self._unsupported)
            self.progress.more(len(waiting) - len(left))
            part += 1
        self.progress.more(len(crowded))
        for cell_id in crowded:
            trials = self._live_trials(zygote, block, [cell_id])
            TurnGroup(trials, self._rules(block, part), self._keep, self.progress, self._steps.agree).run()
            part += 1

    def _live_trials(self, zygote: Zygote, block: int, group: Sequence[str]) -> list[LiveTrial]:
        name = hashlib.sha256("/".join([str(len(self.trials)), *group]).encode()).hexdigest()[:8]
        alone = "none" if len(self.cells) == 1 else "blocks"
        return [
            LiveTrial(
                cell=self.cells[cell_id],
                place=Place(
                    self.store.manifest.run_id, block, f"b{block}-{name}", order, self._attempt(block, cell_id),
                    "turns" if len(group) > 1 else alone,  # type: ignore[arg-type]
                ),
                zygote=zygote,
                request=self._traced(block, self.cells[cell_id]),
                timeout_s=self.sweep.timeout,
                interrupts=self._interrupts,
            )
            for order, cell_id in enumerate(group)
        ]  # fmt: skip

    def _attempt(self, block: int, cell_id: str) -> int:
        earlier = (t.attempt for t in self.trials if t.block == block and t.cell_id == cell_id)
        return 1 + max(earlier, default=0)

    def _request(self, cell: Cell) -> Request:
        return request_for(cell, self.sweep, self.data_dir)

    def _traced(self, block: int, cell: Cell) -> Request:
        """The request of a trial; the first of a cell that gets so far is traced, where the sweep asks for it."""
        request = self._request(cell)
        if not self.sweep.trace or any(t.cell_id == cell.cell_id and t.trace is not None for t in self.trials):
            return request
        path = f"traces/{cell.cell_id}-block-{block}-attempt-{self._attempt(block, cell.cell_id)}"
        trace = TraceRequest(run=str(self.store.path.absolute()), path=path)
        return request.model_copy(update={"trace": trace})

    def _rules(self, block: int, part: int) -> TurnRules:
        return TurnRules(self.sweep.windows, self.sweep.max_warmup, hash((self.sweep.seed, block, part)))

    def _keep(self, record: TrialRecord) -> None:
        note_hosts(self.store, record, self._hosts)
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
        """Trials that are not to be run again; of earlier sittings, what was refused for a reason that may pass is."""
        return [
            trial
            for number, trial in enumerate(self.trials)
            if trial.status != "interrupted" and not (trial.may_pass and number < self._earlier)
        ]

    def _later(self, block: int, group: Sequence[str]) -> list[list[Cell]]:
        """The groups after `group` of `block`, with those of a second stage as it would be planned by now."""
        done: defaultdict[int, set[str]] = defaultdict(set, {block: set(group)})
        for trial in self._done():
            done[trial.block].add(trial.cell_id)
        second = self._second_stage()
        return [
            [self.cells[cell_id] for cell_id in left]
            for plan in (*self.store.manifest.plans, *([second] if second else []))
            for offset, planned in enumerate(plan.blocks)
            for left in missing_groups(planned, done[plan.first_block + offset], self.cells, self._unsupported)
        ]

    def _left(self) -> int:
        plans = self.store.manifest.plans
        return sum(
            len(group)
            for plan in plans
            for offset, block in enumerate(plan.blocks)
            for group in missing_groups(block, self._done_in(plan.first_block + offset), self.cells, self._unsupported)
        )

    def _prepare_data(self, zygote: Zygote) -> None:
        """Make each data set ready once; where that fails, its cells are unsupported with the reason.

        A launcher with hosts of its own does that on them: nothing is trained here, so nothing need be here.
        """
        if launchers()[self.sweep.launcher].elsewhere:
            return
        for name in dict.fromkeys(cell.data for cell in self.cells.values()):
            cells = [cell for cell in self.cells.values() if cell.data == name]
            request = self._request(cells[0]).model_copy(update={"task": "prepare"})
            place = Place(self.store.manifest.run_id, 0, "prepare", 0, 1, "none")
            limit_s = max(self.sweep.timeout, PREPARE_LIMIT_S)
            trial = LiveTrial(cells[0], place, zygote, request, limit_s, self._interrupts)
            trial.start()
            trial.finish_task()
            if trial.status == "ok":
                continue
            for order, cell in enumerate(cells):
                if cell.cell_id not in self._unsupported:
                    failed = trial.failed_before_start(cell, order)
                    self._keep(failed)
                    self.progress.ended(failed)

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
        cells = list(self.cells.values())
        first = len(plans[0].blocks)
        return make_plan(cells, extra, self.sweep.seed, live_limits(self.sweep, self.catalogue), 2, first)


def is_final(trial: TrialRecord) -> bool:
    """Whether another block, or the same one resumed, would only repeat how a trial ended."""
    return trial.status in FINAL and not trial.may_pass


def live_limits(sweep: Sweep, catalogue: Catalogue) -> dict[str, int]:
    """The largest group on each device kind; a `live_trials` of the sweep comes before the kind's own."""
    limits = {}
    for name, traits in catalogue.devices.items():
        limit = sweep.live_trials or traits.live_trials
        if limit is not None:
            limits[name] = limit
    return limits
