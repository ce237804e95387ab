"""What happened to a job, in order of time, and what follows from it."""

import itertools
from dataclasses import dataclass, field
from typing import Literal

from harness.record.faults import CheckpointCost, Detection, Interruption, UpdateCounts

JobEnd = Literal["done", "hung", "failed", "unsupported"]


@dataclass
class History:
    """Times are the machine's monotonic clock in seconds."""

    began_s: float = 0.0
    ended_s: float = 0.0
    end: JobEnd = "failed"
    reason: str | None = None
    evidence: str | None = None
    steps: list[tuple[float, int]] = field(default_factory=list)
    """When the leading process had done how many steps."""
    trainings: list[tuple[float, int]] = field(default_factory=list)
    """When training began, and from which step."""
    fault_s: float | None = None
    detections: list[Detection] = field(default_factory=list)
    restarted: list[str] = field(default_factory=list)
    back_s: float | None = None
    """When the last process that was started again was ready."""
    checkpoint_s: list[float] = field(default_factory=list)
    updates: UpdateCounts | None = None
    cost: CheckpointCost | None = None

    @property
    def fault_step(self) -> int | None:
        """Steps that were done when the fault came."""
        if self.fault_s is None:
            return None
        return max((step for at, step in self.steps if at <= self.fault_s), default=0)

    @property
    def was_struck(self) -> bool:
        """Whether a fault came while there was work left to disturb: after the last step there is none."""
        return bool(self.detections or self.restarted) or self.useful_s is not None

    def after_fault(self, at_s: float) -> float:
        """Seconds since the fault."""
        return max(0.0, at_s - (self.fault_s or 0.0))

    @property
    def useful_s(self) -> float | None:
        """When a step was done, after the fault, that had not been done before any restart."""
        if self.fault_s is None:
            return None
        done = self._furthest
        return next((at for at, step in self.steps if at > self.fault_s and step > done), None)

    @property
    def standstill_s(self) -> float | None:
        """The longest time, from the fault on, without a step that had not been done before."""
        if self.fault_s is None:
            return None
        longest, last_s, done = 0.0, self.fault_s, self.fault_step or 0
        for at, step in self.steps:
            if at > self.fault_s and step > done:
                longest, last_s, done = max(longest, at - last_s), at, step
        return longest

    @property
    def _furthest(self) -> int:
        """The furthest step before training began again; where it never did, before the fault."""
        until = self.trainings[1][0] if self._began_again else self.fault_s
        return max((step for at, step in self.steps if until is not None and at <= until), default=0)

    @property
    def _began_again(self) -> bool:
        return self.fault_s is not None and len(self.trainings) > 1

    @property
    def resumed_from(self) -> int | None:
        """The earliest step that training began again from."""
        return min(step for _, step in self.trainings[1:]) if self._began_again else None

    @property
    def steps_lost(self) -> int:
        """Steps that were done again."""
        return 0 if self.resumed_from is None else max(0, self._furthest - self.resumed_from)

    @property
    def interruption(self) -> Interruption | None:
        """The parts of the time to the next useful step; None when training never began again, or never got there."""
        if not self._began_again or self.useful_s is None or not self.detections or self.fault_s is None:
            return None
        detected, again = self.fault_s + self.detections[0].after_s, self.trainings[-1][0]
        return Interruption(
            detection_s=max(0.0, detected - self.fault_s),
            restart_s=max(0.0, again - detected),
            replay_s=max(0.0, self.useful_s - again),
        )

    @property
    def step_times_s(self) -> list[float]:
        """Times between steps before the fault; some have a checkpoint in them."""
        until = self.fault_s if self.fault_s is not None else self.ended_s
        times = [at for at, _ in self.steps if at <= until]
        return [later - earlier for earlier, later in itertools.pairwise(times)]
