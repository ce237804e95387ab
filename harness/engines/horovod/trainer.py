"""A cell under Horovod, as a trial sees it: built, trained by a loop, and open to the gate."""

import functools
import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, SupportsFloat

import keras
import numpy as np
import tensorflow as tf

from harness.engines._keras.optimizers import slot_of
from harness.engines.horovod import group
from harness.engines.horovod.compression import COMPRESSIONS
from harness.engines.horovod.instruments import Instrument, holds_of_instrument, instrument_of
from harness.engines.horovod.loops import HorovodLoop, loops
from harness.engines.horovod.loops.base import Trained
from harness.engines.horovod.loops.fit import Fit
from harness.engines.horovod.models import built, mean_of_outputs, products
from harness.engines.horovod.reference import KerasShares
from harness.engines.tensorflow.devices.base import set_threads, threads_here
from harness.engines.tensorflow.executed import inspect
from harness.engines.tensorflow.workloads import optimizer_of
from harness.protocol.engine import KnownStep, Pace
from harness.protocol.messages import Request
from harness.protocol.state import VariableState
from harness.record.explain import IN_ONE_CALL, WHOLE
from harness.record.trial import Executed, Resources
from harness.trial.instruments import Holds
from harness.trial.same_work.batches import CLASSES
from harness.trial.same_work.catalogue import NONE
from harness.trial.same_work.instruments import Step, TakenApart
from harness.trial.same_work.optimizers import OPTIMIZERS
from harness.trial.same_work.recovery import Recovering
from harness.trial.same_work.state import State, StateOrder
from harness.trial.same_work.trainer import MeanLoss, ReplicaAProcess, of_this_process, refuse_what_is_tensorflows

Array = np.ndarray[Any, Any]
UNLIKE: dict[str, str] = {"processes": "one a replica"}
"""What is not as under TensorFlow."""
PREFIX = "state"
"""What the files of a checkpoint begin with."""
FUSED = "Horovod joins gradients that are ready in a cycle of {} ms, up to {} bytes, whatever the program says"
NOT_TAKEN = "none: in one process Horovod's tape takes the branch without them"
NO_XLA = "Horovod's op for XLA cannot be built with this TensorFlow"
ITS_CYCLE, ITS_DEFAULT = "1", str(128 * 2**20)


class AgreedPace:
    """A pace that is told the mean loss over all processes of each one's own."""

    def __init__(self, pace: Pace, agree: Callable[[float], float]) -> None:
        self.begin, self._end, self._agree = pace.begin, pace.end, agree

    def end(self, loss: SupportsFloat) -> None:
        """See `Pace`."""
        self._end(MeanLoss(loss, self._agree))


class HorovodTrainer(TakenApart, Recovering, ReplicaAProcess):
    """See `harness.protocol.engine.Trainer`."""

    title = "Horovod"
    resting = staticmethod(group.resting)
    _instead: Instrument | None = None
    """The one that is timed."""

    def __init__(self, request: Request) -> None:
        cell = request.training
        refuse_what_is_tensorflows(request, self.title, NO_XLA)
        self._request, self._cell = request, cell
        set_threads(request)
        tf.config.set_visible_devices([], "GPU")
        model = built(cell.model, request.seed, CLASSES)
        if cell.packing != "default":
            size = int(cell.packing.partition("=")[2])
            os.environ[group.FUSION] = str(size or sum(4 * int(np.prod(v.shape)) for v in model.trainable_variables))
        if cell.cycle_time:
            os.environ[group.CYCLE] = str(cell.cycle_time)
        if request.member is not None:
            group.begin(request.member, request.others_limit_s)
        self._data = self._data_made(thread=True)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self._way = self._around(Trained(model, optimizer_of(model, cell.optimizer), loss, COMPRESSIONS[self._op].name))
        self._weights = {f"{i}/{v.path}": v for i, v in enumerate(model.trainable_variables)}
        self._statistics = {f"{i}/{v.path}": v for i, v in enumerate(model.non_trainable_variables)}
        self._layout = StateOrder(list(self._weights), list(self._statistics), OPTIMIZERS[cell.optimizer].slots, 0)
        self._last: tuple[Any, Any] | None = None

    def _around(self, trained: Trained) -> HorovodLoop:
        """The loop's way; no strategy has nothing to average, so that it is one step whatever the loop is."""
        return HorovodLoop(trained) if self._cell.strategy == NONE else loops()[self._cell.loop].build(trained)

    @property
    def resources(self) -> Resources:
        """Of this process, whose ops are TensorFlow's."""
        return of_this_process(self._request, threads_here())

    @property
    def _sent(self) -> tuple[list[tuple[int, ...]], str]:
        return [tuple(v.shape) for v in self._weights.values()], COMPRESSIONS[self._op].dtype

    def averaged(self, patterns: Sequence[Array], weight: float) -> list[Array]:
        """As what gradient descent at the rate 1 makes of weights that are zeros, by a step of the loop's."""
        model = products(patterns)
        optimizer = keras.optimizers.SGD(1.0)
        way = self._around(Trained(model, optimizer, mean_of_outputs, COMPRESSIONS[self._op].name))
        way.step(tf.constant([[weight]], tf.float32), tf.constant([[0.0]]))
        return [-variable.numpy() for variable in model.trainable_variables]

    def state(self) -> list[VariableState]:
        """This process's weights, statistics, slots and count."""
        optimizer = self._way.optimizer  # Horovod's wrapper cannot be asked for its `variables`
        slots = {slot: dict(zip(self._weights, slot_of(optimizer, slot), strict=True)) for slot in self._layout.slots}
        state = State(self._weights, slots, self._statistics, optimizer.iterations)
        return self._layout.captured(state, _copy)

    def updates(self) -> int:
        """As Keras' optimizer counts them."""
        return int(self._way.optimizer.iterations)

    @property
    def _remarks(self) -> dict[str, str]:
        return {}

    @functools.cached_property
    def _single(self) -> KerasShares:
        model = built(self._cell.model, self._request.seed, CLASSES)
        arithmetic = COMPRESSIONS[self._op].arithmetic
        return KerasShares(model, self._layout, OPTIMIZERS[self._cell.optimizer], self._cell.workers, arithmetic)

    def run(self, pace: Pace) -> None:
        """Batch after batch."""
        if self._instrument and isinstance(self._way, Fit):
            self._way.goes_on = self._judged
        elif self._instrument:
            self._run(pace, lambda loss: MeanLoss(loss, self.agree))
            return
        self._way.run(self._fed(self._placed), AgreedPace(pace, self.agree))

    def _step(self, x: Any, y: Any) -> Any:
        return self._way.step(x, y)

    def _without(self, name: str) -> Step:
        self._instead = instrument_of(name, self._way)
        function = self._instead.whole.called
        if name != IN_ONE_CALL:
            return function
        return lambda x, y, count: function(x, y, tf.constant(count))

    def _held_by(self, step: Step, batch: tuple[Any, ...]) -> Holds:
        """What is run for the first time shows what is left of it: of the whole step another one that is alike."""
        instrument = self._instead
        if step == self._step or instrument is None:
            instrument = instrument_of(WHOLE, self._way)
        x, y, *count = batch
        return holds_of_instrument(instrument, (x, y, *map(tf.constant, count)), self._cell)

    def _placed(self, batch: tuple[Array, Array]) -> tuple[Any, Any]:
        x, y = batch
        self._last = tf.constant(x), tf.constant(y)
        return self._last

    def _known_step(self, batch: tuple[Any, Any]) -> KnownStep:
        loss = self._way.step(*self._placed(batch))
        return KnownStep(self.agree(float(loss)), same_program=True)

    @functools.cached_property
    def _variables(self) -> list[Any]:
        """TensorFlow's, of model and optimizer."""
        optimizer = self._way.optimizer.variables
        return [variable.value for variable in (*self._weights.values(), *self._statistics.values(), *optimizer)]

    @functools.cached_property
    def _checkpoint(self) -> Any:
        return tf.train.Checkpoint(**{f"variable_{n}": variable for n, variable in enumerate(self._variables)})

    def _write(self, folder: Path) -> None:
        self._checkpoint.write(str(folder / PREFIX))

    def _read(self, folder: Path) -> None:
        self._checkpoint.read(str(folder / PREFIX)).assert_consumed()

    def restore(self) -> int:
        """The first process reads, and broadcasts what it has to all, as Horovod's documentation has it."""
        found = 0 if self._rank else super().restore()
        return found if self._request.member is None else group.broadcast(found, self._variables)

    def _mean(self, value: float) -> float:
        return group.mean(value)

    def _alone(self) -> None:
        assert self._last is not None
        self._way.alone(*self._last)

    def executed(self) -> Executed:
        """The traced step, and the input. How many reductions become of its gradients is not in the program; the most
        bytes that are joined and the length of a cycle make it another one."""
        program = self._way.program() if self._instead is None else self._instead.whole.program()
        found = inspect(program, self._cell)
        unlike = UNLIKE | self._data.unlike
        told: dict[str, Any] = {"input": self._data.stages, "unlike": unlike}
        if found.packs and self._cell.workers == 1:
            told |= {"unlike": unlike | {"packs": NOT_TAKEN}, "packs": 0, "pack_bytes": []}
        elif found.packs:
            joined = os.environ.get(group.CYCLE, ITS_CYCLE), os.environ.get(group.FUSION, ITS_DEFAULT)
            made_of = hashlib.sha256(f"{found.fingerprint} {joined}".encode()).hexdigest()[:16]
            fused = {"packs": FUSED.format(*joined)}
            told |= {"unlike": unlike | fused, "packs": None, "pack_bytes": [], "fingerprint": made_of}
        return found.model_copy(update=told)


def _copy(_kind: str, variable: Any) -> tuple[Array, ...]:
    """Copied: a step overwrites it."""
    value = np.array(variable)
    return (value.astype(np.int32) if value.dtype.kind == "i" else value,)
