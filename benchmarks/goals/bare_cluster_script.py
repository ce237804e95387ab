"""One worker of the two-process program that `cluster_bare.py` compares with: nothing of the harness in it.

Reads `K` from standard input, runs K training steps, prints their wall seconds; ends at end of file.
What a careful person would write: TF_CONFIG, MultiWorkerMirroredStrategy over RING, the digits through
tensorflow-datasets, the CNN of the tf.distribute tutorials, a tf.function step, the same thread pools.
"""

import json
import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"

import keras
import tensorflow as tf
import tensorflow_datasets as tfds

data_folder, batch_size, index, workers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4].split(",")
os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}})

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(2)
communication = tf.distribute.experimental.CommunicationOptions(
    implementation=tf.distribute.experimental.CommunicationImplementation.RING
)
strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=communication)
keras.utils.set_random_seed(1)

with strategy.scope():
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
    optimizer.build(model.trainable_variables)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")


def prepare(image, label):
    return tf.image.resize(tf.cast(image, tf.float32), (28, 28)) / 255.0, tf.cast(label, tf.int32)


def dataset(_):
    examples = tfds.builder_from_directory(data_folder).as_dataset(split="train", as_supervised=True)
    return (
        examples.shard(len(workers), index)
        .map(prepare, num_parallel_calls=tf.data.AUTOTUNE)
        .cache()
        .shuffle(1797, seed=1, reshuffle_each_iteration=True)
        .repeat()
        .batch(batch_size, drop_remainder=True)
        .prefetch(tf.data.AUTOTUNE)
    )


batches = iter(strategy.distribute_datasets_from_function(dataset))


def replica(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True)) / (batch_size * len(workers))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


@tf.function
def step(x, y):
    return strategy.run(replica, args=(x, y))


def run(steps):
    start = time.perf_counter()
    for _ in range(steps):
        loss = step(*next(batches))
    float(strategy.experimental_local_results(loss)[0])
    model.trainable_variables[-1].numpy()
    return time.perf_counter() - start


run(20)
print("ready", flush=True)
for line in sys.stdin:
    print(repr(run(int(line))), flush=True)
os._exit(0)
