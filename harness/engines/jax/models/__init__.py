"""Models to train, each of the architecture that TensorFlow's of the same name has. One file a model, one `MODEL`."""

from collections.abc import Mapping

from harness.engines._on_jax.model import Model as Model
from harness.registry import registered


def models() -> Mapping[str, Model]:
    """The registered models by name, without importing JAX."""
    return registered(__name__, "MODEL")
