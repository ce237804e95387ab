"""ResNet-20 as in the paper."""

from typing import Any

from harness.engines.tensorflow.workloads import load_workload


def test_it_has_twenty_layers_with_weights_and_the_papers_270_000_parameters(tf: Any) -> None:  # noqa: ARG001
    model = load_workload("resnet20").build((32, 32, 3), 10)
    kinds = [type(layer).__name__ for layer in model.layers]
    assert kinds.count("Conv2D") + kinds.count("Dense") == 20
    assert sum(variable.numpy().size for variable in model.trainable_variables) == 269_722


def test_every_convolution_is_followed_by_batch_normalisation(tf: Any) -> None:  # noqa: ARG001
    model = load_workload("resnet20").build((32, 32, 3), 10)
    kinds = [type(layer).__name__ for layer in model.layers]
    assert kinds.count("BatchNormalization") == kinds.count("Conv2D") == 19


def test_its_stages_halve_the_size_and_double_the_filters(tf: Any) -> None:  # noqa: ARG001
    model = load_workload("resnet20").build((32, 32, 3), 10)
    sums = [tuple(layer.output.shape[1:]) for layer in model.layers if type(layer).__name__ == "Add"]
    assert sums == [(32, 32, 16)] * 3 + [(16, 16, 32)] * 3 + [(8, 8, 64)] * 3
