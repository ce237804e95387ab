"""A group of live trials: set up a few at a time, then a pilot and windows each in turn, then seen out."""

import contextlib
import random
import select
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.environment import available_memory_bytes, free_descriptors, memory_limit_bytes, own_peak_bytes
from harness.errors import Interrupted
from harness.record.trial import TrialRecord
from harness.run.process.zygote import SLICE_S
from harness.run.progress import Progress
from harness.run.turns.cards import CardWatch
from harness.run.turns.live import Ended, LiveTrial
from harness.run.turns.room import CardRoom

MEMORY_RESERVE = 0.15
"""Share of the memory that stays free: of the container's, where that has less than the machine."""
DESCRIPTOR_RESERVE = 32
"""Descriptors that stay free, for records, logs and programs that are started while trials live."""


@dataclass(frozen=True)
class TurnRules:
    """How many windows are measured, how many of warm-up come before them, and the seed of the order of turns."""

    windows: int
    warmup: int
    seed: int
    together: int = 1
    """Trials that are set up, and seen out, at the same time. More than one saves time on a machine with idle cores,
    but then what each of these phases took is what it took in company."""
    at_first: int = 2
    """Of them, those that begin before it is known how much memory one takes."""


class TurnGroup:
    """Runs one group. `keep` is called with each record as soon as its trial has ended.

    `agree` may set the steps of a window of the trials that are set up, before the first turn. `cards` are the GPUs
    under them, to watch while they have their turns.
    """

    def __init__(
        self,
        trials: Sequence[LiveTrial],
        rules: TurnRules,
        keep: Callable[[TrialRecord], None],
        progress: Progress,
        agree: Callable[[Sequence[LiveTrial]], None] | None = None,
        cards: CardWatch | None = None,
    ) -> None:
        self._agree = agree
        self._cards = cards
        self._waiting = list(trials)
        self._rules = rules
        self._keep = keep
        self._progress = progress
        self._live: list[LiveTrial] = []
        self._each_takes = 0.0
        """Bytes of memory that a trial keeps, as far as is known; 0 is not known yet."""
        self._one_took = 0
        """The most that one had for a time by then: what proves a large model takes several times what it keeps."""
        self._free_descriptors = 0
        """Those that were free before the first trial."""
        self._shuffler = random.Random(rules.seed)
        self._on_cards: CardRoom | None = None
        self._latest: LiveTrial | None = None
        """Whose window was the last one."""

    def run(self) -> list[LiveTrial]:
        """Run the group; returns the trials that there was no room for, to run as a group of their own."""
        try:
            self._set_up()
            self._pilots()
            if self._agree is not None:
                self._agree(self._live)
            self._take_turns()
            self._see_out()
        except BaseException as error:
            stopped = isinstance(error, (Interrupted, KeyboardInterrupt))
            self._interrupt(() if stopped else (Exception,))  # of several faults the first is the one to tell
            raise
        return self._waiting

    def _set_up(self) -> None:
        before, self._free_descriptors = available_memory_bytes(), free_descriptors()
        self._on_cards = None if self._cards is None else CardRoom(self._cards.cards)
        setting_up: list[LiveTrial] = []
        while True:
            at_once = self._rules.together if self._each_takes else min(self._rules.at_first, self._rules.together)
            while len(setting_up) < at_once and self._another_fits(before, len(setting_up)):
                trial = self._waiting.pop(0)
                trial.watch = self._progress.phase
                trial.company = self._company(len(self._live) + len(self._waiting))
                trial.start()
                self._live.append(trial)
                for one in self._live:
                    one.beside_others |= len(self._live) > 1
                setting_up.append(trial)
            if not setting_up:
                break  # nothing more fits; asked once, as memory that is free may be gone at the next look
            begun = list(setting_up)
            self._follow(setting_up, LiveTrial.set_up_step)
            for trial in self._live:
                if trial in begun and trial not in setting_up:
                    self._one_took = max(self._one_took, own_peak_bytes(trial.child.pids))
            if len(self._live) > len(setting_up) < len(begun):
                self._each_takes = max(self._each_takes, (before - available_memory_bytes()) / len(self._live))
                if self._on_cards is not None:
                    self._on_cards.learn(len(self._live))

    def _follow(self, trials: list[LiveTrial], take_in: Callable[[LiveTrial, bool], bool]) -> None:
        """Take in what has been reported; take those out of the list that are through or have ended."""
        alone = len(trials) == 1
        for trial in _with_news(trials):
            try:
                through = take_in(trial, alone)
            except Ended:
                self._ended(trial)
                through = True
            if through:
                trials.remove(trial)

    def _pilots(self) -> None:
        """How many steps a window has is found out in turn: a pilot in company would make every window too short."""
        for trial in list(self._live):
            try:
                trial.take_pilot()
            except Ended:
                self._ended(trial)

    def _see_out(self) -> None:
        """What can only be proved afterwards, and the end, of a few at a time; last what has nobody beside it."""
        waiting, leaving = sorted(self._live, key=lambda trial: trial.timed_at_its_end), list[LiveTrial]()
        while waiting or leaving:
            while waiting and self._may_leave(waiting[0], leaving):
                trial = waiting.pop(0)
                self._ask_process_memory(trial)
                trial.company = 1 if trial.timed_at_its_end else self._company(len(waiting) + len(leaving))
                self._progress.phase(trial.cell, "exit")
                trial.begin_to_finish()
                leaving.append(trial)
            self._follow(leaving, LiveTrial.finish_step)

    def _ask_process_memory(self, trial: LiveTrial) -> None:
        """What a trial's processes have taken of each card by its last window, before what proves takes more."""
        if self._cards is not None:
            trial.taken.process_memory = self._cards.process_memory(trial.child.pids)

    def _may_leave(self, trial: LiveTrial, leaving: Sequence[LiveTrial]) -> bool:
        """Whether a trial may be seen out beside others: one that is timed once more has nobody beside it."""
        if not leaving:
            return True
        alone = any(one.timed_at_its_end for one in (trial, *leaving))
        room = available_memory_bytes() > self._takes + self._reserve()  # what proves has a model of its own
        return len(leaving) < self._rules.together and not alone and room and self._fits_cards()

    def _another_fits(self, before: float, setting_up: int) -> bool:
        """As many trials as fit memory, but at least two: what each keeps of what was free, and what one may take.

        The `setting_up` that are under way may still take theirs. The same of the memory of GPUs, and of
        descriptors, which it has from its start.
        """
        if len(self._live) < 2 or not self._waiting:
            return bool(self._waiting)
        if not self._fits_cards(setting_up) or not self._fits_descriptors():
            return False
        by_now = available_memory_bytes() - setting_up * self._takes
        kept = before - len(self._live) * self._each_takes
        return by_now > self._takes + self._reserve() and kept > self._each_takes + self._reserve()

    @property
    def _takes(self) -> float:
        """What another trial may take for a time."""
        return max(self._each_takes, self._one_took)

    def _fits_cards(self, setting_up: int = 0) -> bool:
        return self._on_cards is None or self._on_cards.fits(setting_up)

    def _fits_descriptors(self) -> bool:
        free = free_descriptors()
        return free > (self._free_descriptors - free) / len(self._live) + DESCRIPTOR_RESERVE

    def _company(self, others: int) -> int:
        """Trials that share the cores while they are set up or seen out, of which there are `others` at most."""
        return min(self._rules.together, 1 + others)

    def _reserve(self) -> float:
        import psutil

        return MEMORY_RESERVE * (memory_limit_bytes() or psutil.virtual_memory().total)

    def _take_turns(self) -> None:
        for number in range(self._rules.warmup + self._rules.windows):
            if number == self._rules.warmup:
                for trial in self._live:
                    trial.measure_from(number)
            if self._live:
                self._round(number)

    def _round(self, number: int) -> None:
        """One window of every live trial, in a fresh random order."""
        order = self._shuffler.sample(self._live, len(self._live))
        self._progress.round(number, self._rules.warmup + self._rules.windows, len(order))
        for trial in order:
            self._progress.turn(trial.cell, trial.side)
            try:
                self._turn(trial, number)
            except Ended:
                self._ended(trial)
                continue
            finally:
                after_own, self._latest = trial is self._latest, trial
            if trial.taken.windows:
                if after_own:
                    trial.taken.after_own.append(len(trial.taken.windows) - 1)
                self._progress.window(trial.cell, trial.taken.windows[-1].seconds, trial.taken.windows[-1].steps)

    def _turn(self, trial: LiveTrial, number: int) -> None:
        """One window, and what the GPUs did in it; where an update was proved before it, they did that, too."""
        if self._cards is None:
            trial.take_turn(number)
            return
        with self._cards.watching() as read:
            trial.take_turn(number)
        if len(trial.taken.cards) < len(windows := trial.taken.windows):
            trial.taken.cards.append({} if windows[-1].check_seconds else read)

    def _ended(self, trial: LiveTrial) -> None:
        if trial in self._live:
            self._live.remove(trial)
        record = trial.record()
        self._keep(record)
        self._progress.ended(record)

    def _interrupt(self, passed_over: tuple[type[Exception], ...]) -> None:
        """End what lives; what it measured so far is kept in records that say `interrupted`."""
        for trial in list(self._live):
            with contextlib.suppress(*passed_over):
                try:
                    trial.interrupt()
                except Ended:
                    self._ended(trial)


def _with_news(trials: Sequence[LiveTrial]) -> list[LiveTrial]:
    """Those that have something to take in, or are overdue; waits a moment for it. One alone may be waited for."""
    if len(trials) == 1:
        return list(trials)
    trials[0].interrupts.check()
    if held := [trial for trial in trials if trial.child.channel.holds_line]:
        return held
    waited_for = [connection for trial in trials for connection in trial.child.channel.connections]
    readable, _, _ = select.select(waited_for, [], [], SLICE_S)
    now = time.monotonic()
    heard = set(readable)
    return [t for t in trials if heard & set(t.child.channel.connections) or now >= t.deadline]
