"""Does JAX hang with so many devices on the processor and so many threads in XLA's pools?

    python benchmarks/jax_pool.py 2 2       # devices, threads

Issues some hundred steps of a small perceptron at a time, waits for the last, and goes on for some seconds. Where all
threads wait for an all-reduce XLA ends the process. Needs an interpreter with JAX (`docs/engines.md`).
"""

import os
import sys
import time

SECONDS, AT_ONCE, BATCH = 10.0, 300, 32
WARNED_S, ENDED_S = 4, 6
"""Seconds after which XLA says that an all-reduce is stuck, and ends the process."""


def main(devices: int, threads: int) -> None:
    patience = [f"warn_stuck_timeout_seconds={WARNED_S}", f"terminate_timeout_seconds={ENDED_S}"]
    flags = [f"force_host_platform_device_count={devices}", *(f"cpu_collective_call_{limit}" for limit in patience)]
    os.environ["XLA_FLAGS"] = " ".join(f"--xla_{flag}" for flag in flags)
    os.environ["NPROC"] = str(threads)
    import jax
    import numpy as np
    from jax import numpy as jnp
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(jax.devices()[:devices]), ("devices",))
    whole, cut = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("devices"))
    weights = jax.device_put([np.full((784, 512), 0.01, np.float32), np.full((512, 10), 0.01, np.float32)], whole)
    x = jax.device_put(np.ones((BATCH * devices, 784), np.float32), cut)

    def loss(weights: list[jax.Array], x: jax.Array) -> jax.Array:
        return jnp.square(jax.nn.relu(x @ weights[0]) @ weights[1]).mean()

    def step(weights: list[jax.Array], x: jax.Array) -> tuple[list[jax.Array], jax.Array]:
        value, gradients = jax.value_and_grad(loss)(weights, x)
        return [weight - 0.01 * gradient for weight, gradient in zip(weights, gradients, strict=True)], value

    jitted = jax.jit(step, in_shardings=(whole, cut), out_shardings=(whole, whole), donate_argnums=0)
    steps, until = 0, time.monotonic() + SECONDS
    while time.monotonic() < until:
        for _ in range(AT_ONCE):
            weights, value = jitted(weights, x)
        value.block_until_ready()
        steps += AT_ONCE
    print(f"{devices} devices, {threads} threads: {steps} steps and no hang")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
