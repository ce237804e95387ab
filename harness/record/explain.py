"""What a run of `explain` set out to do, and the instruments that it measures with."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from harness.record.kind import Kind, Undertaking
from harness.record.model import RecordModel
from harness.spec.values import MOST

WHOLE = "whole"
NO_INPUT = "no_input"
NO_REDUCTION = "no_reduction"
NO_UPDATE = "no_update"
FORWARD_BACKWARD = "forward_backward"
FORWARD = "forward"
EMPTY = "empty"
REDUCTION = "reduction"
BARRIER = "barrier"
IN_ONE_CALL = "in_one_call"
NO_PULL = "no_pull"
NO_PUSH = "no_push"
ALONE = "alone"
ONLY_INPUT = "only_input"
STEPS_A_CALL = 10
"""Of `IN_ONE_CALL`, as many as there are where a window has fewer."""
INSTRUMENTS: Mapping[str, str] = {
    NO_INPUT: "the whole step on batches that lie on the devices already",
    NO_REDUCTION: "each replica applies its own gradients",
    NO_UPDATE: "gradients are added up over the replicas, and no weight is changed",
    FORWARD_BACKWARD: "gradients are computed on batches that lie there already, and nothing is done with them",
    FORWARD: "the loss is computed on batches that lie there already, and no gradient",
    EMPTY: "the strategy calls a step that does nothing",
    REDUCTION: "sums as large as the gradients' are made over the replicas, and nothing else",
    BARRIER: "each replica applies its own gradients once all workers have theirs",
    IN_ONE_CALL: "several whole steps in one call, on batches that lie on the devices already",
    NO_PULL: "weights are the worker's own, and the servers' are updated",
    NO_PUSH: "weights are the servers', and gradients stay with the worker",
}
"""Programs that are a cell's step with something left out, and what each does. They are no cells: no ranking has them,
and the weights of what reduces nothing are meant to drift apart."""
OF_SERVERS = (NO_INPUT, NO_PULL, NO_PUSH, FORWARD_BACKWARD, FORWARD, EMPTY)
"""Instruments of a worker that waits for no other; the rest are of steps that all replicas make together."""
ARMS: Mapping[str, str] = {
    WHOLE: "the step as it is",
    **INSTRUMENTS,
    ALONE: "gradients of one replica, with no other beside it",
    ONLY_INPUT: "batches are drawn from the input pipeline, and no step is made",
}
"""What takes turns with the whole step."""


class FamilyRecord(RecordModel):
    """A cell, and the arms that are alive together to explain its step."""

    cell_id: str
    arms: Annotated[list[str], Field(min_length=2)]
    """Names of ARMS, the whole step first."""
    alone: str | None = None
    """The cell of one replica by itself; None where there is no other replica."""
    pipeline: str | None = None
    """The cell of its input pipeline by itself; None where it has none, or each of several workers has its own."""
    at_once: Annotated[int, Field(ge=1, le=MOST)] = 1
    """Updates that are made at the same time, by workers that do not wait for each other."""

    def cell_of(self, arm: str) -> str:
        """The id of the cell that an arm measures."""
        return {ALONE: self.alone, ONLY_INPUT: self.pipeline}.get(arm) or self.cell_id


class TryRecord(RecordModel):
    """A lever that was tried on a cell once its parts were known: an `ab` run beside the run of `explain`."""

    cell_id: str
    part: str
    """The part of the step that it is to make smaller."""
    setting: str
    """KEY=VALUE of side B; side A is the cell as it is."""
    run_id: str | None = None
    """The `ab` run; None where none could be begun."""
    reason: str | None = None
    """Why there is no verdict; None where the run has one, or was only stopped."""


class ExplainPlan(RecordModel, Undertaking):
    """What a run of `explain` set out to do, fixed before the first trial.

    Block b is of family b modulo their number.
    """

    families: Annotated[list[FamilyRecord], Field(min_length=1)]
    blocks: Annotated[int, Field(ge=2, le=MOST)]
    """Of each family."""
    tries: list[TryRecord] = []
    """In the order in which they were made; no part of what was planned."""

    @property
    def kind(self) -> Kind:
        """A run of `explain`."""
        return Kind("explain", "explain")

    def counted(self, cells: int) -> int:
        """Those that are explained; the others are arms of theirs."""
        return len(self.families)

    def family(self, block: int) -> FamilyRecord:
        """Whose block it is."""
        return self.families[block % len(self.families)]
