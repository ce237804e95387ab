"""PyTorch as an engine. Everything else of its folder is imported when it is asked for."""

import importlib
import os
import re
from pathlib import Path

from harness.protocol.engine import Ending, Environment, Software, Trainer
from harness.protocol.messages import Membership, Request
from harness.spec.catalogue import Catalogue
from harness.trial.collectives import Sending
from harness.trial.ending import plain_ending
from harness.trial.same_work.engine import AlikeProcesses, TrialsAlone

NO_ROOM = re.compile("can't allocate memory|out of memory|ALLOC_FAILED", re.IGNORECASE)
"""What PyTorch's message holds where the processor's memory or a card's has no room, for CUDA's libraries either."""
ONE_CARD = "Duplicate GPU detected"
"""What NCCL says of two processes that a launcher has taken to be on different hosts."""
LACKING = re.compile("gloo does not support", re.IGNORECASE)
"""What it holds where Gloo has not got a collective, as in earlier versions."""
LATE = ("torch._dynamo", "torch.distributed.algorithms.ddp_comm_hooks.default_hooks")
"""What PyTorch imports once it is used: the first optimizer takes half a second so."""


class TorchClusters(AlikeProcesses):
    """Processes that are all alike, each with one replica."""

    title = "PyTorch"

    def join(self, member: Membership) -> None:
        """Move to the process's network; the group is made where the cell is built. HarnessError with the reason.

        In a network of the launcher's, NCCL is to take the very interface that Gloo does.
        """
        from harness.engines.torch.group import INTERFACE
        from harness.trial.membership import INTERFACES
        from harness.trial.same_work.meeting import enter

        enter(member, INTERFACE)
        if member.namespace and INTERFACE in os.environ:
            os.environ[INTERFACES] = f"={os.environ[INTERFACE]}"


class Torch(TrialsAlone):
    """PyTorch, its replicas a process each."""

    name = "torch"
    title = "PyTorch"
    clusters = TorchClusters()
    software = Software(titles={"torch": "PyTorch"}, variables=("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",))
    environment = Environment(
        needs={"torch": "2.4", "numpy": "1.26", "psutil": "6", "pydantic": "2"},
        installs=("torch", "numpy", "psutil", "pydantic", "scikit-learn"),
        constraints=Path(__file__).parent / "constraints.txt",
    )

    def catalogue(self) -> Catalogue:
        """Every registered name."""
        from harness.engines.torch.catalogue import load_catalogue

        return load_catalogue()

    def preload(self) -> dict[str, str]:
        """PyTorch and the modules of a trial. No tensor is made: the threads of its pool would not survive a fork, nor
        would CUDA, which nothing of this asks for anything."""
        import numpy as np
        import torch

        ours = (f"{__package__}.trainer", f"{__package__}.collectives")
        for name in (*ours, *LATE):  # what a fork would else import, each time anew
            importlib.import_module(name)
        return {"torch": torch.__version__, "numpy": np.__version__}

    def classify(self, error: Exception) -> Ending:
        """PyTorch says in words what went wrong."""
        status, reason = plain_ending(error)
        if NO_ROOM.search(str(error)):
            return "out_of_memory", reason
        if ONE_CARD in str(error):
            return "unsupported", "two processes have got the same GPU, which NCCL refuses: give each host's only once"
        return ("unsupported" if LACKING.search(str(error)) else status), reason

    def trainer(self, request: Request) -> Trainer:
        """Model, optimizer, input, the group of processes and the loop."""
        from harness.engines.torch.trainer import TorchTrainer

        return TorchTrainer(request)

    def sending(self, request: Request) -> Sending:
        """The buffer of this process, and the group."""
        from harness.engines.torch.collectives import TorchSending

        return TorchSending(request)


ENGINE = Torch()
