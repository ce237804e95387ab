"""What is wrong with an engine, as cross-device ops of it."""

import dataclasses
from collections.abc import Iterable

from harness.spec.catalogue import Catalogue, CrossDeviceOpTraits


def with_ops(right: Catalogue, names: Iterable[str], summary: str = "wrong") -> Catalogue:
    """The catalogue with these ops too, which every strategy takes but *no strategy*."""
    ops = {name: CrossDeviceOpTraits(name, summary) for name in names}
    strategies = {
        name: dataclasses.replace(traits, takes_cross_device_op=name != "none")
        for name, traits in right.strategies.items()
    }
    taken = None if right.taken is None else {work: {*keys, "cross_device_op"} for work, keys in right.taken.items()}
    every = {**right.cross_device_ops, **ops}
    return dataclasses.replace(right, strategies=strategies, cross_device_ops=every, taken=taken)
