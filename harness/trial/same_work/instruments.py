"""Instruments of the same work: once its first updates are proved, a trial goes on with a step that lacks one thing.

Whatever an engine counts a step by, it is judged alike and before it is timed. What it trains then is not meant to be
right.
"""

import itertools
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, SupportsFloat

from harness.errors import Unsupported
from harness.protocol.engine import GATE_UPDATES, Pace
from harness.record.explain import IN_ONE_CALL, NO_INPUT
from harness.trial.instruments import READ_INPUT, STEPS_A_CALL, Holds, lacks_more
from harness.trial.same_work.trainer import SameWorkTrainer

Step = Callable[..., Any]
"""(x, y), this process's share of a batch as it lies on the devices -> the loss; (x, y, count) where the instrument
makes so many steps in a call."""
BACKWARD = " backward"
"""What the name of an op in `Holds.work` ends with where it is part of a backward pass."""
GoesOn = Callable[[Iterator[Any]], tuple[Step, Iterator[Any]]]
"""Given the batches that steps have had, what is to be done instead of the step, and with which batches."""


class TakenApart(SameWorkTrainer):
    """A trainer whose step can be had with one thing left out."""

    _holds: Holds | None = None
    """Of the instrument that is timed."""

    @property
    def ahead(self) -> int:
        """What the cell asks for; nothing of an instrument whose batches lie there already."""
        return super().ahead if self._instrument in ("", *READ_INPUT) else 0

    @property
    def _instrument(self) -> str:
        return self._request.instrument

    @abstractmethod
    def _step(self, x: Any, y: Any) -> Any:
        """The whole step."""

    @abstractmethod
    def _placed(self, share: Any) -> tuple[Any, Any]:
        """This process's share of a batch on the devices."""

    def _resident(self, share: Any) -> tuple[Any, Any]:
        """The same where `_placed` may leave it on the host."""
        return self._placed(share)

    @abstractmethod
    def _without(self, name: str) -> Step:
        """The step that the instrument of a name is, another one than NO_INPUT; Unsupported where there is none."""

    @abstractmethod
    def _held_by(self, step: Step, batch: tuple[Any, ...]) -> Holds:
        """What `step` holds, which may be run on its arguments `batch` for it; `work` tells what goes backward by
        BACKWARD."""

    def _run(self, pace: Pace, told: Callable[[Any], SupportsFloat]) -> None:
        """Train until `pace` says 0, from the gate's last update on by the instrument; `told` reads a step's loss."""
        step: Step = self._step
        batches, windows = self._fed(self._placed), 0
        while steps := pace.begin():
            several = windows >= GATE_UPDATES and self._instrument == IN_ONE_CALL
            for calls in range(0, steps, STEPS_A_CALL if several else 1):
                loss = step(*next(batches), *([min(STEPS_A_CALL, steps - calls)] if several else []))
            pace.end(told(loss))
            windows += 1
            if windows == GATE_UPDATES and self._instrument:  # the gate is passed, and no window is timed yet
                step, batches = self._judged(batches)

    def _judged(self, batches: Iterator[tuple[Any, Any]]) -> tuple[Step, Iterator[tuple[Any, Any]]]:
        """The instrument and its batches. Unsupported unless it lacks what its name says, and nothing else."""
        name, resident = self._instrument, [self._resident(self._data.share_of(batch)) for batch in self._data.gate]
        whole = self._held_by(self._step, resident[-1])
        step = self._step if name == NO_INPUT else self._without(name)  # which may take the model from the whole step
        several = (1,) if name == IN_ONE_CALL else ()
        self._holds = self._held_by(step, (*resident[-1], *several))
        if fault := fault_of(name, whole, self._holds):
            raise Unsupported(f"instrument '{name}': {fault}")
        return step, batches if name in READ_INPUT else self._planted(itertools.cycle(resident))


def fault_of(name: str, whole: Holds, holds: Holds) -> str | None:
    """What an instrument's step lacks or has against its name; None where it is as it should be."""
    return lacks_more(name, _with_forward(whole), _with_forward(holds), lambda op: op.endswith(BACKWARD))


def _with_forward(holds: Holds) -> Holds:
    forward = Counter({op: count for op, count in holds.work.items() if not op.endswith(BACKWARD)})
    return replace(holds, forward=forward)
