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


def planted(plant: Plant | None, devices: Sequence[str], worker: int = 0, workers: int = 1) -> Planted:
    """`plant` ready to work in the steps of replicas on `devices`, one a replica, of a worker; None plants nothing.

    Raises UsageError for an unknown kind, and Unsupported, with the reason, where it cannot be planted.
    """
    if plant is None:
        return Planted()
    if (kind := _kind_of(plant)).of_servers:
        raise Unsupported(f"plant: '{plant.kind}' is in what parameter servers send and get, and here are none")
    made = kind.build(plant, devices)
    made.worker, made.workers = worker, workers
    return made


def planted_in_updates(plant: Plant | None, strategy: str) -> Planted:
    """The same in the updates that a worker makes to parameter servers.

    Unsupported where a strategy has no place for it.
    """
    if plant is None:
        return Planted()
    if not (kind := _kind_of(plant)).of_servers:
        raise no_place(strategy)
    return kind.build(plant, ())


def no_place(strategy: str) -> Unsupported:
    """Why nothing of the kind can be planted."""
    return Unsupported(f"strategy '{strategy}' has no place for a planted slow-down: validate another strategy")


def _kind_of(plant: Plant) -> PlantKind:
    if plant.kind not in plants():
        raise not_one_of("plant", plant.kind, plants())
    return plants()[plant.kind]


__all__ = ["PlantKind", "Planted", "check_loop", "no_place", "planted", "planted_in_updates", "plants"]
