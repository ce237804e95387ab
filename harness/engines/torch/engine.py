"""PyTorch as an engine. Everything else of its folder is imported when it is asked for."""

import contextlib
import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from harness.errors import Unsupported
from harness.protocol.channel import Channel
from harness.protocol.engine import Ending, Environment, Software, Task, Trainer
from harness.protocol.messages import Membership, Request
from harness.spec.catalogue import Catalogue
from harness.trial.ending import plain_ending

NO_ROOM = "can't allocate memory"
"""What PyTorch's message holds where the processor's memory has no room for a tensor."""


LATE = ("torch._dynamo", "torch.distributed.algorithms.ddp_comm_hooks.default_hooks")
"""What PyTorch imports once it is used: the first optimizer takes half a second so."""


class TorchClusters:
    """Processes that are all alike, each with one replica."""

    def join(self, member: Membership) -> None:
        """Move to the process's network; the group is made where the cell is built. HarnessError with the reason."""
        from harness.engines.torch.group import enter

        enter(member)

    def serve(self, request: Request, member: Membership, channel: Channel) -> NoReturn:
        """No process only serves others here."""
        raise Unsupported(f"{member.name}: PyTorch's processes are all alike, and none serves others")


class Torch:
    """PyTorch, its replicas a process each."""

    name = "torch"
    title = "PyTorch"
    clusters = TorchClusters()
    software = Software(titles={"torch": "PyTorch"})
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
        """PyTorch and the modules of a trial. No tensor is made: the threads of its pool would not survive a fork."""
        import numpy as np
        import torch

        with contextlib.suppress(ImportError):  # the data that need it say so, with the remedy
            importlib.import_module("sklearn.datasets")
        for name in (f"{__package__}.trainer", *LATE):  # what a fork would else import, each time anew
            importlib.import_module(name)
        return {"torch": torch.__version__, "numpy": np.__version__}

    def on_host(self, request: Request) -> Request:
        """Nothing is left open."""
        return request

    def classify(self, error: Exception) -> Ending:
        """PyTorch says in words what went wrong."""
        status, reason = plain_ending(error)
        return ("out_of_memory" if NO_ROOM in str(error) else status), reason

    def trainer(self, request: Request) -> Trainer:
        """Model, optimizer, input, the group of processes and the loop."""
        from harness.engines.torch.trainer import TorchTrainer

        return TorchTrainer(request)

    def tasks(self) -> Mapping[str, Task]:
        """Nothing besides trials: no data set needs to be prepared."""
        return {}


ENGINE = Torch()
