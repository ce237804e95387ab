"""ResNet-20 for 32×32 images."""

from harness.engines._keras.resnet20 import build
from harness.engines.tensorflow.workloads.base import Workload

WORKLOAD = Workload(
    name="resnet20",
    summary="ResNet-20 with batch normalisation, 32×32×3, 0.27 M weights (He et al. 2015)",
    input_shape=(32, 32, 3),
    build=build,
)
