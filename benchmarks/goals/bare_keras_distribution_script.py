"""One process of the program that `engines.py` compares keras.distribution's cells with: nothing of the harness in it.

Reads `K` from standard input, runs K training steps, prints their wall seconds; ends at end of file. One call of
`Model.fit`, as Keras' guide to distributed training has it, on shuffled batches of digits from a generator, in several
processes each one's own share. How many devices and threads a process has is in the variables that XLA reads. A fifth
argument is how many steps it makes before it is ready, else 20.
"""

import os
import sys
import time

os.environ["KERAS_BACKEND"] = "jax"

import jax
import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits

batch_size, rank, world_size, port, first_steps = (int(argument) for argument in (*sys.argv[1:], 20)[:5])
if world_size > 1:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    keras.distribution.initialize(f"127.0.0.1:{port}", world_size, rank)
devices = keras.distribution.list_devices()
if len(devices) > 1:
    distribution = keras.distribution.DataParallel(devices=devices, auto_shard_dataset=False)
    keras.distribution.set_distribution(distribution)
model = keras.Sequential(
    [
        keras.Input((28, 28, 1)),
        layers.Conv2D(32, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(64, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(64, activation="relu"),
        layers.Dense(10),
    ]
)
model.compile(keras.optimizers.Adam(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
draw = np.random.default_rng(rank)
digits = load_digits()
small = np.float32(digits.images[..., np.newaxis] / 16)
images = np.asarray(jax.image.resize(small, (len(small), 28, 28, 1), "linear"))
images, labels = images[rank::world_size], digits.target.astype(np.int32)[rank::world_size]


def shuffled():
    waiting = np.empty(0, np.int64)
    while True:
        while len(waiting) < batch_size:
            waiting = np.concatenate([waiting, draw.permutation(len(labels))])
        now, waiting = waiting[:batch_size], waiting[batch_size:]
        yield images[now], labels[now]


model.fit(shuffled(), epochs=1, steps_per_epoch=first_steps, verbose=0)
step, left, start = model.train_function, 0, 0.0


def timed(state, given):
    """A step as fit calls it. Batches are taken ahead of steps, so that their generator cannot tell where one ends."""
    global left, start
    if left == 0:
        jax.block_until_ready(state)
        print(repr(time.perf_counter() - start) if start else "ready", flush=True)
        if not (line := sys.stdin.readline()):
            os._exit(0)
        left, start = int(line), time.perf_counter()
    left -= 1
    return step(state, given)


model.train_function = timed
model.fit(shuffled(), epochs=1, steps_per_epoch=1 << 40, verbose=0)
