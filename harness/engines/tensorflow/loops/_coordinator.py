"""The loop of ParameterServerStrategy: a coordinator that schedules updates, and workers that do them when they can."""

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.loops.base import Loop
from harness.engines.tensorflow.plants import Planted, no_place, planted_in_updates
from harness.engines.tensorflow.training import added_loss, part_of_mean, share_gradients
from harness.errors import Unsupported
from harness.protocol.engine import Pace

if TYPE_CHECKING:
    from harness.engines.tensorflow.training import Training

UPDATES_A_WORKER = 10
"""A window has at least so many updates a worker: at its end workers wait for the last one."""


_READ: list[Iterator[Any]] = []
"""What workers have read from, until the process ends. To let go of it TensorFlow waits for the workers and holds
Python's lock, while they wait for Python code of the data, which runs here: a deadlock."""


class CoordinatorLoop(Loop):
    """Schedules updates and waits for all of them at the end of a window.

    The gate's updates go one by one, each with its own batch; the timed ones take theirs from a data set on the
    worker. Both do the same update.
    """

    def __init__(self, training: "Training") -> None:
        cell = training.cell
        self._plant = planted_in_updates(training.request.plant, cell.strategy)
        if training.request.plant is not None and cell.updates == "keras":
            raise no_place(cell.strategy)
        import tensorflow as tf

        super().__init__(training)
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(training.strategy)
        self._update = make_update(training, self._plant)
        self._timed = self._with_own_input()
        self._example: Any = None
        self._passed: Counter[int] = Counter()

    @property
    def least_steps(self) -> int:
        """So many updates a worker."""
        return UPDATES_A_WORKER * self._training.cell.workers

    @property
    def staleness(self) -> dict[int, int]:
        """How many updates had how many others pass between their read and their write."""
        return dict(sorted(self._passed.items()))

    def run(self, pace: Pace) -> None:
        """Train until `pace` says 0."""
        for batch in self._training.batches:
            if pace.begin() != 1:
                raise AssertionError("the gate's updates come one by one")
            self._example = _constants(batch)
            pace.end(_Updates(self, [self._coordinator.schedule(self._update, args=self._example)]))
        made = self._input()
        if self._training.source.gives == "own":
            gc.collect()  # functions that are garbage are let go of as `_READ` is, and here nobody waits yet
        batches = iter(self._coordinator.create_per_worker_dataset(made))
        _READ.append(batches)
        while steps := pace.begin():
            pace.end(_Updates(self, [self._coordinator.schedule(self._timed, args=(batches,)) for _ in range(steps)]))

    def step_on(self, x: Any, y: Any) -> "_Updates":
        """One update that nobody else's comes between."""
        return _Updates(self, [self._coordinator.schedule(self._update, args=_constants((x, y)))])

    def synchronise(self) -> None:
        """Wait until every scheduled update is done."""
        self._coordinator.join()

    def program(self) -> Any:
        """The concrete function of one update."""
        return None if self._example is None else self._update.get_concrete_function(*self._example)

    def traces(self) -> int:
        """How often the update was traced, as the gate calls it and as it is timed."""
        return sum(int(each.experimental_get_tracing_count()) for each in (self._update, self._timed))

    def take_in(self, updates: list[Any]) -> float:
        """Fetch what updates returned; the last one's loss."""
        fetched = self._coordinator.fetch(updates)
        self._passed.update(max(0, int(passed)) for _, passed in fetched)
        return float(fetched[-1][0])

    def _input(self) -> Callable[[], Any]:
        """What makes the data set that a worker reads."""
        import tensorflow as tf

        training = self._training
        made: Callable[[], Any] = tf.autograph.experimental.do_not_convert(
            lambda: training.endless(training.cell.global_batch_size)
        )
        return made

    def _with_own_input(self) -> Any:
        import tensorflow as tf

        update = self._update

        @tf.function(autograph=False)  # type: ignore[untyped-decorator]
        def timed(batches: Any) -> Any:
            return update(*next(batches))

        return timed


def _constants(batch: Any) -> Any:
    """The batch in tensors."""
    import tensorflow as tf

    return tf.nest.map_structure(tf.constant, batch)


class _Updates:
    """What a window's updates will return: read as a number it is the last loss, and their staleness is counted."""

    def __init__(self, loop: CoordinatorLoop, updates: list[Any]) -> None:
        self._loop = loop
        self._updates = updates

    def __float__(self) -> float:
        return self._loop.take_in(self._updates)


def make_update(training: "Training", plant: Planted | None = None) -> Any:
    """One worker's update as a tf.function (x, y) -> (loss, updates that others made meanwhile)."""
    if training.cell.updates == "keras":
        return _keras_update(training)
    return _locked_update(training, plant or Planted())


def _locked_update(training: "Training", plant: Planted) -> Any:
    """By locked kernels on the servers (`harness.engines.tensorflow.server_state`)."""
    import tensorflow as tf

    model, optimizer, gradients_of = training.model, training.optimizer, gradients_of_weights(training)

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def update(x: Any, y: Any) -> Any:
        before = optimizer.iterations.read_value()
        with tf.control_dependencies([before]):
            trained, untrained = model.read()
        loss, gradients, after = gradients_of(plant.after_pull(trained), untrained, x, y)
        optimizer.apply(plant.before_push(gradients))
        model.keep_untrained(untrained, after)
        return loss, optimizer.iterations.read_value() - 1 - before

    return update


def loss_of_weights(training: "Training") -> Any:
    """Forward of one update: (trained, untrained, x, y) -> (the mean loss, untrained state afterwards)."""

    def loss_of(trained: Any, untrained: Any, x: Any, y: Any) -> tuple[Any, Any]:
        outputs, after, losses = training.model.call(trained, untrained, x)
        loss = part_of_mean(training, y, outputs)
        return loss + added_loss(losses) if losses else loss, after

    return _compiled(training, loss_of)


def gradients_of_weights(training: "Training") -> Any:
    """Forward and backward: (trained, untrained, x, y) -> (the mean loss, gradients, untrained state afterwards)."""
    import tensorflow as tf

    loss_of = loss_of_weights(training)

    def gradients_of(trained: Any, untrained: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
        with tf.GradientTape() as tape:
            tape.watch(trained)
            loss, after = loss_of(trained, untrained, x, y)
        return loss, tape.gradient(loss, trained), after

    return _compiled(training, gradients_of)


def _compiled(training: "Training", function: Any) -> Any:
    """By XLA, where the cell wants that."""
    import tensorflow as tf

    return tf.function(function, jit_compile=True, autograph=False) if training.cell.xla else function


def _keras_update(training: "Training") -> Any:
    """By the Keras optimizer, as most programs do: it reads, computes and assigns, so updates can be lost."""
    import tensorflow as tf

    model, optimizer, cell = training.model, training.optimizer, training.cell
    cut = [v.path for v in model.trainable_variables if hasattr(v.value, "variables")]
    if cut:
        raise Unsupported(
            f"updates 'keras': partitioner '{cell.partitioner}' cuts '{cut[0]}' into shards, and Keras 3 cannot train "
            "a variable in shards ('ShardedVariable' object has no attribute 'handle'): use --partitioner none, or "
            "--updates locked"
        )

    if optimizer.gradient_accumulation_steps:
        raise Unsupported(
            "optimizer: gradient_accumulation_steps under updates 'keras': workers that wait for nobody add to one "
            "another's sums, and what an update was made of cannot be told"
        )

    gradients_of = share_gradients(training, model, optimizer)

    def replica(x: Any, y: Any) -> Any:
        before = tf.identity(optimizer.iterations.value)
        with tf.control_dependencies([before]):
            loss, gradients = gradients_of(x, y)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss, tf.identity(optimizer.iterations.value) - 1 - before

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def update(x: Any, y: Any) -> Any:
        return training.strategy.run(replica, args=(x, y))

    return update
