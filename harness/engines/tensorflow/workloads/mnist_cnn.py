"""The two-convolution MNIST network that the `tf.distribute` tutorials train."""

from harness.engines._keras.mnist_cnn import build, cut
from harness.engines.tensorflow.workloads.base import Workload

WORKLOAD = Workload(
    name="mnist_cnn",
    summary="two convolutions, 28×28×1, 0.12 M weights: the tf.distribute tutorials' model",
    input_shape=(28, 28, 1),
    build=build,
    cut=cut,
)
