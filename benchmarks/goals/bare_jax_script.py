"""One process of the program that `engines.py` compares JAX's cells with: nothing of the harness in it.

Reads `K` from standard input, runs K training steps, prints their wall seconds; ends at end of file. What JAX's guides
to data parallelism by `jit` and NamedSharding and to several processes have, on one random batch that stays on the
devices. How many devices and threads a process has is in the variables that XLA reads. A fifth argument is how many
steps it makes before it is ready, else 20.
"""

import os
import sys
import time

import jax
import numpy as np
from jax import lax, nn
from jax import numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

batch_size, rank, world_size, port, first_steps = (int(argument) for argument in (*sys.argv[1:], 20)[:5])
if world_size > 1:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", world_size, rank)
mesh = Mesh(np.array(jax.devices()), ("batch",))
whole, cut = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("batch"))
draw = np.random.default_rng(1)
shapes = {"c0": (3, 3, 1, 32), "c1": (3, 3, 32, 64), "d0": (1600, 64), "d1": (64, 10)}
weights = {k: (draw.standard_normal(shape) * 0.05).astype(np.float32) for k, shape in shapes.items()}
weights |= {f"{k}b": np.zeros(shape[-1], np.float32) for k, shape in shapes.items()}
zeros = {k: np.zeros_like(value) for k, value in weights.items()}
state = jax.device_put((weights, zeros, {k: value.copy() for k, value in zeros.items()}, np.int32(0)), whole)
of_process = np.random.default_rng(rank)
x = of_process.standard_normal((batch_size, 28, 28, 1)).astype(np.float32)
y = of_process.integers(10, size=batch_size, dtype=np.int32)
x, y = (jax.make_array_from_process_local_data(cut, own) for own in (x, y))


def logits(w, x):
    for k in ("c0", "c1"):
        x = lax.conv_general_dilated(x, w[k], (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")) + w[f"{k}b"]
        x = lax.reduce_window(nn.relu(x), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return nn.relu(x.reshape(len(x), -1) @ w["d0"] + w["d0b"]) @ w["d1"] + w["d1b"]


def loss_of(w, x, y):
    return -jnp.take_along_axis(nn.log_softmax(logits(w, x)), y[:, None], axis=1).mean()


def update(state, x, y):
    weights, first, second, number = state
    loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
    number = number + 1
    rate = 1e-3 * (1 - 0.999**number) ** 0.5 / (1 - 0.9**number)
    first = jax.tree.map(lambda m, g: m + (g - m) * 0.1, first, gradients)
    second = jax.tree.map(lambda v, g: v + (g * g - v) * 0.001, second, gradients)
    weights = jax.tree.map(lambda w, m, v: w - rate * m / (jnp.sqrt(v) + 1e-7), weights, first, second)
    return (weights, first, second, number), loss


step = jax.jit(update, in_shardings=(whole, cut, cut), out_shardings=whole, donate_argnums=0)


def run(steps):
    global state
    start = time.perf_counter()
    for _ in range(steps):
        state, loss = step(state, x, y)
    jax.block_until_ready(state)
    float(loss)
    return time.perf_counter() - start


run(first_steps)
print("ready", flush=True)
for line in sys.stdin:
    print(repr(run(int(line))), flush=True)
os._exit(0)
