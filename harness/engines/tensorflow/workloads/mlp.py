"""A multilayer perceptron: many weights for little computation, so communication weighs heavily."""

from harness.engines._keras.mlp import build, cut
from harness.engines.tensorflow.workloads.base import Workload

WORKLOAD = Workload(
    name="mlp",
    summary="two dense layers of 512, 28×28×1 or a table, 0.67 M weights: much to reduce for little to compute",
    input_shape=(28, 28, 1),
    build=build,
    cut=cut,
    takes=("images", "table"),
)
