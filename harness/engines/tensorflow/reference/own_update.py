"""Updates by a model's own train_step or compute_loss, share by share and without tf.distribute.

The step hands its gradients to the model's optimizer itself, and goes on when weights are updated. So that is where the
shares meet: each brings its gradients, the optimizer is given their sum, and then each goes on. What it computes is the
model's own, so what would be right has to be asked of the model, too: `settle_scale`.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from harness.engines.tensorflow.own_training import own_training
from harness.engines.tensorflow.reference.lockstep import Lockstep
from harness.engines.tensorflow.reference.update import SingleDevice, summed_gradient, times_gradient
from harness.engines.tensorflow.server_state import StatelessModel
from harness.engines.tensorflow.structures import Batch
from harness.engines.tensorflow.tapes import tapes_return
from harness.engines.tensorflow.train_step import HandedOver, begin_loss_anew, compile_as_asked
from harness.engines.tensorflow.training import Training
from harness.errors import Unprovable
from harness.trial.copies import same_bits
from harness.trial.judgement import NOISE_FACTOR
from harness.trial.norms import distance, length

if TYPE_CHECKING:
    from harness.protocol.state import Array

SIZES = (1.0, 2.0**-6, 2.0**-12, 2.0**-18)
"""Of gradients, until a step's own clip lets them pass."""
ROUNDING = 2.0**-20
"""Of what is handed over: more than float32 rounds it by."""
TINY = 1e-30


def single_device(training: Training, traced: bool = False) -> SingleDevice:
    """A second model of a training's cell, which is updated as the model is: by the harness' step, or by its own.

    Unprovable for what the reference cannot do.
    """
    stateless = isinstance(training.model, StatelessModel)
    if stateless or not own_training(training.model):
        return SingleDevice(training, traced)
    if training.cell.xla:
        raise Unprovable(
            f"the model trains by its own {own_training(training.model)}, which the reference does not compile with XLA"
        )
    return OwnTrainedDevice(training, traced)


class OwnTrainedDevice(SingleDevice):
    """One whose model makes its updates itself. Shares are traced where there is one alone: several meet in a step."""

    def __init__(self, training: Training, traced: bool = False) -> None:
        super().__init__(training, traced and training.cell.replicas_per_update == 1)
        compile_as_asked(training, self._model, self._optimizer)
        self._lockstep = Lockstep(self._model.non_trainable_variables, lambda: self._model.metrics_variables)
        self._handed = HandedOver(self._model, self._refuse)
        self._factor = 1.0
        """What of its gradients counts of each share."""
        self._before: list[Array] = []
        self._after: list[Array] | None = None
        """Trained weights and optimizer state before shares were run, and once the optimizer was given their sum."""

    def trace(self) -> None:
        """Of one share alone."""
        if self._replicas == 1:
            super().trace()

    def _function(self) -> Callable[[Any, Any], tuple[Any, list[Any]]]:
        def gradients_of(x: Any, y: Any) -> tuple[Any, list[Any]]:
            begin_loss_anew(self._model)
            loss, gradients = self._handed.of_step(x, y)
            return loss / self._replicas, gradients

        return gradients_of

    @contextlib.contextmanager
    def _as_replicas(self) -> Iterator[None]:
        """Shares meet where they call the optimizer, and what it did to weights and to its own state is taken back."""
        self._before, self._after = self._trained(), None
        self._optimizer.apply = self._hand_over
        try:
            with super()._as_replicas():
                yield
            if self._after is not None and not self._trained_are(self._after):
                raise Unprovable(f"{self._subject} changes trained weights after the optimizer has, {_ALONE}")
        finally:
            del self._optimizer.apply
            for variable, value in zip(self._trained_variables, self._before, strict=True):
                variable.assign(value)
            self._before, self._after = [], None  # copies of all of it

    def _hand_over(self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> None:
        """Stands for `optimizer.apply` while shares are run."""
        import tensorflow as tf

        gradients = self._handed.take(grads, trainable_variables)
        gradients[:] = [times_gradient(gradient, self._factor) for gradient in gradients]
        if not tf.inside_function() and not self._trained_are(self._before):
            self._refuse(f"changes trained weights before the optimizer does, {_ALONE}")
        self._lockstep.meet(self._handed_over(gradients), self._apply_together)

    def _apply_together(self, of_shares: list[Any]) -> None:
        import tensorflow as tf

        summed = [summed_gradient(parts) for parts in zip(*of_shares, strict=True)]
        type(self._optimizer).apply(self._optimizer, summed, self._model.trainable_variables)
        self._after = None if tf.inside_function() else self._trained()

    def settle_scale(
        self, start: "Sequence[Array]", moved: "Callable[[], Sequence[Array]]", batch: Batch, tolerance: float
    ) -> None:
        """Replicas that all get the same part of a batch must together do what one does that is alone, with that part
        or with all of it: the first where the step divides by the number of replicas or by the size of its part, the
        second where it divides by a global batch that it knows.

        Where the step clips gradients that can only be seen with gradients so small that it does not. Where they do
        neither each share is trained on as by one that is alone, and their mean is what is right. Unprovable where they
        do not.
        """
        import numpy as np
        import tensorflow as tf

        count = self._replicas
        if count == 1:
            return
        if self._training.settled:  # by a model that the same function has built
            [(self._told, self._factor)] = self._training.settled
            return
        first = tf.nest.map_structure(lambda values: values[: len(values) // count], batch)
        same = tf.nest.map_structure(lambda values: np.concatenate([values] * count), first)
        told = self._told
        of_each, alone, whole, draws, noise = self._of_equal_parts(start, moved, first, same)
        allowed = [tolerance * length(of) + NOISE_FACTOR * by for of, by in zip(alone, noise, strict=True)]

        if not all(_near(of_each[0], other, allowed) for other in of_each[1:]):
            raise Unprovable(
                f"replicas that get the same examples do different things by {self._subject}, as where it asks which "
                "replica it is on, so that nothing can be said of what would be right"
            )
        together = _total(of_each)
        if _near(together, alone, allowed) or _near(together, whole, allowed):
            self._told = told
        elif draws:
            raise Unprovable(
                f"{count} replicas that get the same examples do not do together what {self._subject} does by itself, "
                "and it draws at random, so that nothing can be said of what would be right: divide its loss by "
                "tf.distribute.get_strategy().num_replicas_in_sync"
            )
        elif self._adds_up_unclipped(
            self.start(start), first, same, told, tolerance, [*zip(alone, noise, strict=True)]
        ):
            self._told = told
        else:
            self._told, self._factor = 1, 1 / count
        self._training.settled.append((self._told, self._factor))

    def _of_equal_parts(
        self, start: "Sequence[Array]", moved: "Callable[[], Sequence[Array]]", first: Batch, same: Batch
    ) -> "tuple[list[list[Array]], list[Array], list[Array], bool, list[float]]":
        """Gradients of each replica, all of which have `first` of `same`; of one that is alone with the one, and with
        the other; whether it draws at random, and how far apart its gradients are from weights that are `moved`. It is
        told that it is alone from then on."""
        own = self.start(start)
        with self._left_alone():
            of_each = self._gradients(same, own)
            self._told = 1
            [share], [whole] = self.shares(first, own[:1]), self._gradients(same, own[:1])
            alone, draws = self._dense(share.gradients), _draws(share.statistics, own[0])
            self.start(moved())
            noise = [*map(distance, alone, self._gradients(first, own[:1])[0])]
        return of_each, alone, whole, draws, noise

    @contextlib.contextmanager
    def _left_alone(self) -> Iterator[None]:
        """While entered, no optimizer clips and no layer drops anything: of n equal gradients, each a share, clipping
        leaves another sum than of the whole."""
        clip, self._clip = self._clip, None
        try:
            with _without_dropout(self._model):
                yield
        finally:
            self._clip = clip

    def _adds_up_unclipped(
        self,
        own: "Sequence[list[Array]]",
        first: Batch,
        same: Batch,
        told: int,
        tolerance: float,
        noise: "Sequence[tuple[Array, float]]",
    ) -> bool:
        """Whether replicas with the same examples do together what one does, were gradients too small to be clipped;
        `noise` is what each gradient of one that is alone has."""

        def at(size: float, batch: Batch, replicas: int) -> "list[list[Array]]":
            self._told = replicas
            with _times_tape(size, self._model.trainable_variables):
                return self._gradients(batch, own[:replicas])

        with self._left_alone():
            for size in SIZES:
                alone, half, quarter = (at(size * part, first, 1)[0] for part in (1, 1 / 2, 1 / 4))
                if all(_grows(*of, tolerance) for of in zip(alone, half, quarter, strict=True)):
                    break
            else:
                raise Unprovable(
                    f"{self._subject} changes gradients before it hands them to the optimizer, as where it clips or "
                    "normalises them, so that it cannot be told whether it divides its loss by the replicas; let the "
                    "optimizer clip (clipnorm, clipvalue, global_clipnorm)"
                )
            together, [whole] = _total(at(size, same, told)), at(size, same, 1)
        allowed = [
            tolerance * length(of) + NOISE_FACTOR * by * length(of) / max(length(before), TINY)
            for of, (before, by) in zip(alone, noise, strict=True)
        ]
        return _near(together, alone, allowed) or _near(together, whole, allowed)

    def _gradients(self, batch: Batch, own: "Sequence[list[Array]]") -> "list[list[Array]]":
        """Of each share, by weight."""
        return [self._dense(share.gradients) for share in self.shares(batch, own)]

    @property
    def _trained_variables(self) -> list[Any]:
        return [*self._model.trainable_variables, *self._optimizer.variables]

    def _trained(self) -> "list[Array]":
        return [variable.numpy() for variable in self._trained_variables]

    def _trained_are(self, values: "Sequence[Array]") -> bool:
        """Bit for bit, so that what is no number is the same as itself; one is copied at a time."""
        now = (variable.numpy() for variable in self._trained_variables)
        return all(itertools.starmap(same_bits, zip(now, values, strict=True)))

    @property
    def _subject(self) -> str:
        return f"the model's own {own_training(self._model)}"

    def _refuse(self, does: str) -> NoReturn:
        self._lockstep.refuse(f"{self._subject} {does}, so that the reference cannot make the same update")


def _times_tape(factor: float, weights: Sequence[Any]) -> contextlib.AbstractContextManager[None]:
    """While entered, what every tape returns of `weights` is `factor` times as large."""
    import tensorflow as tf

    ours = {id(known) for weight in weights for known in (weight, weight.value)}

    def gradient(asked: Any, tape: Any, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        found = asked(tape, target, sources, *args, **kwargs)
        scaled = [
            times_gradient(one, factor) if id(source) in ours else one
            for source, one in zip(tf.nest.flatten(sources), tf.nest.flatten(found), strict=True)
        ]
        return tf.nest.pack_sequence_as(found, scaled)

    return tapes_return(gradient)


def _total(of_each: "Sequence[Sequence[Array]]") -> "list[Array]":
    """By weight, of all shares."""
    return [sum(parts[1:], parts[0]) for parts in zip(*of_each, strict=True)]


def _near(some: "Sequence[Array]", others: "Sequence[Array]", allowed: Sequence[float]) -> bool:
    return all(distance(a, b) <= most for a, b, most in zip(some, others, allowed, strict=True))


def _grows(whole: "Array", half: "Array", quarter: "Array", tolerance: float) -> bool:
    """Whether what is handed over of a gradient, of half of it and of a quarter, goes as it does: nothing is clipped.

    Something may be added to it, such as a part of the weight.
    """
    rounding, more = ROUNDING * length(whole), length(whole - half)
    if more <= rounding:
        return length(whole) == 0
    return distance(whole - half, 2 * (half - quarter)) <= tolerance * more + rounding


@contextlib.contextmanager
def _without_dropout(model: Any) -> Iterator[None]:
    """While entered, Keras' layers of dropout and noise hand on what they get: how large a share is does not hang on
    them, and the masks of a whole batch are others than those of its parts."""
    places = [(layer, name) for layer in model._flatten_layers() for name in ("rate", "stddev") if hasattr(layer, name)]
    before = [getattr(layer, name) for layer, name in places]
    for layer, name in places:
        setattr(layer, name, 0.0)
    try:
        yield
    finally:
        for (layer, name), value in zip(places, before, strict=True):
            setattr(layer, name, value)


def _draws(now: "Sequence[Array]", before: "Sequence[Array]") -> bool:
    """Whether a share leaves behind another state of a generator than it found: a whole number that moves."""
    import numpy as np

    found = zip(now, before, strict=True)
    return any(np.issubdtype(new.dtype, np.integer) and not np.array_equal(new, old) for new, old in found)


_ALONE = "and the reference knows what the optimizer does alone"
