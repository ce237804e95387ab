"""JAX: data parallelism over the devices of one process or of several, by `jit` with shardings and by `shard_map`.

Nothing here imports JAX before a trial's process asks for it.
"""

from harness.engines.jax.engine import ENGINE as ENGINE
