"""Blocks of a comparison: a fresh trial of each arm, alive together, taking turns.

`ab` has two arms, a validation a few more. Unlike the cells of a sweep, arms may be the same cell: what
sets them apart may be their environment, their revision, or nothing at all.
"""

import hashlib
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from harness.analysis.comparison.pairs import took_turns
from harness.errors import HarnessError, UsageError
from harness.record.store import RunStore
from harness.record.trial import MEASURED, TrialRecord
from harness.run.interrupts import Interrupts
from harness.run.kinds.base import Arm, TrialRun
from harness.run.process.hosts import note_hosts
from harness.run.process.renewal import renew
from harness.run.progress import Progress
from harness.run.turns.cards import watch_of
from harness.run.turns.group import TurnGroup, TurnRules
from harness.run.turns.live import LiveTrial, Slot
from harness.run.turns.single import live_through, single
from harness.run.turns.steps import StepCounts
from harness.spec.work import Cell
from harness.trial.engines import catalogue_of

BLOCKS_A_PROCESS = 2
"""Most blocks from the same preloaded processes where sides have one each: how these lie in memory would be a
difference of the sides. Sides that share one share its layout, and get another after each look."""


def must_live_together(cells: Iterable[Cell], engine: str) -> None:
    """UsageError for a device that one process at a time may hold: arms are alive together."""
    devices = catalogue_of(engine).devices
    for cell in cells:
        traits = devices.get(cell.shape.device)
        if traits is not None and traits.live_trials == 1:
            raise UsageError(
                f"device: one process at a time may hold '{traits.name}', and what is compared is alive together "
                "and takes turns; sweep each by itself and hold the runs against each other with compare"
            )


def _set_up_at_once(arms: Sequence[Arm]) -> int:
    """How many arms are set up at the same time.

    All on processors: of six that were set up two by two the first two were 1 to 2 % slower to their end. One on
    accelerators, whose libraries choose kernels by their times and keep for the whole trial what they chose in company.
    """
    of_arms = [catalogue_of(arm.zygote.engine).devices.get(arm.request.cell.shape.device) for arm in arms]
    return 1 if any(traits is not None and not traits.on_processors for traits in of_arms) else len(arms)


@dataclass
class ArmBlocks:
    """Runs blocks of arms and keeps each record as its trial ends."""

    store: RunStore
    progress: Progress
    windows: int
    max_warmup: int
    seed: int
    interrupts: Interrupts
    trials: list[TrialRecord] = field(default_factory=list)
    renewed: Callable[[], None] = lambda: None
    """Called once there are other preloaded processes."""
    failed_in_a_row: int = 0
    """The latest blocks, one after the other, in each of which a trial did not end well."""

    @classmethod
    def of(cls, run: TrialRun) -> "ArmBlocks":
        """Those of `run`, by its sweep; what they record is among its trials."""
        sweep = run.store.manifest.sweep
        rules = (sweep.windows, sweep.max_warmup, sweep.seed)
        return cls(run.store, run.progress, *rules, run.interrupts, run.trials, run.look_at_sources)

    def __post_init__(self) -> None:
        self._steps = StepCounts(self.trials)
        self._of_these = 0
        """Blocks from the preloaded processes that there are."""

    def renew(self, arms: Sequence[Arm], at_look: bool) -> None:
        """Other preloaded processes in the place of those of `arms`, when a block is to have them: after a look, and
        between looks where several have served for `BLOCKS_A_PROCESS`."""
        processes = dict.fromkeys(arm.zygote for arm in arms)
        if self._of_these and (at_look or (len(processes) > 1 and self._of_these >= BLOCKS_A_PROCESS)):
            renew(processes)
            self.renewed()
            self._of_these = 0

    def rehearse(self, arms: Sequence[Arm]) -> None:
        """Let one trial of each arm be set up alone and end, unrecorded: what it finds out is kept for the rest.

        A planted slow-down is calibrated then, with nobody beside it. HarnessError when one does not end well.
        """
        for arm in arms:
            trial = single("rehearsal", arm.zygote, arm.request, arm.timeout_s, self.interrupts)
            live_through(trial)
            if trial.status not in MEASURED:
                raise HarnessError(f"{trial.cell.label}, {arm.name}: {trial.status}: {trial.reason}")

    def run(self, block: int, arms: Sequence[Arm], pairs: Sequence[tuple[str, str]]) -> list[TrialRecord]:
        """One block; its records, in the order in which the trials ended. Raises Interrupted.

        `pairs` are the arms, by name, that are to take turns with each other. When memory has no room for all
        at once, pairs that were parted run next, in a group of their own.
        """
        by_name = {arm.name: arm for arm in arms}
        order = start_order(self.seed, block, list(by_name))
        attempt = 1 + max((trial.attempt for trial in self.trials if trial.block == block), default=0)
        name = hashlib.sha256(f"{block}/{attempt}".encode()).hexdigest()[:8]
        kept: list[TrialRecord] = []

        def keep(record: TrialRecord) -> None:
            for arm in arms:
                note_hosts(self.store, record, arm.zygote.hosts)
            self.store.append(record)
            self.trials.append(record)
            kept.append(record)

        at_once = _set_up_at_once(arms)
        rules = TurnRules(self.windows, self.max_warmup, hash((self.seed, block, attempt)), at_once, at_once)
        while order:
            group = f"b{block}-{name}" + (f"-{len(kept)}" if kept else "")
            asked = [_asked(by_name[n], kept) for n in order]
            trials = [self._live(arm, block, group, number, attempt) for number, arm in enumerate(asked)]
            cards = watch_of((arm.request.cell for arm in arms), *(arm.zygote.engine for arm in arms))
            left = TurnGroup(trials, rules, keep, self.progress, self._steps.agree, cards).run()
            order = list(dict.fromkeys(name for pair in pairs if not took_turns(kept, [pair]) for name in pair))
            self.progress.more(len(order) - len(left))
        self._of_these += 1
        well = all(trial.measured for trial in kept)
        self.failed_in_a_row = 0 if well else self.failed_in_a_row + 1
        return kept

    def complete(self, block: int, pairs: Sequence[tuple[str, str]]) -> bool:
        """Whether the arms of each pair took turns in this block, however they ended."""
        return took_turns([trial for trial in self.trials if trial.block == block], pairs)

    def _live(self, arm: Arm, block: int, group: str, order: int, attempt: int) -> LiveTrial:
        way: Literal["turns"] = "turns"
        return LiveTrial(
            cell=arm.request.cell,
            slot=Slot(self.store.manifest.run_id, block, group, order, attempt, way),
            zygote=arm.zygote,
            request=arm.request,
            timeout_s=arm.timeout_s,
            interrupts=self.interrupts,
            side=arm.name,
        )


def _asked(arm: Arm, kept: Sequence[TrialRecord]) -> Arm:
    """What is asked of an arm beside what the block has kept: to be traced once. Another trial that runs since memory
    had no room for all at once would write over its trace."""
    if not any(trial.side == arm.name and trial.trace is not None for trial in kept):
        return arm
    return replace(arm, request=arm.request.model_copy(update={"trace": None}))


def start_order(seed: int, block: int, names: Sequence[str]) -> list[str]:
    """The order in which the arms of a block start, drawn from the seed; the sealed plan holds the same."""
    order = list(names)
    random.Random(f"{seed}/{block}").shuffle(order)
    return order
