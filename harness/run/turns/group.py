"""A group of live trials: set up one after the other, then a window each in turn, then seen out."""

import random
import select
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.analysis.estimates.steady import block_steady_from, trials_steady_from
from harness.environment import available_memory_bytes
from harness.errors import Interrupted
from harness.record.trial import TrialRecord
from harness.run.progress.base import Progress
from harness.run.turns.live import SLICE_S, Ended, LiveTrial

MEMORY_RESERVE = 0.15
"""Share of the machine's memory that stays free."""


@dataclass(frozen=True)
class TurnRules:
    """How many windows, at most how many of them warm-up, and the seed of the order of turns."""

    windows: int
    max_warmup: int
    seed: int
    together: int = 1
    """Trials that are set up at the same time. More than one saves time on a machine with idle cores, but
    then what each phase of the set-up took is what it took in company."""


class TurnGroup:
    """Runs one group. `keep` is called with each record as soon as its trial has ended.

    `agree` may set the steps of a window of the trials that are set up, before the first turn.
    """

    def __init__(
        self,
        trials: Sequence[LiveTrial],
        rules: TurnRules,
        keep: Callable[[TrialRecord], None],
        progress: Progress,
        agree: Callable[[Sequence[LiveTrial]], None] | None = None,
    ) -> None:
        self._agree = agree
        self._waiting = list(trials)
        self._rules = rules
        self._keep = keep
        self._progress = progress
        self._live: list[LiveTrial] = []
        self._largest = 0.0
        self._shuffler = random.Random(rules.seed)

    def run(self) -> list[LiveTrial]:
        """Run the group; returns the trials that memory had no room for, to run as a group of their own."""
        try:
            self._set_up()
            if self._agree is not None:
                self._agree(self._live)
            self._take_turns()
            for trial in list(self._live):
                self._progress.phase(trial.cell, "exit")
                trial.finish()
                self._ended(trial)
        except (Interrupted, KeyboardInterrupt):
            self._interrupt()
            raise
        return self._waiting

    def _set_up(self) -> None:
        while self._waiting and self._room_for_one_more():
            before = available_memory_bytes()
            setting_up: list[LiveTrial] = []
            while self._waiting and len(setting_up) < self._rules.together and self._room_for_one_more():
                trial = self._waiting.pop(0)
                trial.watch = self._progress.phase
                trial.start()
                self._live.append(trial)
                setting_up.append(trial)
            started = len(setting_up)
            while setting_up:
                self._follow(setting_up)
            self._largest = max(self._largest, (before - available_memory_bytes()) / started)

    def _follow(self, setting_up: list[LiveTrial]) -> None:
        """Take in what has been reported; take those out of the list that are ready or have ended."""
        for trial in _with_news(setting_up):
            try:
                done = trial.set_up_step()
            except Ended:
                self._ended(trial)
                done = True
            if done:
                setting_up.remove(trial)

    def _room_for_one_more(self) -> bool:
        """As many trials as fit memory, but at least two: the room is what the largest so far took."""
        if len(self._live) < 2:
            return True
        return available_memory_bytes() > self._largest + self._reserve()

    def _reserve(self) -> float:
        import psutil

        return MEMORY_RESERVE * psutil.virtual_memory().total

    def _take_turns(self) -> None:
        measured_from: int | None = None
        cap = self._rules.max_warmup
        for number in range(cap + self._rules.windows):
            if not self._live:
                return
            self._round(number, (cap if measured_from is None else measured_from) + self._rules.windows)
            if measured_from is None:
                measured_from = self._judge(number + 1)
            if measured_from is not None and number + 1 - measured_from >= self._rules.windows:
                return

    def _round(self, number: int, most: int) -> None:
        """One window of every live trial, in a fresh random order."""
        order = self._shuffler.sample(self._live, len(self._live))
        self._progress.round(number, most, len(order))
        for trial in order:
            self._progress.turn(trial.cell)
            try:
                trial.take_turn(number)
            except Ended:
                self._ended(trial)
                continue
            if trial.taken.windows:
                self._progress.window(trial.cell, trial.taken.windows[-1].seconds, trial.taken.windows[-1].steps)

    def _judge(self, rounds: int) -> int | None:
        """The round from which windows are measured: steady state of all, or the cap on warm-up."""
        times = {_name(trial): [window.seconds for window in trial.taken.windows] for trial in self._live}
        cap = self._rules.max_warmup
        start = block_steady_from(times)
        if start is not None and start > cap:
            start = None
        if start is None and rounds < cap + self._rules.windows:
            return None
        steady = trials_steady_from(times)
        for trial in self._live:
            own = steady.get(_name(trial))
            trial.measure_from(cap if start is None else start, start is not None or (own is not None and own <= cap))
        return cap if start is None else start

    def _ended(self, trial: LiveTrial) -> None:
        if trial in self._live:
            self._live.remove(trial)
        record = trial.record()
        self._keep(record)
        self._progress.ended(record)

    def _interrupt(self) -> None:
        """End what lives; what it measured so far is kept in records that say `interrupted`."""
        for trial in list(self._live):
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


def _name(trial: LiveTrial) -> str:
    """Tells the trials of a group apart, also where one cell is measured against itself."""
    return f"trial {trial.slot.order}, {trial.cell.label}"
