"""`DistributedGradientTape`: gradients are averaged as the tape gives them, as Horovod's TensorFlow 2 examples do."""

from typing import Any

from harness.engines.horovod.loops.base import HorovodLoop, HorovodLoopKind


class Tape(HorovodLoop):
    """Horovod's tape around TensorFlow's."""

    def taped(self, tape: Any) -> Any:
        """With Horovod's own defaults but for compression."""
        import horovod.tensorflow as hvd

        return hvd.DistributedGradientTape(tape, **self._trained.how())


LOOP = HorovodLoopKind("tape", "a tf.function with hvd.DistributedGradientTape", Tape)
