"""The hand-written loop that `bare_loop.py` compares with: nothing of the harness in it.

Reads `K` from standard input, runs K training steps, prints their wall seconds; ends at end of file.
What a careful person would write: the digits through tensorflow-datasets, the CNN of the tf.distribute
tutorials, a tf.function step, the same thread pools.
"""

import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"

import keras
import tensorflow as tf
import tensorflow_datasets as tfds

data_folder, batch_size = sys.argv[1], int(sys.argv[2])
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(2)
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
optimizer.build(model.trainable_variables)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def prepare(image, label):
    return tf.image.resize(tf.cast(image, tf.float32), (28, 28)) / 255.0, tf.cast(label, tf.int32)


examples = tfds.builder_from_directory(data_folder).as_dataset(split="train", as_supervised=True)
batches = iter(
    examples.map(prepare, num_parallel_calls=tf.data.AUTOTUNE)
    .cache()
    .shuffle(1797, seed=1, reshuffle_each_iteration=True)
    .repeat()
    .batch(batch_size, drop_remainder=True)
    .prefetch(tf.data.AUTOTUNE)
)


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


def run(steps):
    start = time.perf_counter()
    for _ in range(steps):
        loss = step(*next(batches))
    float(loss)
    model.trainable_variables[-1].numpy()
    return time.perf_counter() - start


run(20)
print("ready", flush=True)
for line in sys.stdin:
    print(repr(run(int(line))), flush=True)
os._exit(0)
