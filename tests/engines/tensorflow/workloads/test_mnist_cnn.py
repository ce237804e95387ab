"""The MNIST CNN of the tutorials."""

from typing import Any

from harness.engines.tensorflow.workloads import load_workload


def test_it_is_the_tutorials_model(tf: Any) -> None:  # noqa: ARG001 - sets TensorFlow up
    model = load_workload("mnist_cnn").build((28, 28, 1), 10)
    kinds = [type(layer).__name__ for layer in model.layers]
    assert kinds == ["Conv2D", "MaxPooling2D", "Conv2D", "MaxPooling2D", "Flatten", "Dense", "Dense"]
    assert [layer.filters for layer in model.layers if hasattr(layer, "filters")] == [32, 64]
    assert model.count_params() == 121_930
