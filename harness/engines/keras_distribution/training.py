"""A Keras model that is trained by `fit`, and its state, which `fit` keeps apart from the model meanwhile."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from harness.engines._keras.optimizers import KERAS, slot_of
from harness.engines._keras.paced_fit import ENDLESS
from harness.protocol.engine import GATE_UPDATES, Pace
from harness.trial.same_work.instruments import GoesOn
from harness.trial.same_work.state import State, StateOrder


class FitTraining:
    """`model`, compiled and with these first weights; `x` and `y` are a batch as `fit` hands it over."""

    def __init__(self, model: Any, optimizer: str, first: State, layout: StateOrder, x: Any, y: Any) -> None:
        import keras
        import numpy as np

        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer=KERAS[optimizer].build({}), loss=loss)
        for variable, name in zip(model.trainable_variables, layout.names, strict=True):
            variable.assign(first.weights[name])
        for variable, name in zip(model.non_trainable_variables, layout.statistics, strict=True):
            variable.assign(first.statistics[name])
        model.optimizer.build(model.trainable_variables)
        for variable in model.optimizer.variables:
            variable.assign(np.asarray(variable.value))  # over processes of one device JAX cannot show what was built
        model._symbolic_build(data_batch=(x, y, None))  # as fit does, before the step is made
        model.make_train_function()
        self.model, self._layout = model, layout
        self._called: Callable[[Any, Iterator[Any]], Any] = model.train_function
        """What `fit` calls for each step: (state, batches) -> (metrics, state)."""
        self.arrays = model._get_jax_state(True, True, True, True, False)
        """Weights, statistics, the optimizer's variables, the metrics': here alone, since a step overwrites them."""

    @property
    def jitted(self) -> Any:
        """The step, (state, batch) -> (metrics, state). Keras keeps it in a closure; there is no public way to it."""
        return inspect.getclosurevars(self._called).nonlocals["step_function"]

    def step(self, batches: Iterator[Any]) -> Any:
        """One update on the next batch; the metrics."""
        metrics, self.arrays = self._called(self.arrays, batches)
        return metrics

    def alone(self, batch: Any) -> Any:
        """One update; the batch's own loss, where Keras reports the mean since the epoch began."""
        self.forget()
        return self.step(iter([batch]))["loss"]

    def forget(self) -> None:
        """Let the reported mean begin anew."""
        self.model.reset_metrics()
        self.arrays = (*self.arrays[:3], [variable.value for variable in self.model.metrics_variables])

    def fit(
        self, pace: Pace, offered: Iterator[Any], placed: Iterator[Any] | None, goes_on: GoesOn | None = None
    ) -> None:
        """One call of `Model.fit`, one epoch, on what is `offered`; where there are `placed` batches, on those, since
        `fit` takes none that lie on the devices already. After the gate's last window it `goes_on` by something else.
        """
        paced = _Paced(self, pace, placed, goes_on)
        self.model.train_function = paced
        self.model.fit((batch for batch in offered), epochs=1, steps_per_epoch=ENDLESS, verbose=0)

    def state(self) -> State:
        """Weights and the rest by name, as they lie on the devices."""
        trained, untrained, optimized, _ = self.arrays
        optimizer = self.model.optimizer
        place = {id(variable): at for at, variable in enumerate(optimizer.variables)}
        names = self._layout.names
        slots = {
            slot: {name: optimized[place[id(kept)]] for name, kept in zip(names, slot_of(optimizer, slot), strict=True)}
            for slot in self._layout.slots
        }
        weights = dict(zip(names, trained, strict=True))
        statistics = dict(zip(self._layout.statistics, untrained, strict=True))
        return State(weights, slots, statistics, optimized[place[id(optimizer.iterations)]])


class _Paced:
    """What `fit` calls for each step: Keras' own, in windows; between two it blocks until the next turn."""

    def __init__(self, training: FitTraining, pace: Pace, placed: Iterator[Any] | None, goes_on: GoesOn | None) -> None:
        self._training, self._pace, self._placed, self._goes_on = training, pace, placed, goes_on
        self._step: Callable[[Iterator[Any]], Any] = training.step
        self._left = self._windows = 0
        self._metrics: Any = None

    def __call__(self, state: Any, offered: Iterator[Any]) -> Any:
        """One step, or none and the end of the epoch. The state is the training's own, not what `fit` has of it."""
        training = self._training
        if self._left == 0:
            self._left = self._pace.begin()
        if self._left == 0:
            training.model.stop_training = True
            return self._metrics, training.arrays
        if self._windows < GATE_UPDATES:
            training.forget()
        batches = offered if self._placed is None else self._placed
        self._metrics = self._step(batches)
        self._left -= 1
        if self._left == 0:
            self._windows += 1
            self._pace.end(self._metrics["loss"])
            if self._windows == GATE_UPDATES and self._goes_on is not None:
                step, self._placed = self._goes_on(batches)
                self._step = lambda batches: {"loss": step(*next(batches))}
        return self._metrics, training.arrays
