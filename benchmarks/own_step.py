"""A training step of your own, complete, with a strategy of its own. Copy this file next to your code.

A function without arguments builds whatever it likes, and returns a callable that does one training
step and returns its loss. It is named as `benchmarks.own_step:make_step`:

    python -m harness sweep --step benchmarks.own_step:make_step --amount 128
    @pytest.mark.training_gate(step="benchmarks.own_step:make_step", examples=128)

It runs in fresh processes, some of them alive side by side, so it should not need a port, a file or
all of a GPU's memory (`tf.config.experimental.set_memory_growth`) for itself alone.
Before it is timed the harness builds it a second time from the same seed and runs it uncompiled: the
first losses must agree. A step that cannot be compared so, since it draws random numbers with
`tf.random`, sets `eager_reference = False`. A `check()` of its own, if it has one, is called before and
after timing.
"""

import keras
import numpy as np
import tensorflow as tf

REPLICAS = 2
GLOBAL_BATCH = 128


class Step:
    """A dense network on two mirrored replicas, digits of random noise."""

    def __init__(self) -> None:
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * REPLICAS)
        self.strategy = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(REPLICAS)])
        with self.strategy.scope():
            self.model = keras.Sequential(
                [keras.Input((784,)), keras.layers.Dense(512, activation="relu"), keras.layers.Dense(10)]
            )
            self.optimizer = keras.optimizers.SGD(0.1)
            self.optimizer.build(self.model.trainable_variables)
        generator = np.random.default_rng(1)
        x = generator.random((1024, 784), dtype=np.float32)
        y = generator.integers(0, 10, 1024)
        dataset = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(GLOBAL_BATCH, drop_remainder=True)
        self.batches = iter(self.strategy.experimental_distribute_dataset(dataset))

    def __call__(self) -> tf.Tensor:
        """One step; the mean loss of its global batch."""
        return self.train(*next(self.batches))

    @tf.function
    def train(self, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        """Forward, backward and update on every replica."""

        def replica_step(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
            with tf.GradientTape() as tape:
                losses = keras.losses.sparse_categorical_crossentropy(y, self.model(x, training=True), from_logits=True)
                loss = tf.reduce_sum(losses) / GLOBAL_BATCH
            gradients = tape.gradient(loss, self.model.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables, strict=True))
            return loss

        losses = self.strategy.run(replica_step, args=(x, y))
        return self.strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    def check(self) -> bool:
        """The replicas hold the same weights."""
        for variable in self.model.trainable_variables:
            copies = [copy.numpy() for copy in self.strategy.experimental_local_results(variable.value)]
            if not all(np.array_equal(copies[0], copy) for copy in copies[1:]):
                return False
        return True


def make_step() -> Step:
    """What the harness calls, in each fresh process."""
    return Step()
