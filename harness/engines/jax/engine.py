"""JAX as an engine. Everything else of its folder is imported when it is asked for."""

from pathlib import Path

from harness.engines._on_jax.engine import OnJax, OnJaxClusters
from harness.protocol.engine import Environment, Software, Trainer
from harness.protocol.messages import Request
from harness.spec.catalogue import Catalogue
from harness.trial.collectives import Sending


class Jax(OnJax):
    """JAX, its devices those of one process or of several."""

    name = "jax"
    title = "JAX"
    clusters = OnJaxClusters(title)
    software = Software(titles={"jax": "JAX"}, variables=("JAX_DEFAULT_MATMUL_PRECISION", "JAX_ENABLE_X64"))
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
        """JAX and the modules of a trial."""
        return self.versions(f"{__package__}.trainer", f"{__package__}.collectives")

    def trainer(self, request: Request) -> Trainer:
        """Devices, model, optimizer, input and loop."""
        from harness.engines.jax.trainer import JaxTrainer

        return JaxTrainer(request)

    def sending(self, request: Request) -> Sending:
        """The buffers of this process's devices, and the program."""
        from harness.engines.jax.collectives import JaxSending

        return JaxSending(request)


ENGINE = Jax()
