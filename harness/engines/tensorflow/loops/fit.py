"""Model.fit, since most users train that way; windows are cut by a callback."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harness.engines._keras.paced_fit import ENDLESS, functions_of_keras, loss_in, paced_windows, traced_by_keras
from harness.engines.tensorflow.loops.base import Loop, LoopKind
from harness.engines.tensorflow.loops.custom import batches_of, on_replicas
from harness.engines.tensorflow.structures import Weighted, as_keras_takes, has_targets, stacked
from harness.engines.tensorflow.train_step import compile_as_asked, refuse_own_compile
from harness.errors import Unsupported
from harness.protocol.engine import GATE_UPDATES, Pace

if TYPE_CHECKING:
    import tensorflow as tf

    from harness.engines.tensorflow.training import Training

ALWAYS_SEVERAL = (
    "Keras' program of several steps makes no single one that could be proved under a strategy, where it does not ask "
    "whether batches without end have ended; use --loop custom"
)


class FitLoop(Loop):
    """One call of `Model.fit`, one epoch; what fit itself costs a step is part of its time.

    Under TensorFlow it reads each step's metrics before it begins the next, with callbacks or without (Keras'
    `IS_THREAD_SAFE`), so counting steps in a callback makes it wait for nothing that it would not wait for.
    """

    def __init__(self, training: "Training") -> None:
        super().__init__(training)
        if training.request.member is not None:
            raise Unsupported(
                "loop 'fit': Keras 3's Model.fit does not run in a cluster (MultiWorkerMirroredStrategy: ValueError: "
                "Attempt to convert a value (PerReplica…)); use --loop custom"
            )
        if training.cell.mesh:
            raise Unsupported("loop 'fit': Keras 3's Model.fit does not train on a DTensor mesh; use --loop custom")
        if training.cell.micro_batches > 1:
            raise Unsupported(
                "micro_batches: loop 'fit' gives Keras' step a replica's whole batch; use --loop custom, or what Keras "
                "has, which adds up over steps (--optimizer 'sgd(gradient_accumulation_steps=4)')"
            )
        refuse_own_compile(training.model, "fit")
        if training.cell.strategy == "central_storage" and training.cell.replicas > 1:
            raise Unsupported(
                "loop 'fit': under central_storage each replica adds to the one mean of Keras' loss what all have, so "
                "that it grows with every step, and the loss is nan after a hundred or so; use --loop custom"
            )
        if training.cell.strategy != "none" and training.loss and not has_targets(training.batches[0][1]):
            raise Unsupported(
                "loop 'fit': under a strategy Keras builds a compiled loss with targets, and the data have none; use "
                "--loop custom, or compile the model without a loss"
            )
        self._a_call = training.cell.steps_per_execution
        self._may_make_one = training.cell.strategy == "none"
        """Whether what makes several steps of an iterator would make one of an iterator that ends after one batch."""
        if self._a_call > 1 and training.source.on_device:
            raise Unsupported(
                f"loop 'fit': of '{training.source.name}' Keras makes no two steps in one call, since that takes a "
                "tf.data iterator; use --loop custom, or other data"
            )
        if self._a_call > 1 and not self._may_make_one:
            training.unprovable.append(ALWAYS_SEVERAL)
        with training.strategy.scope():
            compile_as_asked(training, training.model, training.optimizer, self._a_call)
        training.model.make_train_function()
        self._step: Callable[[Any], Any] = training.model.train_function
        """What Keras made to call for each step: (iterator) -> the step's metrics."""
        self._input: Any = None

    def run(self, pace: Pace) -> None:
        """Train until `pace` says 0."""
        import tensorflow as tf

        training, model = self._training, self._training.model
        if training.source.on_device:
            placed = batches_of(training)
            model.train_function = lambda _: self._step(placed)
            # fit cannot take batches that lie on the devices: it gets one for its shapes, and no step sees it
            offered: Any = tf.data.Dataset.from_tensors(training.batches[0]).repeat()
        else:
            offered = training.distributed(self._as_given(training.dataset()))
        paced = paced_windows(pace, a_call=self._a_call)
        if self._a_call > 1:
            model.train_function = lambda batches: self._step(self._proved_first(batches, paced.windows))
        model.fit(offered, epochs=1, steps_per_epoch=ENDLESS, verbose=0, callbacks=[paced])
        if paced.left:  # fit warns, and returns as if all were done
            raise tf.errors.OutOfRangeError(None, None, "the input ended before the last window")

    def _as_given(self, dataset: "tf.data.Dataset") -> "tf.data.Dataset":
        """Weights beside the targets, and inputs that have none by themselves."""
        targets = dataset.element_spec[1]
        is_pair = has_targets(targets) and not isinstance(targets, Weighted)
        return dataset if is_pair else dataset.map(as_keras_takes)

    def _proved_first(self, batches: Any, windows: int) -> Any:
        """What a call that may make several steps gets: for each of the gate's first updates one batch, of which Keras
        runs the step that it makes several of afterwards. The program of several is proved by `step_on`."""
        self._input = batches
        return iter([next(batches)]) if windows < GATE_UPDATES else batches

    def step_on(self, x: Any, y: Any) -> Any:
        """The function that fit calls for every step; the mean that Keras reports begins anew before it."""
        self._training.model.reset_metrics()
        placed = self._training.source.on_device
        if placed or (self._a_call > 1 and not self._may_make_one):
            batches: Any = iter([on_replicas(self._training, x, y) if placed else next(self.late_in_turn())])
        else:
            batches = self.late_in_turn() if self._a_call == 1 else self._alone(x, y)
        return loss_in(self._step(batches), self._training.model.name)

    def _alone(self, x: Any, y: Any) -> Any:
        """An iterator of the pipeline's type that ends after one batch: Keras' program of several steps, which takes an
        iterator, makes one."""
        import tensorflow as tf

        return iter(self._training.distributed(self._as_given(tf.data.Dataset.from_tensor_slices(stacked([(x, y)])))))

    def program(self) -> Any:
        """The concrete function that the steps ran."""
        traced = self._traced()
        return traced[-1] if traced else None

    def calls_program(self) -> Any:
        """That of several steps, traced for the iterator that `fit` gives, where calls make them."""
        if self._a_call == 1 or self._input is None:
            return None
        return functions_of_keras(self._step)[0].get_concrete_function(self._input)

    def traces(self) -> int:
        """How often the step was traced, and what makes several of it."""
        several = functions_of_keras(self._step)[0]._list_all_concrete_functions() if self._a_call > 1 else ()
        return len(self._traced()) + len(several)

    def _traced(self) -> list[Any]:
        if self._a_call > 1:
            return list(functions_of_keras(self._step)[-1]._list_all_concrete_functions())
        return traced_by_keras(self._step)


LOOP = LoopKind("fit", "Keras' Model.fit", FitLoop)
