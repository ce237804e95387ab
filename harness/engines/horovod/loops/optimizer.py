"""`DistributedOptimizer` around Keras' optimizer, under a step of one's own."""

from typing import Any

from harness.engines.horovod.loops.base import HorovodLoop, HorovodLoopKind


class WrappedOptimizer(HorovodLoop):
    """Horovod's wrapper, which is to average the gradients that it is given."""

    def wrapped(self, optimizer: Any) -> Any:
        """With Horovod's own defaults but for compression."""
        import horovod.tensorflow.keras as hvd

        return hvd.DistributedOptimizer(optimizer, **self._trained.how())


LOOP = HorovodLoopKind(
    "optimizer", "a tf.function with hvd.DistributedOptimizer around Keras' optimizer", WrappedOptimizer
)
