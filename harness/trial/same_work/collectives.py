"""What collectives by themselves are alike in, of the engines beside TensorFlow."""

from typing import ClassVar

from harness.protocol.messages import Request
from harness.trial.collectives import Sending, collective_of
from harness.trial.same_work.catalogue import AXES_OF_COLLECTIVES
from harness.trial.same_work.trainer import refuse_what_is_beside


class SameSending(Sending):
    """Of a collective what follows from its request; one replica a process, unless an engine says otherwise.

    Unsupported, with the reason, for what the engine of `title` does not do.
    """

    title: ClassVar[str]
    taken: ClassVar[frozenset[str]] = AXES_OF_COLLECTIVES

    def __init__(self, request: Request) -> None:
        refuse_what_is_beside(request, self.taken, self.title)
        self.cell, self._request = collective_of(request.cell), request
        self.first = 0 if request.member is None else request.member.index * self.cell.replicas

    @property
    def _received_elements(self) -> int:
        """float32 numbers that one replica receives."""
        n = self.cell.replicas_in_sync
        many = {"all_gather": self.cell.elements * n, "reduce_scatter": self.cell.elements // n}
        return many.get(self.cell.collective, self.cell.elements)
