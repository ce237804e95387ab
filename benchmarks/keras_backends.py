"""Under which backend keras.distribution distributes: `python benchmarks/keras_backends.py tensorflow`, or jax, torch.

Trains a dense layer under a `DataParallel` of two devices, as Keras documents it, and says on how many devices its
weights are afterwards. Needs an interpreter that has Keras and the backend.
"""

import os
import sys

FLAGS = "--xla_force_host_platform_device_count=2"


def main() -> None:
    """Print what came of it; an argument names the backend."""
    backend = sys.argv[1] if len(sys.argv) > 1 else "jax"
    os.environ |= {"KERAS_BACKEND": backend, "XLA_FLAGS": FLAGS, "JAX_PLATFORMS": "cpu", "NPROC": "4"}
    import keras
    import numpy as np

    if backend == "tensorflow":
        import tensorflow as tf

        [cpu, *_] = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    try:
        devices = keras.distribution.list_devices()
    except AttributeError as error:
        print(f"{backend}: list_devices: {error}")
        devices = ["cpu:0", "cpu:1"]
    keras.distribution.set_distribution(keras.distribution.DataParallel(devices=devices))
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(np.ones((8, 4), np.float32), np.zeros(8, np.int32), batch_size=8, verbose=0)
    weight = model.trainable_variables[0].value
    held = len(getattr(weight, "addressable_shards", [weight]))
    print(f"{backend}: fit trained without an error; its weights are on {held} of {len(devices)} devices")


if __name__ == "__main__":
    main()
