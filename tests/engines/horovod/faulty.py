"""Horovod with ways to train that are wrong, each as a cross-device op: so that one base case serves all of them.

`missing` leaves the last process's gradient out, `mean` divides once more, `apart` joins no reduction, `alone` averages
without the last process, which trains by its own gradient, `left_out` averages all weights but one, `stale` keeps the
last process's old weights, `order` gives the last process the first one's examples, `reordered` has it shuffle its own
by another seed, and `late` begins to leave the gradient out once the gate has been passed. `auto` is Horovod as it is.
"""

from types import SimpleNamespace
from typing import Any

from harness.engines.horovod.engine import Horovod
from harness.protocol.engine import GATE_UPDATES, Trainer
from harness.protocol.messages import Request
from harness.spec.catalogue import Catalogue
from harness.trial.collectives import Sending
from harness.trial.same_work.batches import Data
from tests.engines.ops import with_ops
from tests.engines.shares import in_another_order

FAULTS = ("missing", "mean", "apart", "alone", "left_out", "stale", "order", "reordered", "late")
LAST_GOOD = GATE_UPDATES + 1
LEFT_OUT = 2
"""The number of a weight."""


def faulty_trainer(request: Request) -> Trainer:
    """A trainer with the fault of the request's cell."""
    import horovod.tensorflow as hvd
    import tensorflow as tf

    from harness.engines.horovod.loops import HorovodLoop
    from harness.engines.horovod.loops.base import Trained
    from harness.engines.horovod.loops.tape import Tape
    from harness.engines.horovod.trainer import HorovodTrainer

    cell = request.training
    fault = cell.cross_device_op
    is_last = request.member is not None and request.member.index == cell.workers - 1

    class FaultyTape(Tape):
        def taped(self, tape: Any) -> Any:
            right = super().taped(tape)

            def gradient(loss: Any, variables: list[Any]) -> list[Any]:
                own = tape.gradient(loss, variables)
                if fault == "apart":
                    return own
                late = fault == "late" and self.optimizer.iterations.value >= LAST_GOOD
                absent = tf.logical_or(fault in ("missing", "alone"), late)
                missing = tf.cast(tf.logical_and(is_last, absent), tf.float32)
                averaged = right._allreduce_grads([g * (1 - missing) for g in own], variables)
                if fault == "alone":
                    # asked in the program, so that it is the same everywhere: Horovod waits where one sends less
                    here = tf.equal(hvd.rank_op(), cell.workers - 1)
                    others = cell.workers / (cell.workers - 1)
                    return [tf.where(here, *both) for both in zip(own, [others * g for g in averaged], strict=True)]
                if fault == "left_out":
                    averaged[LEFT_OUT] = own[LEFT_OUT]
                return [g / (cell.workers if fault == "mean" else 1) for g in averaged]

            return SimpleNamespace(gradient=gradient)

        def step(self, x: Any, y: Any) -> Any:
            variables = self._trained.model.trainable_variables
            before = [variable.numpy() for variable in variables]
            loss = super().step(x, y)
            for variable, old in zip(variables, before, strict=True):
                if fault == "stale" and is_last:
                    variable.assign(old)
            return loss

    class FaultyTrainer(HorovodTrainer):
        @property
        def _op(self) -> str:
            """Beside the fault gradients travel as they are."""
            return "auto"

        @property
        def _share(self) -> slice:
            own = super()._share
            return slice(0, own.stop - own.start) if fault == "order" and is_last else own

        def _data_made(self, thread: bool = False) -> Data:
            right = super()._data_made(thread)
            return in_another_order(right) if fault == "reordered" and is_last else right

        def _around(self, trained: Trained) -> HorovodLoop:
            """What is proved beside the step is right."""
            right = fault not in FAULTS or type(trained.model).__name__ == "Products"
            return super()._around(trained) if right else FaultyTape(trained)

    return FaultyTrainer(request)


SENDING_FAULTS = ("element", "kept", "apart", "absent")
"""Of a collective by itself: the last process has a wrong element; after three steps nothing is sent; the last one puts
nothing in; or it does not come at all."""


def faulty_sending(request: Request) -> Sending:
    """A collective with the fault of the request's cell."""
    import tensorflow as tf

    from harness.engines.horovod.collectives import HorovodSending

    class FaultySending(HorovodSending):
        taken = HorovodSending.taken | {"cross_device_op"}

        def __init__(self, request: Request) -> None:
            super().__init__(request)
            self._fault, self._steps = self.cell.cross_device_op, 0
            self._is_last = self.first == self.cell.workers - 1
            self._kept = tf.zeros([self._received_elements])

        def received(self, own: Any) -> Any:
            counts = float(self._fault != "apart" or not self._is_last)
            found = super().received(counts * own)  # the same ops everywhere: Horovod matches tensors by their names
            wrong = self._fault == "element" and self._is_last
            return tf.concat([found[:-1], found[-1:] + 1], 0) if wrong else found

        def step(self) -> Any:
            self._steps += 1
            absent = self._fault == "absent" and self._is_last
            if not absent and (self._fault != "kept" or self._steps <= 3):
                self._kept = super().step()
            return self._kept

    return FaultySending(request)


class FaultyHorovod(Horovod):
    """Horovod and what is wrong with it."""

    def catalogue(self) -> Catalogue:
        return with_ops(super().catalogue(), (*FAULTS, *SENDING_FAULTS))

    def sending(self, request: Request) -> Sending:
        return faulty_sending(request)

    def trainer(self, request: Request) -> Trainer:
        return faulty_trainer(request)
