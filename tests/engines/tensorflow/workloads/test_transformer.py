"""The Transformer encoder."""

from typing import Any

import numpy as np

from harness.engines.tensorflow.workloads import load_workload


def test_it_attends_over_49_patches_of_a_28_by_28_image(tf: Any) -> None:  # noqa: ARG001
    model = load_workload("transformer").build((28, 28, 1), 10)
    assert model.get_layer("positions").output.shape == (None, 49, 64)
    attention = [layer for layer in model.layers if type(layer).__name__ == "MultiHeadAttention"]
    assert [(layer.num_heads, layer.key_dim) for layer in attention] == [(4, 16), (4, 16)]


def test_where_a_patch_lies_matters(tf: Any) -> None:  # noqa: ARG001
    model = load_workload("transformer").build((28, 28, 1), 10)
    left, right = np.zeros((2, 1, 28, 28, 1), np.float32)
    left[:, 0:4, 0:4], right[:, 0:4, 24:28] = 1, 1
    assert not np.allclose(model(left), model(right), atol=1e-5)


def test_an_image_of_another_size_gets_as_many_positions_as_patches(tf: Any) -> None:  # noqa: ARG001
    model = load_workload("transformer").build((32, 32, 3), 10)
    assert model.get_layer("positions").output.shape == (None, 64, 64)
