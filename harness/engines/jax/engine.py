"""JAX as an engine. Everything else of its folder is imported when it is asked for."""

import contextlib
import importlib
from pathlib import Path

from harness.protocol.engine import Ending, Environment, Software, Trainer
from harness.protocol.messages import Membership, Request
from harness.spec.catalogue import Catalogue
from harness.trial.ending import plain_ending
from harness.trial.membership import enter_network
from harness.trial.same_work.engine import AlikeProcesses, TrialsAlone

OUT_OF_MEMORY = "RESOURCE_EXHAUSTED"
"""What XLA's message begins with where an array finds no room."""


class JaxClusters(AlikeProcesses):
    """Processes that are all alike."""

    title = "JAX"

    def join(self, member: Membership) -> None:
        """Move to the process's network; the others are met where the devices are set up. HarnessError with the
        reason."""
        enter_network(member)


class Jax(TrialsAlone):
    """JAX, its devices those of one process or of several."""

    name = "jax"
    title = "JAX"
    clusters = JaxClusters()
    software = Software(titles={"jax": "JAX"})
    environment = Environment(
        needs={"jax": "0.7", "numpy": "1.26", "psutil": "6", "pydantic": "2"},
        installs=("jax", "numpy", "psutil", "pydantic", "scikit-learn"),
        constraints=Path(__file__).parent / "constraints.txt",
    )

    def catalogue(self) -> Catalogue:
        """Every registered name."""
        from harness.engines.jax.catalogue import load_catalogue

        return load_catalogue()

    def preload(self) -> dict[str, str]:
        """JAX and the modules of a trial. No backend starts: its threads would not survive a fork."""
        import jax
        import jaxlib
        import numpy as np

        with contextlib.suppress(ImportError):  # the data that need it say so, with the remedy
            importlib.import_module("sklearn.datasets")
        importlib.import_module(f"{__package__}.trainer")  # what a fork would else import, each time anew
        return {"jax": jax.__version__, "jaxlib": jaxlib.__version__, "numpy": np.__version__}

    def classify(self, error: Exception) -> Ending:
        """XLA says in words what went wrong."""
        status, reason = plain_ending(error)
        return ("out_of_memory" if OUT_OF_MEMORY in str(error) else status), reason

    def trainer(self, request: Request) -> Trainer:
        """CpuDevices, model, optimizer, input and loop."""
        from harness.engines.jax.trainer import JaxTrainer

        return JaxTrainer(request)


ENGINE = Jax()
