"""The multilayer perceptron."""

from typing import Any

from harness.engines.tensorflow.workloads import load_workload


def test_it_has_two_hidden_layers_of_512(tf: Any) -> None:  # noqa: ARG001 - sets TensorFlow up
    model = load_workload("mlp").build((28, 28, 1), 10)
    assert [layer.units for layer in model.layers if hasattr(layer, "units")] == [512, 512, 10]
    assert model.count_params() == 784 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10
