"""Where the parts of arrays lie: what each replica has, and whether the devices train together at all."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.engines._on_jax.devices import in_order, laid
from harness.trial.copies import one_where_alike

if TYPE_CHECKING:
    from harness.protocol.state import Array

DeviceRow = Sequence[Any]
"""The devices of a replica."""


@contextlib.contextmanager
def laid_unasked() -> Iterator[None]:
    """While entered, what Keras lays over the devices of several processes they do not send each other first (`laid`):
    every variable of a model and of its optimizer, as it is made and as it is assigned."""
    import jax
    import numpy as np
    from keras.distribution import TensorLayout
    from keras.src.backend.jax import distribution_lib

    own = distribution_lib.distribute_tensor

    def distributed(tensor: Any, layout: Any) -> Any:
        sharding = layout.backend_layout if isinstance(layout, TensorLayout) else layout
        here = isinstance(tensor, np.ndarray) or (isinstance(tensor, jax.Array) and tensor.is_fully_addressable)
        if not here or isinstance(tensor, jax.core.Tracer) or sharding.is_fully_addressable:
            return own(tensor, layout)
        return laid(np.asarray(tensor), sharding)

    distribution_lib.distribute_tensor = distributed
    try:
        yield
    finally:
        distribution_lib.distribute_tensor = own


def copies(array: Any, rows: Sequence[DeviceRow], each: bool = True) -> "tuple[Array, ...]":
    """What is on each of this process's devices of an array that is whole there; else, and where it is not wanted of
    `each` device, what each replica has, put together from its devices' parts."""
    import numpy as np

    shards = in_order(array)
    if each and array.is_fully_replicated:
        return one_where_alike(np.asarray(shard.data) for shard in shards)
    return one_where_alike(_whole(array, [shard for shard in shards if shard.device in row]) for row in rows)


def _whole(array: Any, shards: Sequence[Any]) -> "Array":
    """Of parts that should be alike and are not, the one that differs from the first."""
    import numpy as np

    first: dict[str, Array] = {}
    whole = np.empty(array.shape, array.dtype)
    for shard in shards:
        value = np.array(shard.data)
        known = first.setdefault(str(shard.index), value)
        if known is value or not np.array_equal(known, value):
            whole[shard.index] = value
    return whole


def apart(weights: Mapping[str, Any], x: Any, size: int, rows: Sequence[DeviceRow], first: int) -> str | None:
    """Whether the devices do not share the work: None, or the evidence.

    `x` is a global batch as it is placed, of which each replica has to have its own `size` examples; `first` is this
    process's first replica.
    """
    own = {device for row in rows for device in row}
    for name, array in weights.items():
        held = own & {shard.device for shard in array.addressable_shards}
        if held != own:
            return f"weight '{name}' is on {len(held)} of {len(own)} devices: the others do not train it"
    if any(len(row) > 1 for row in rows) and all(array.is_fully_replicated for array in weights.values()):
        return "no weight is cut: no key of the layout map matches the whole path of one"
    for number, row in enumerate(rows, first):
        for shard in (shard for shard in x.addressable_shards if shard.device in row):
            begin, end, _ = shard.index[0].indices(x.shape[0])
            if (begin, end) != (number * size, (number + 1) * size):
                return (
                    f"replica {number} has the examples {begin} to {end} of a batch of {x.shape[0]}, expected "
                    f"{number * size} to {(number + 1) * size}: the batch is not cut over the replicas"
                )
    return None
