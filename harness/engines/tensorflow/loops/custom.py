"""The custom training loop of TensorFlow's tutorials: `strategy.run` inside a tf.function."""

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.loops._coordinator import CoordinatorLoop
from harness.engines.tensorflow.loops._mesh import MeshLoop
from harness.engines.tensorflow.loops._micro_batches import accumulated
from harness.engines.tensorflow.loops._several_steps import SeveralSteps
from harness.engines.tensorflow.loops.base import Loop, LoopKind
from harness.engines.tensorflow.own_training import own_training
from harness.engines.tensorflow.plants import Planted, no_place, planted
from harness.engines.tensorflow.state import capture, copies_of
from harness.engines.tensorflow.train_step import begin_loss_anew, own_replica_step
from harness.engines.tensorflow.training import share_gradients
from harness.errors import Unsupported
from harness.protocol.engine import Pace
from harness.trial.array_cache import cached_arrays
from harness.trial.same_work.architectures import architectures
from harness.trial.sameness import LOOKED_AT

if TYPE_CHECKING:
    from harness.engines.tensorflow.training import Training


class CustomLoop(Loop):
    """One tf.function call a step, as a user would write it, or one of several; XLA compiles forward and backward."""

    def __init__(self, training: "Training") -> None:
        super().__init__(training)
        request, workers, several = training.request, training.cell.workers, training.cell.steps_per_execution > 1
        if several and request.plant is not None:
            raise Unsupported(
                f"plant: '{request.plant.kind}' is for steps of a call each: give --steps-per-execution 1"
            )
        self._plant = planted(request.plant, training.devices.names, training.worker, workers)
        self._gradients_of = make_gradients(training)
        self._step = make_step(training, self._plant, self._gradients_of)
        self._pass = make_pass(training, self._plant, self._gradients_of)
        self._several = SeveralSteps(training, self._step) if several else None
        self._example: Any = None
        self._input: Iterator[tuple[Any, ...]] | None = None

    def run(self, pace: Pace) -> None:
        """Train until `pace` says 0."""
        # Kept after the loop: taking a distributed iterator down can take seconds, and the process ends soon.
        batches: Iterator[tuple[Any, ...]] = batches_of(self._training)
        self._input = batches
        if self._training.cell.model in architectures() and self._several is None:
            batches = self._looked_at(batches)
        step, windows = self._step, 0
        while steps := pace.begin():
            self._plant.window_begins()
            batch, shares = self._issue(step, batches, steps)
            loss = LossInShares(self._training, shares)
            self._plant.window_ends(loss.wait)
            self._example = batch
            pace.end(loss)
            begin_loss_anew(self._training.model)
            windows += 1
            if windows == len(self._training.batches):  # the gate is passed, and no window is timed yet
                self._calibrate(batches)
                step, batches = self._timed(batches)

    def _looked_at(self, batches: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """The same; the labels of the first are read, of the models that other engines train, too."""
        for x, y in itertools.islice(batches, LOOKED_AT):
            parts = self._training.strategy.experimental_local_results(y)
            self.seen.take([label for part in parts for label in part.numpy().tolist()])
            yield x, y
        yield from batches

    def _issue(self, step: Any, batches: Iterator[tuple[Any, ...]], steps: int) -> tuple[tuple[Any, ...], Any]:
        """So many steps; what the last of them was given, and each replica's share of its loss."""
        if self._several is not None:
            return (), self._several.make(steps, batches)
        for _ in range(steps):
            self._plant.before_step()
            batch = next(batches)
            shares = step(*batch)
        return batch, shares

    def _timed(self, batches: Iterator[tuple[Any, ...]]) -> tuple[Any, Iterator[tuple[Any, ...]]]:
        """The step that is timed, now that it is proved, and the batches that it is timed on."""
        return self._step, batches

    def step_on(self, x: Any, y: Any) -> "LossInShares":
        """The same step, its batch cut and placed as those before it.

        An iterator costs a tenth of a second, but where this process has one replica, what is placed by
        hand has another type than what an iterator gives, and the step would be compiled anew.
        """
        training = self._training
        begin_loss_anew(training.model)
        if self._several is not None:
            given = itertools.repeat(on_replicas(training, x, y)) if training.source.on_device else self.late_in_turn()
            return LossInShares(training, self._several.make(1, given))
        by_hand = training.source.on_device or (len(training.devices.names) > 1 and training.request.member is None)
        batch = on_replicas(training, x, y) if by_hand else next(self.late_in_turn())
        return LossInShares(training, self._step(*batch))

    def _calibrate(self, batches: Iterator[tuple[Any, ...]]) -> None:
        """Let the planted slow-down try steps, and take back what they trained."""
        if self._training.request.plant is None:
            return
        model, optimizer = self._training.model, self._training.optimizer
        before = capture(model, optimizer)
        request = self._training.request
        key = repr((request.cell.cell_id, request.intra_op_threads, request.inter_op_threads)).encode()
        self._plant.calibrate(
            lambda: LossInShares(self._training, self._step(*next(batches))).wait(),
            lambda name, compute: cached_arrays(request.scratch, name, key, compute),
        )
        for variable, state in zip([*model.variables, *optimizer.variables], before, strict=True):
            for copy, value in zip(copies_of(variable), state.copies, strict=True):
                copy.assign(value)

    @property
    def alone(self) -> Callable[[], None] | None:
        """The pass with the last batch; there is none of a model whose own train_step makes the update as well."""
        return None if own_training(self._training.model) else self._alone

    def _alone(self) -> None:
        """Forward and backward on this process's replicas with the last batch, to its end: nothing is reduced, and no
        weight is changed."""
        for number in self._training.strategy.experimental_local_results(self._pass(*self._batch_alone)):
            number.numpy()

    @functools.cached_property
    def _batch_alone(self) -> tuple[Any, ...]:
        """The last batch; the next one where a call has taken the last one itself."""
        return self._example or next(self._input or batches_of(self._training))

    def program(self) -> Any:
        """The concrete function that the steps ran."""
        if self._several is not None:
            return self._several.program_of_step()
        return None if self._example is None else self._step.get_concrete_function(*self._example)

    def calls_program(self) -> Any:
        """That of several steps, where calls make them."""
        return None if self._several is None else self._several.program()

    def traces(self) -> int:
        """How often the step was traced, or the call that makes several."""
        return self._several.traces() if self._several else int(self._step.experimental_get_tracing_count())


class LossInShares:
    """What the replicas have of a step's loss; read as a number it is the mean over the global batch, of all processes.

    The step does not add it up: that takes a collective, or a copy of each loss to the host, in every step of several
    replicas and in none of a single one, and every speed-up would hold it.
    """

    def __init__(self, training: "Training", shares: Any) -> None:
        self._training = training
        self._shares = shares

    def own(self) -> float:
        """The sum of what this process's replicas have, on the host."""
        shares = self._shares
        if not isinstance(shares, tuple):
            shares = self._training.strategy.experimental_local_results(shares)
        return sum(map(float, shares))

    def wait(self) -> None:
        """Return when this process's replicas have done their updates."""
        import tensorflow as tf

        if any("CPU" not in name for name in self._training.devices.names):
            tf.test.experimental.sync_devices()
        self.own()

    def __float__(self) -> float:
        return self._training.cell.workers * self._training.agree(self.own())


def make_gradients(training: "Training") -> Any:
    """Forward and backward of a replica's part of a batch: (x, y) -> (its share of the mean loss, gradients).

    Of several micro-batches XLA compiles one, which is called for each.
    """
    import tensorflow as tf

    parts = training.cell.micro_batches
    gradients_of = share_gradients(training, training.model, training.optimizer, parts)
    if training.cell.xla:
        gradients_of = tf.function(gradients_of, jit_compile=True, autograph=False)
    return accumulated(gradients_of, parts)


def make_step(training: "Training", plant: Planted | None = None, gradients_of: Any = None, update: Any = None) -> Any:
    """The training step of one global batch as a tf.function (x, y) -> each replica's share of the mean loss over the
    batch, which `LossInShares` adds up.

    A model's own train_step makes the update as well, unless an `update` by gradients is given.
    """
    import tensorflow as tf

    plant = plant or Planted()
    gradients_of = gradients_of or make_gradients(training)
    model, optimizer, strategy = training.model, training.optimizer, training.strategy

    def replica_step(x: Any, y: Any) -> Any:
        loss, gradients = gradients_of(plant.before_forward(x), y)
        if update is None:
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        else:
            update(gradients)
        return plant.after_update(loss, model.trainable_variables)

    own = own_training(model) and update is None
    of_replica = own_replica_step(training, plant) if own else replica_step

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def step(x: Any, y: Any) -> Any:
        with training.placement():
            return strategy.run(of_replica, args=(x, y))

    return step


def make_pass(training: "Training", plant: Planted, gradients_of: Any) -> Any:
    """Forward and backward of this process's replicas as a tf.function (x, y) -> a number of each, which is there when
    all its gradients are. It is traced when it is first called."""
    import tensorflow as tf

    def replica_pass(x: Any, y: Any) -> Any:
        _, gradients = gradients_of(plant.before_forward(x), y)
        return number_of(gradients)

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def alone(x: Any, y: Any) -> Any:
        return training.strategy.run(replica_pass, args=(x, y))

    return alone


def number_of(gradients: Sequence[Any]) -> Any:
    """A number that is there when all of `gradients` are: it is made of them, since TensorFlow leaves out what an
    output only has to come after."""
    import tensorflow as tf

    parts = [getattr(gradient, "values", gradient) for gradient in gradients if gradient is not None]
    return tf.add_n([tf.cast(tf.reshape(part, [-1])[0], tf.float32) for part in parts])


def batches_of(training: "Training") -> Iterator[tuple[Any, Any]]:
    """Distributed batches: the gate's, then the pipeline's, or one that lies on the devices already."""
    if not training.source.on_device:
        if training.request.member is not None:
            return iter(training.distributed_of_worker(training.own_dataset()))
        return iter(training.distributed(training.dataset()))
    placed = [on_replicas(training, x, y) for x, y in training.batches]
    return itertools.chain(placed, itertools.repeat(placed[-1]))


def on_replicas(training: "Training", x: Any, y: Any) -> tuple[Any, Any]:
    """Split a global batch in n equal parts, each placed on its replica's device."""
    import tensorflow as tf

    size = training.cell.replica_batch_size

    def part(values: Any) -> Any:
        def of_replica(context: Any) -> Any:
            i = context.replica_id_in_sync_group
            with tf.device(training.devices.names[i % len(training.devices.names)]):
                return tf.identity(tf.constant(values[i * size : (i + 1) * size]))

        return training.strategy.experimental_distribute_values_from_function(of_replica)

    placed: tuple[Any, Any] = tf.nest.map_structure(part, (x, y))
    return placed


def _build(training: "Training") -> Loop:
    cell = training.cell
    if cell.asynchronous:
        return CoordinatorLoop(training)
    if not cell.mesh:
        return CustomLoop(training)
    if training.request.plant is not None:
        raise no_place(cell.strategy)
    return MeshLoop(training)


LOOP = LoopKind("custom", "a custom loop: strategy.run inside a tf.function", _build)
