"""A whole script that marks its training step, complete. It trains by itself, and is measured as it is:

    python benchmarks/own_script.py
    python -m harness sweep --step benchmarks/own_script.py --amount 64

One line is the harness's: the mark, which does nothing in the first command. In the second each call of the marked
function is one step, and what the script does until the next call, here to fetch a batch, is part of it.
"""

import keras
import numpy as np
import tensorflow as tf

import harness

BATCH = 64

generator = np.random.default_rng(1)
x = generator.random((1024, 20), dtype=np.float32)
y = x @ generator.random((20, 1), dtype=np.float32)
batches = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1024, seed=1).repeat().batch(BATCH)

model = keras.Sequential([keras.Input((20,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)])
optimizer = keras.optimizers.Adam()


@harness.mark_step
@tf.function
def train_step(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Forward, backward and update; the mean loss of the batch."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


for step, (x_batch, y_batch) in enumerate(batches, start=1):
    loss = train_step(x_batch, y_batch)
    if step % 100 == 0:
        print(f"step {step}: loss {float(loss):.4f}")
    if step == 100_000:
        break
