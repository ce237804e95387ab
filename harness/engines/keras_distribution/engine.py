"""keras.distribution as an engine. Everything else of its folder is imported when it is asked for."""

import os
from pathlib import Path

from harness.engines._on_jax.engine import OnJax, OnJaxClusters
from harness.protocol.engine import Environment, Software, Trainer
from harness.protocol.messages import Request
from harness.spec.catalogue import Catalogue

BACKEND = {"KERAS_BACKEND": "jax"}
"""The variable that Keras reads as it is imported, with the only backend that distributes."""


class KerasDistribution(OnJax):
    """Keras with JAX below it, its devices those of one process or of several."""

    name = "keras_distribution"
    title = "Keras' distribution"
    clusters = OnJaxClusters(title)
    software = Software(
        titles={"keras": "Keras", "jax": "JAX"},
        variables=("JAX_DEFAULT_MATMUL_PRECISION", "JAX_ENABLE_X64"),
        sets=BACKEND,
    )
    environment = Environment(
        needs={"keras": "3.15", "jax": "0.7", "numpy": "1.26", "psutil": "6", "pydantic": "2"},
        installs=("keras", "jax", "numpy", "psutil", "pydantic", "scikit-learn"),
        constraints=Path(__file__).parent / "constraints.txt",
    )

    def catalogue(self) -> Catalogue:
        """Every registered name."""
        from harness.engines.keras_distribution.catalogue import load_catalogue

        return load_catalogue()

    def preload(self) -> dict[str, str]:
        """Keras, JAX and the modules of a trial. The backend is JAX, whatever the user's own setting is."""
        os.environ |= BACKEND
        import keras

        return {"keras": keras.__version__, **self.versions(f"{__package__}.trainer")}

    def trainer(self, request: Request) -> Trainer:
        """Devices, distribution, model, optimizer and input."""
        from harness.engines.keras_distribution.trainer import KerasTrainer

        return KerasTrainer(request)


ENGINE = KerasDistribution()
