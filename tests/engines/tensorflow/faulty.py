"""TensorFlow with ways to train in several processes that are wrong, each as a cross-device op of one replica a worker.

`missing` leaves the last worker's gradient out, `mean` divides where a sum belongs, `apart` adds no gradients up,
`alone` adds up all but the last worker's, which trains by its own, `left_out` adds up those of all weights but one,
`stale` keeps the last worker's old weights, `order` gives the last worker the first one's examples, which must come
from the host, `reordered` shuffles its own by another seed, and `late` begins to leave the gradient out once the gate
has been passed. `auto` is TensorFlow as it is.
Faults of replicas in one process are in `tests/planted.py`.
"""

import dataclasses
from typing import Any

from harness.engines.tensorflow.engine import TensorFlow
from harness.protocol.engine import GATE_UPDATES, Trainer
from harness.protocol.messages import Request
from harness.spec.catalogue import Catalogue
from tests.engines.ops import with_ops

FAULTS = ("missing", "mean", "apart", "alone", "left_out", "stale", "order", "reordered", "late")
LAST_GOOD = GATE_UPDATES + 1
LEFT_OUT = 2
"""The number of a weight."""


def faulty_trainer(request: Request) -> Trainer:
    """A trainer with the fault of the request's cell."""
    import tensorflow as tf

    from harness.engines.tensorflow.loops import loops
    from harness.engines.tensorflow.trainer import TensorFlowTrainer
    from harness.engines.tensorflow.training import Training

    cell = request.training
    fault = cell.cross_device_op
    is_last = request.member is not None and request.member.index == cell.workers - 1

    class OfTheFirst(Training):
        """A worker's training on the examples of the first one."""

        worker = 0

    class FaultyTrainer(TensorFlowTrainer):
        """The optimizer and the data of what is timed are wrong; the reference has its own."""

        def __init__(self, request: Request) -> None:
            super().__init__(request)
            optimizer = self._training.optimizer
            given = {field.name: getattr(self._training, field.name) for field in dataclasses.fields(Training)}
            if fault == "order" and is_last:
                self._loop = loops()[cell.loop].build(OfTheFirst(**given))
            elif fault == "reordered":
                seed = request.seed + is_last
                otherwise = {**given, "request": request.model_copy(update={"seed": seed})}
                self._loop = loops()[cell.loop].build(Training(**otherwise))
            elif fault == "stale" and is_last:
                optimizer.update_step = lambda *_: None
            elif fault in FAULTS:
                self._summed = optimizer._all_reduce_sum_gradients
                optimizer._all_reduce_sum_gradients = self._wrongly_summed

        def _wrongly_summed(self, pairs: Any) -> Any:
            own, weights = zip(*pairs, strict=True)
            sent = [gradient * self._counts for gradient in own]
            summed = [gradient for gradient, _ in self._summed(list(zip(sent, weights, strict=True)))]
            if fault == "apart" or (fault == "alone" and is_last):
                summed = own
            if fault == "mean":
                summed = [gradient / cell.workers for gradient in summed]
            if fault == "left_out":
                summed[LEFT_OUT] = own[LEFT_OUT]
            return list(zip(summed, weights, strict=True))

        @property
        def _counts(self) -> Any:
            """What this worker's gradients are multiplied by."""
            late = fault == "late" and self._training.optimizer.iterations >= LAST_GOOD
            absent = tf.logical_and(is_last, tf.logical_or(fault in ("missing", "alone"), late))
            return 1 - tf.cast(absent, tf.float32)

    right = cell.model_copy(update={"cross_device_op": "auto"}) if fault in FAULTS else cell
    return FaultyTrainer(request.model_copy(update={"cell": right}))


class FaultyTensorFlow(TensorFlow):
    """TensorFlow and what is wrong with it."""

    def catalogue(self) -> Catalogue:
        return with_ops(super().catalogue(), FAULTS)

    def trainer(self, request: Request) -> Trainer:
        return faulty_trainer(request)
