"""The documented ways to train on several devices. One file a way, with one `LOOP`."""

from collections.abc import Mapping

from harness.engines.jax.loops.base import Loop as Loop
from harness.engines.jax.loops.base import LoopKind as LoopKind
from harness.registry import registered


def loops() -> Mapping[str, LoopKind]:
    """The registered loops by name, without importing JAX."""
    return registered(__name__, "LOOP")
