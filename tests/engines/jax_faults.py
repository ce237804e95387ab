"""What is planted in every engine on JAX: sums over devices that are wrong, and copies that stay old.

`apart` is a sum that nobody writes down, `alone` one that the last device is no part of, and `left_out` one of all
weights but one.
"""

from collections.abc import Sequence
from typing import Any

BETWEEN = ("apart", "alone", "left_out")
LEFT_OUT = "dense_1/kernel"


def wrongly_reduced(fault: str, gradients: dict[str, Any], axis: str, devices: int) -> dict[str, Any]:
    """Of gradients by the weight's name, on each of the devices along an axis of a mesh."""
    from jax import lax

    if fault == "apart":
        return gradients
    groups = [list(range(devices - 1)), [devices - 1]] if fault == "alone" else None
    summed: dict[str, Any] = lax.psum(gradients, axis, axis_index_groups=groups)
    return {**summed, LEFT_OUT: gradients[LEFT_OUT]} if fault == "left_out" else summed


def copies_on(device: Any, arrays: Sequence[Any]) -> list[Any]:
    """What a device has of each array, copied; None where another process has the device."""
    import numpy as np

    own = [[shard.data for shard in array.addressable_shards if shard.device == device] for array in arrays]
    return [np.array(found[0]) if found else None for found in own]


def with_copies_on(device: Any, arrays: Sequence[Any], copies: Sequence[Any]) -> list[Any]:
    """The same arrays, but that the device has these copies of them."""
    return [_with_copy(device, *pair) for pair in zip(arrays, copies, strict=True)]


def _with_copy(device: Any, array: Any, copy: Any) -> Any:
    import jax

    shards = [
        jax.device_put(copy, device) if shard.device == device else shard.data for shard in array.addressable_shards
    ]
    return jax.make_array_from_single_device_arrays(array.shape, array.sharding, shards)
