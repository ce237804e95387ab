"""A collective by itself under Horovod: each process's buffer through Horovod's op in a `tf.function`, over Gloo."""

import functools
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from harness.engines.horovod import group
from harness.engines.tensorflow.devices.base import set_threads, threads_here
from harness.engines.tensorflow.executed import inspect
from harness.errors import Unsupported
from harness.protocol.messages import Request
from harness.record.trial import CALL, Executed, Resources
from harness.trial.collectives import ROOT
from harness.trial.same_work.collectives import SameSending
from harness.trial.same_work.trainer import of_this_process

Array = np.ndarray[Any, Any]
CALLED = "of a traced function, and the wait for Horovod's next cycle"


class HorovodSending(SameSending):
    """See `Sending`. What is received is an output of the function."""

    engine = "horovod"
    title = "Horovod"

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        if self.cell.collective == "reduce_scatter" and not hasattr(hvd, "reducescatter"):
            raise Unsupported("this Horovod has no reducescatter")
        set_threads(request)
        tf.config.set_visible_devices([], "GPU")
        if request.member is not None:
            group.begin(request.member, request.others_limit_s)
        self._sent = tf.Variable(tf.zeros([self.cell.elements]), trainable=False)

    @property
    def resources(self) -> Resources:
        """Of this process, whose ops are TensorFlow's."""
        return of_this_process(self._request, threads_here())

    def received(self, own: Any) -> Any:
        """What this process receives that sends `own`, [elements], traced."""
        match self.cell.collective:
            case "all_reduce":
                return hvd.allreduce(own, op=hvd.Sum)
            case "all_gather":
                return hvd.allgather(own)
            case "reduce_scatter":
                return hvd.reducescatter(own, op=hvd.Sum)
        return hvd.broadcast(own, root_rank=ROOT)

    @functools.cached_property
    def _program(self) -> Any:
        @tf.function(autograph=False)  # type: ignore[untyped-decorator]
        def program() -> Any:
            return self.received(self._sent.read_value())

        return program

    def fill(self, own: Sequence[Array]) -> None:
        """The one variable."""
        [values] = own
        self._sent.assign(values)

    def step(self) -> Any:
        """One call of the function."""
        return self._program()

    def wait(self, received: Any) -> None:
        """An element is on the host."""
        received[0].numpy()

    def arrays(self, received: Any) -> Sequence[Array]:
        """The one tensor."""
        return [received.numpy()]

    def agree(self, value: float) -> float:
        """The mean over the processes."""
        return group.mean(value)

    def resting(self) -> AbstractContextManager[object]:
        """Nothing is exchanged."""
        return group.resting()

    def executed(self) -> Executed:
        """What the traced function holds; how Horovod joins it with others is not in it."""
        found = inspect(self._program.get_concrete_function(), self.cell)
        told: dict[str, Any] = {"differs_from_request": None, "packs": None, "pack_bytes": [], "unlike": {CALL: CALLED}}
        return found.model_copy(update=told)
