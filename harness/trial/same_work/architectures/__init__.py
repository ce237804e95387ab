"""Models as every engine builds them. One file a model, with one `ARCHITECTURE`."""

from collections.abc import Mapping

from harness.registry import registered
from harness.trial.same_work.architectures.base import Architecture as Architecture


def architectures() -> Mapping[str, Architecture]:
    """The registered architectures by name."""
    return registered(__name__, "ARCHITECTURE")
