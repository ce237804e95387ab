"""Slow-downs planted on purpose, one file a kind: what a validation must find.

See `docs/protocol.md#validation-of-the-method`. A planted slow-down must be real, so each works on the
critical path of the step itself and takes the same share of it whatever the machine's speed.
`benchmarks/goals/planted.py` shows in a bare loop that they do.
"""

from collections.abc import Mapping, Sequence
from typing import cast

from harness.engines.tensorflow.plants.base import Planted, PlantKind
from harness.errors import Unsupported, not_one_of
from harness.record.trial import Plant
from harness.registry import registered

LOOP = "custom"
"""The one loop that plants slow-downs."""


def plants() -> Mapping[str, PlantKind]:
    """Every registered kind by name, without importing TensorFlow."""
    return cast(Mapping[str, PlantKind], registered(__name__, "PLANT"))


def check_loop(plant: Plant | None, loop: str | None) -> None:
    """Raise Unsupported when something is to be planted in another loop than the custom one."""
    if plant is not None and loop != LOOP:
        this = f"loop '{loop}'" if loop else "no training"
        raise Unsupported(f"plant: '{plant.kind}' can be planted in the {LOOP} loop only, and this is {this}")


def planted(plant: Plant | None, devices: Sequence[str]) -> Planted:
    """`plant` ready to work in the steps of replicas on `devices`, one a replica; None plants nothing.

    Raises UsageError for an unknown kind, and Unsupported, with the reason, where it cannot be planted.
    """
    if plant is None:
        return Planted()
    if plant.kind not in plants():
        raise not_one_of("plant", plant.kind, plants())
    return plants()[plant.kind].build(plant, devices)


__all__ = ["PlantKind", "Planted", "check_loop", "planted", "plants"]
