"""What a cross-device op must be able to do."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.spec.catalogue import CrossDeviceOpTraits


@dataclass(frozen=True)
class CrossDeviceOp:
    """An op: its traits, how to build it, and the reduction ops its name promises.

    `build(num_packs)` returns a tf.distribute.CrossDeviceOps, or None for TensorFlow's own choice.
    `promises` are the operation names of which at least one must be in the traced program; empty
    where nothing in particular is promised.
    """

    traits: CrossDeviceOpTraits
    build: Callable[[int | None], Any]
    promises: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name in specs and records."""
        return self.traits.name
