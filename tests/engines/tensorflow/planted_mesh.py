"""A fault to plant in what DTensor computes: `--model` takes `dropped_shard_model` of it."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from harness.engines.tensorflow.loops import _mesh


def right_model() -> Any:
    """A user's own model, without a layout over `model`."""
    return keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Flatten(), keras.layers.Dense(10)])


def dropped_shard_model() -> Any:
    """The same, and the first replica's share of the batch moves no weight: its loss is right and its gradient gone."""

    def part_of_mean(training: Any, y: Any, outputs: Any) -> Any:
        examples = training.loss(y, outputs)
        counts = np.ones(training.cell.global_batch_size, np.float32)
        counts[: training.cell.replica_batch_size] = 0
        kept = examples * counts + tf.stop_gradient(examples * (1 - counts))
        return tf.reduce_sum(kept) / training.cell.global_batch_size

    _mesh.part_of_mean = part_of_mean  # type: ignore[assignment]
    return right_model()
