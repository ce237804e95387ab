"""Engines whose processes get into trouble on their way to each other, each as a cross-device op.

`killed` and `stopped`: the last one is, before it comes to the others. `first_stopped`: the first one is, before it
listens. `taken`: somebody else listens on the first one's port.
"""

import os
import signal
import socket

from harness.engines.horovod.engine import Horovod
from harness.engines.jax.engine import Jax
from harness.engines.keras_distribution.engine import KerasDistribution
from harness.engines.torch.engine import Torch
from harness.protocol.engine import Trainer
from harness.protocol.messages import Membership, Request
from harness.spec.address import split_address
from harness.spec.catalogue import Catalogue
from tests.engines.ops import with_ops

TROUBLES = ("killed", "stopped", "first_stopped", "taken")


def meet(trouble: str, member: Membership) -> list[socket.socket]:
    """What happens to this process; what it gives must stay open."""
    addresses = member.cluster[member.task]
    first, last = member.index == 0, member.index == len(addresses) - 1
    if last and trouble in ("killed", "stopped"):
        os.kill(os.getpid(), signal.SIGKILL if trouble == "killed" else signal.SIGSTOP)
    if first and trouble == "first_stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    if not (first and trouble == "taken"):
        return []
    other = socket.socket()
    host, port = split_address("address", addresses[0])
    other.bind((host, port or 0))
    other.listen()
    return [other]


class InTrouble:
    """An engine in trouble."""

    def catalogue(self) -> Catalogue:
        right: Catalogue = super().catalogue()  # type: ignore[misc]
        return with_ops(right, TROUBLES, "trouble")

    def trainer(self, request: Request) -> Trainer:
        assert request.member is not None
        self._open = meet(request.training.cross_device_op, request.member)
        found: Trainer = super().trainer(request)  # type: ignore[misc]
        return found


class TroubledTorch(InTrouble, Torch):
    """PyTorch in trouble."""


class TroubledHorovod(InTrouble, Horovod):
    """Horovod in trouble."""


class TroubledJax(InTrouble, Jax):
    """JAX in trouble."""


class TroubledKeras(InTrouble, KerasDistribution):
    """keras.distribution in trouble."""
