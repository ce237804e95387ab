"""A group of live trials: set up one after the other, then a window each in turn, then seen out."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.analysis.steady import block_steady_from, trials_steady_from
from harness.environment import available_memory_bytes
from harness.errors import Interrupted
from harness.record.trial import TrialRecord
from harness.run.live import Ended, LiveTrial
from harness.run.progress import Progress

MEMORY_RESERVE = 0.15
"""Share of the machine's memory that stays free."""


@dataclass(frozen=True)
class TurnRules:
    """How many windows, at most how many of them warm-up, and the seed of the order of turns."""

    windows: int
    max_warmup: int
    seed: int


class TurnGroup:
    """Runs one group. `keep` is called with each record as soon as its trial has ended."""

    def __init__(
        self, trials: Sequence[LiveTrial], rules: TurnRules, keep: Callable[[TrialRecord], None], progress: Progress
    ) -> None:
        self._waiting = list(trials)
        self._rules = rules
        self._keep = keep
        self._progress = progress
        self._live: list[LiveTrial] = []
        self._largest = 0
        self._shuffler = random.Random(rules.seed)

    def run(self) -> list[LiveTrial]:
        """Run the group; returns the trials that memory had no room for, to run as a group of their own."""
        try:
            self._set_up()
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
            trial = self._waiting.pop(0)
            before = available_memory_bytes()
            trial.watch = self._progress.phase
            trial.start()
            self._live.append(trial)
            try:
                trial.set_up()
            except Ended:
                self._ended(trial)
            self._largest = max(self._largest, before - available_memory_bytes())

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
            self._round(number)
            if measured_from is None:
                measured_from = self._judge(number + 1)
            if measured_from is not None and number + 1 - measured_from >= self._rules.windows:
                return

    def _round(self, number: int) -> None:
        """One window of every live trial, in a fresh random order."""
        order = list(self._live)
        self._shuffler.shuffle(order)
        self._progress.round(number, self._rules.windows + self._rules.max_warmup, len(order))
        for trial in order:
            try:
                trial.take_turn(number)
            except Ended:
                self._ended(trial)

    def _judge(self, rounds: int) -> int | None:
        """The round from which windows are measured: steady state of all, or the cap on warm-up."""
        times = {_name(trial): [window.seconds for window in trial.windows] for trial in self._live}
        cap = self._rules.max_warmup
        start = block_steady_from(times)
        if start is not None and start > cap:
            start = None
        if start is None and rounds < cap + self._rules.windows:
            return None
        steady = trials_steady_from(times)
        for trial in self._live:
            own = steady.get(_name(trial))
            trial.steady = start is not None or (own is not None and own <= cap)
            trial.measured_from = cap if start is None else start
            trial.phase = "steady"
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


def _name(trial: LiveTrial) -> str:
    """Tells the trials of a group apart, also where one cell is measured against itself."""
    return f"trial {trial.place.order}, {trial.cell.label}"
