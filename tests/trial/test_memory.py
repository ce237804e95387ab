"""What the proof of a trial's first updates leaves behind while the trial waits for its turns beside others."""

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.own_engine import Mean
from harness.protocol.engine import GATE_UPDATES, Pace
from harness.protocol.messages import Request
from harness.protocol.state import VariableState
from harness.trial.memory import LARGE, let_go
from tests.trial.own import tried


class Node:
    """Something that lies in a cycle, as a Keras model does."""

    def __init__(self) -> None:
        self.itself = self


def test_what_lies_in_cycles_goes_where_the_state_is_large() -> None:
    gc.disable()
    try:
        for size, gone in ((LARGE - 1, False), (LARGE, True)):
            left = weakref.ref(Node())
            let_go(size)
            assert (left() is None) is gone
    finally:
        gc.enable()


class WatchedMean(Mean):
    """Knows each state that it was asked for, and which of them were there when it went on after the gate."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.given: list[weakref.ref[np.ndarray[Any, Any]]] = []
        self.alive: list[int] = []

    def state(self) -> list[VariableState]:
        found = super().state()
        self.given += [weakref.ref(copy) for variable in found for copy in variable.copies]
        return found

    def run(self, pace: Pace) -> None:
        watched = self

        class Watching:
            end = staticmethod(pace.end)

            def begin(self) -> int:
                watched.alive.append(sum(copy() is not None for copy in watched.given))
                return pace.begin()

        super().run(Watching())


def test_no_state_of_the_first_updates_is_kept_once_they_are_proved(tmp_path: Path) -> None:
    outcome, watched = tried(WatchedMean, tmp_path)
    assert outcome.status == "ok", outcome
    assert isinstance(watched, WatchedMean)
    assert watched.alive[:GATE_UPDATES] == [*range(1, GATE_UPDATES + 1)]
    assert watched.alive[GATE_UPDATES:] == [0] * len(watched.alive[GATE_UPDATES:])
