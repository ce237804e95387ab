"""A cell under TensorFlow, as a trial sees it: built, trained by a loop, and open to the gate."""

import itertools
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from harness.engines.tensorflow.counting import updates_due
from harness.engines.tensorflow.data.pipeline import batches_ahead
from harness.engines.tensorflow.loops import instrument_of, loops
from harness.engines.tensorflow.memory import forget_peak, peak_device_memory_bytes
from harness.engines.tensorflow.plants import check_loop
from harness.engines.tensorflow.raw_variables import RawVariables
from harness.engines.tensorflow.reference import arithmetic_of, continue_reference, reference_of_each, run_reference
from harness.engines.tensorflow.reference.others import must_not_need_others
from harness.engines.tensorflow.server_state import FusedOptimizer, StatelessModel
from harness.engines.tensorflow.state import capture
from harness.engines.tensorflow.strategies import strategies
from harness.engines.tensorflow.trace import tracer_of
from harness.engines.tensorflow.training import build
from harness.engines.tensorflow.workloads import built_text
from harness.protocol.engine import KnownStep, Pace, Tracer
from harness.protocol.messages import Request
from harness.protocol.state import Reference, VariableState
from harness.record.trial import Executed, Resources
from harness.spec.axes import INPUT, TABLE
from harness.trial.same_work.fed import check_input

KEEP_ORDER = ("prefetch", "device_prefetch", "cache", "parallel_calls")
"""Axes of the input by which examples come in no other order. Of any other, such as one that somebody adds, nobody
knows."""
MAY_REORDER = [key for key, axis in TABLE.items() if axis.shown_by == INPUT and key not in ("data", *KEEP_ORDER)]


class TensorFlowTrainer:
    """See `harness.protocol.engine.Trainer`."""

    resting: Callable[[], AbstractContextManager[object]] = nullcontext

    def __init__(self, request: Request) -> None:
        cell = request.training
        check_loop(request.plant, cell.loop)
        self._request = request
        self._training = build(request)
        self._strategy = strategies()[cell.strategy]
        name = request.instrument
        self._loop = instrument_of(self._training, name) if name else loops()[cell.loop].build(self._training)
        self._raw = RawVariables(self._training.model, self._training.optimizer)
        self._needs_no_others = False
        """Whether it was tried that a late update can be proved by what this process knows."""
        self._in_turn = itertools.cycle(self._training.late_batches)
        self._late = self._training.late_batches[0]
        """The global batch of the last `one_more`."""
        self._compiled_anew = False
        """Whether a step that was to be proved was not of the program that is timed."""
        self._hardest: str | None = None
        """The fault that the first updates would have shown least, of those that one update alone can show."""

    @property
    def resources(self) -> Resources:
        """The replicas' devices, and the sizes of the thread pools."""
        return self._training.devices.resources(self._request, not self._request.training.asynchronous)

    @property
    def least_steps(self) -> int:
        """As the loop says; of a tf.data service, which is asked for each pass anew, a pass at least."""
        cell, source = self._training.cell, self._training.source
        examples = source.info(Path(self._request.data_dir)).examples if cell.data_service else None
        return max(self._loop.least_steps, math.ceil((examples or 1) / cell.global_batch_size))

    @property
    def ahead(self) -> int:
        """Of the input pipeline, on the host and on the device."""
        training = self._training
        batch = training.cell.global_batch_size / training.cell.workers
        return batches_ahead(training.source, training.cell, training.input_shape, training.input, batch)

    def check_reduction(self) -> str | None:
        """Known values through the strategy, in the shapes of the model's gradients; whole numbers have none."""
        import tensorflow as tf

        model = self._training.model
        weights = (model.template if isinstance(model, StatelessModel) else model).trainable_variables
        sent = [(tuple(w.shape), w.dtype) for w in weights if tf.as_dtype(w.dtype).is_floating]
        return self._strategy.check_reduction(self._training.strategy, sent)

    def state(self) -> list[VariableState]:
        """The model's variables, then the optimizer's."""
        return capture(self._training.model, self._training.optimizer)

    def updates(self) -> int:
        """The optimizer's iterations."""
        return int(self._training.optimizer.iterations.numpy())

    def due(self, steps: int) -> tuple[int, dict[str, str]]:
        """As Keras' optimizers have it."""
        return updates_due(self._training.optimizer, steps, self._training.cell.replicas_per_update)

    def reference(self, initial: Sequence[VariableState]) -> Reference:
        """A second model, on one device, eagerly and without tf.distribute."""
        self._must_have_a_reference()
        return self._remembered([run_reference(self._training, initial)])[0]

    def reference_of_each(self, befores: Sequence[Sequence[VariableState]], runs: int) -> list[Reference]:
        """As `reference`, each update by itself."""
        self._must_not_need_others(befores[-1])
        return self._remembered(reference_of_each(self._training, befores, runs))

    def _remembered(self, references: list[Reference]) -> list[Reference]:
        """The same; which fault they would show least is remembered."""
        sights = [(share, str(name)) for of in references for name, share in (of.sight or {}).items()]
        self._hardest = min(((share, name) for share, name in sights if name != "delayed"), default=(0.0, None))[1]
        return references

    def _must_not_need_others(self, before: Sequence[VariableState]) -> None:
        """Asked once: whether a share depends on what another worker alone knows is the model's."""
        if not self._needs_no_others:
            must_not_need_others(self._training, before)
            self._needs_no_others = True

    def _must_have_a_reference(self) -> None:
        """Raises Unprovable where nothing can be held against the step, with the reason."""
        self._raw.must_be_as_built()

    def run(self, pace: Pace) -> None:
        """The loop; what goes wrong with the data that it reads is told as the source tells it."""
        with self._training.source.reading():
            self._loop.run(pace)

    def one_more(self) -> KnownStep:
        """A step of the loop."""
        traced, self._late = self._loop.traces(), next(self._in_turn)
        loss = float(self._loop.step_on(*self._late))
        self.synchronise()
        self._compiled_anew |= self._loop.traces() != traced
        return KnownStep(loss, not self._compiled_anew)

    def reference_of_one_more(self, before: Sequence[VariableState]) -> Reference:
        """As the first updates', but traced; of faults only the one that they would have shown least is tried again."""
        self._must_have_a_reference()
        self._must_not_need_others(before)
        return continue_reference(self._training, before, self._late, self._hardest)

    def synchronise(self) -> None:
        """As the loop says."""
        self._loop.synchronise()

    @property
    def agree(self) -> Callable[[float], float]:
        """As the strategy says."""
        return self._training.agree

    def executed(self) -> Executed:
        """What the traced program holds, and what it does not: the stages of the input, the optimizer's constants, the
        arithmetic, and what the model brings."""
        made = self._training.optimizer
        optimizer = built_text(made.configured if isinstance(made, FusedOptimizer) else made)
        found = {
            "input": self._training.input + self._training.hand_over,
            "arithmetic": self._arithmetic(),
            "optimizer": optimizer,
            "own_training": self._training.own_training,
        }
        return self._loop.executed().model_copy(update=found)

    def _arithmetic(self) -> str:
        """Of float32 on GPUs of this process; a coordinator's are its workers', which it cannot ask."""
        cell = self._training.cell
        known = cell.precision == "float32" and "GPU" in self._training.devices.names[0] and not cell.asynchronous
        return arithmetic_of(self._training) if known else ""

    def tracer(self, leads: bool) -> Tracer | None:
        """TensorFlow's profiler."""
        made = self._training.optimizer
        # of parameter servers the leader computes nothing, and a fused optimizer's ops are below no name
        unnamed = self._request.training.asynchronous or isinstance(made, FusedOptimizer)
        updating = getattr(made, "inner_optimizer", made)  # what scales the loss has no ops of its own name
        return tracer_of(self._request, leads, "" if unnamed else updating.name)

    @property
    def alone(self) -> Callable[[], None] | None:
        """As the loop says."""
        return self._loop.alone

    @property
    def staleness(self) -> dict[int, int] | None:
        """Of parameter servers."""
        return self._loop.staleness

    @property
    def labels(self) -> str:
        """As the loop saw them."""
        return self._loop.seen.digest

    def check_input(self) -> dict[str, str | None]:
        """Where the loop sees the labels, and no axis asks for another order than that of the seed."""
        cell = self._request.training
        if any(cell.get(key) != type(cell).model_fields[key].default for key in MAY_REORDER):
            return {}
        return check_input(self._request, self._loop.seen.digests)

    def forget_peak(self) -> None:
        """Of this process's devices."""
        if not self._request.training.asynchronous:
            forget_peak(self._training.devices.names)

    def peak_device_memory_bytes(self) -> int | None:
        """Of the replicas' GPUs since warm-up, where they are this process's: TensorFlow counts its own alone."""
        if self._request.training.asynchronous:
            return None
        return peak_device_memory_bytes(self._training.devices.names)
