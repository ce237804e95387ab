"""Models as every engine builds them. One file a model, with one `ARCHITECTURE`."""

from collections.abc import Mapping

from harness.registry import registered
from harness.trial.same_work.architectures.base import Architecture as Architecture

ANOTHER_START = "NumPy draws them, from the same seed"
"""How weights begin, beside TensorFlow's: by the same initialisers, as other numbers."""


def architectures() -> Mapping[str, Architecture]:
    """The registered architectures by name."""
    return registered(__name__, "ARCHITECTURE")
