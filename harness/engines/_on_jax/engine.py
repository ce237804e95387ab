"""What engines whose arrays are JAX's are alike in."""

import importlib
import socket

from harness.protocol.engine import Ending
from harness.protocol.messages import Membership
from harness.trial.ending import plain_ending
from harness.trial.membership import enter_network
from harness.trial.namespace import call_host
from harness.trial.same_work.engine import AlikeProcesses, TrialsAlone
from harness.trial.same_work.meeting import place

OUT_OF_MEMORY = "RESOURCE_EXHAUSTED"
"""What XLA's message begins with where an array finds no room."""


class OnJaxClusters(AlikeProcesses):
    """Processes that are all alike."""

    def __init__(self, title: str) -> None:
        self.title = title

    def join(self, member: Membership) -> None:
        """Move to the process's network; the others are met where the devices are set up. HarnessError with the
        reason.

        JAX's Gloo listens where the host's name leads, which in a network of the launcher's must be this process's
        address.
        """
        enter_network(member)
        if member.namespace:
            call_host(socket.gethostbyname(place(member, member.index)[0]))


class OnJax(TrialsAlone):
    """Of an engine what follows from XLA's errors and JAX's versions."""

    def versions(self, *modules: str) -> dict[str, str]:
        """Of JAX. The modules are imported, which a fork would else do, each time anew. No backend starts: its threads
        would not survive a fork."""
        import jax
        import jaxlib
        import numpy as np

        for name in modules:
            importlib.import_module(name)
        return {"jax": jax.__version__, "jaxlib": jaxlib.__version__, "numpy": np.__version__}

    def classify(self, error: Exception) -> Ending:
        """XLA says in words what went wrong."""
        status, reason = plain_ending(error)
        return ("out_of_memory" if OUT_OF_MEMORY in str(error) else status), reason
