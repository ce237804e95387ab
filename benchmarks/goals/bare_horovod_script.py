"""One process of the program that `engines.py` compares Horovod's cells with: nothing of the harness in it.

Reads `K` from standard input, runs K training steps, prints their wall seconds; ends at end of file. What Horovod's
example for TensorFlow 2 has, on one random batch that stays in memory. Of several processes the first serves the
rendezvous, which `horovodrun` would do; one process is TensorFlow without Horovod.
"""

import os
import socket
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import keras
import numpy as np
import tensorflow as tf

batch_size, rank, world_size, port = (int(argument) for argument in sys.argv[1:5])
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.set_visible_devices([], "GPU")
if world_size > 1:
    import horovod.tensorflow as hvd
    from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer
    from horovod.runner.util.threads import in_thread

    if rank == 0:
        in_thread(RendezvousHTTPServer(("127.0.0.1", port), RendezvousHandler, 0).serve_forever)
    while socket.socket().connect_ex(("127.0.0.1", port)):
        time.sleep(0.1)
    places = {"RANK": rank, "LOCAL_RANK": rank, "CROSS_RANK": 0, "SIZE": world_size, "LOCAL_SIZE": world_size}
    os.environ.update({f"HOROVOD_{name}": str(value) for name, value in {**places, "CROSS_SIZE": 1}.items()})
    os.environ.update(HOROVOD_CONTROLLER="gloo", HOROVOD_CPU_OPERATIONS="gloo", HOROVOD_HOSTNAME="localhost")
    os.environ.update(HOROVOD_GLOO_RENDEZVOUS_ADDR="127.0.0.1", HOROVOD_GLOO_RENDEZVOUS_PORT=str(port))
    os.environ.update(HOROVOD_GLOO_IFACE="lo")
    hvd.init()
keras.utils.set_random_seed(1)
model = keras.Sequential(
    [
        keras.Input((28, 28, 1)),
        keras.layers.Conv2D(32, 3, activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Conv2D(64, 3, activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(10),
    ]
)
optimizer = keras.optimizers.Adam(1e-3)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
generator = np.random.default_rng(rank)
x = tf.constant(generator.standard_normal((batch_size, 28, 28, 1), dtype=np.float32))
y = tf.constant(generator.integers(10, size=batch_size))


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    if world_size > 1:
        tape = hvd.DistributedGradientTape(tape)
    gradients = tape.gradient(loss, [variable.value for variable in model.trainable_variables])
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


def run(steps):
    start = time.perf_counter()
    for _ in range(steps):
        loss = step(x, y)
    float(loss)
    return time.perf_counter() - start


run(20)
print("ready", flush=True)
for line in sys.stdin:
    print(repr(run(int(line))), flush=True)
os._exit(0)
