"""Models as every engine builds them. One file a model, with one `ARCHITECTURE`."""

from collections.abc import Mapping

from harness.errors import not_one_of
from harness.registry import registered
from harness.trial.same_work.architectures.base import Architecture as Architecture


def architectures() -> Mapping[str, Architecture]:
    """The registered architectures by name."""
    return registered(__name__, "ARCHITECTURE")


def unknown(name: str) -> str | None:
    """Why there is no model of a name, which may be one that only TensorFlow has or a user's own; None where there is
    one."""
    known = architectures()
    return None if name in known else str(not_one_of("model", name, known))
