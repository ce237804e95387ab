"""The documented ways to train on several devices. One file a way, with one `LOOP`."""

from collections.abc import Mapping

from harness.engines.jax.loops.base import Way as Way
from harness.engines.jax.loops.base import WayKind as WayKind
from harness.registry import registered


def loops() -> Mapping[str, WayKind]:
    """The registered loops by name, without importing JAX."""
    return registered(__name__, "LOOP")
