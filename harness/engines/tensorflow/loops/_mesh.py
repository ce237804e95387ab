"""The loop of DTensor: one tf.function step over the whole batch, which TensorFlow cuts over the mesh."""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.executed import inspect_expanded
from harness.engines.tensorflow.loops.base import Loop
from harness.engines.tensorflow.mesh import DeviceMesh, layouts_of
from harness.engines.tensorflow.training import added_loss, part_of_mean
from harness.protocol.engine import Pace
from harness.record.trial import Executed

if TYPE_CHECKING:
    from harness.engines.tensorflow.training import Training


class MeshLoop(Loop):
    """The step is written for one device and the global batch; the layouts of its arguments say the rest."""

    def __init__(self, training: "Training") -> None:
        super().__init__(training)
        self._on: DeviceMesh = training.strategy
        self._step = make_step(training)
        self._example: Any = None
        self._ran: Any = None

    def run(self, pace: Pace) -> None:
        """Train until `pace` says 0."""
        batch_of = self._input = batches(self._training)
        while steps := pace.begin():
            for _ in range(steps):
                batch = next(batch_of)
                loss = self._step(*batch) if self._ran is not None else self._first_step(batch)
            self._example = batch
            pace.end(LossOnMesh(self._on, loss))

    def step_on(self, x: Any, y: Any) -> "LossOnMesh":
        """The same step, its batch cut over the mesh's `batch` axis."""
        import tensorflow as tf

        return LossOnMesh(self._on, self._step(*tf.nest.map_structure(self._on.batch, (x, y))))

    def synchronise(self) -> None:
        """Bring the last trained variable of every device to the host."""
        self._training.model.trainable_variables[-1].copies()

    def program(self) -> Any:
        """The concrete function as it was traced, before it is cut."""
        return None if self._example is None else self._step.get_concrete_function(*self._example)

    def executed(self) -> Executed:
        """What the devices run: the program once it is cut, and the layouts."""
        return inspect_expanded(self._ran, layouts_of(self._training.model))

    def traces(self) -> int:
        """How often the step was traced."""
        return int(self._step.experimental_get_tracing_count())

    def _first_step(self, batch: Any) -> Any:
        """Take the step, and keep the graph that the runtime made of it: only that has the collectives."""
        from tensorflow.python.eager import context

        eager = context.context()
        eager.enable_graph_collection()
        try:
            loss = self._step(*batch)
            found = [graphs.post_optimization_graph for graphs in eager.export_run_metadata().function_graphs]
        finally:
            eager.disable_graph_collection()
        self._ran = max(found, key=lambda graph: len(graph.node))
        return loss


class LossOnMesh:
    """The loss as a DTensor; read as a number it is the first device's."""

    def __init__(self, on: DeviceMesh, value: Any) -> None:
        self._on, self._value = on, value

    def __float__(self) -> float:
        return float(self._on.unpack(self._value)[0][0])


def make_step(training: "Training") -> Any:
    """The step as a tf.function (x, y) -> loss, the mean over the global batch."""
    import tensorflow as tf

    model, optimizer = training.model, training.optimizer

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def step(x: Any, y: Any) -> Any:
        trained, untrained = model.read()
        with tf.GradientTape() as tape:
            tape.watch(trained)
            outputs, _, losses = model.call(trained, untrained, x)
            loss = part_of_mean(training, y, outputs)
            if losses:
                loss += added_loss(losses)
        optimizer.apply(tape.gradient(loss, trained))
        return loss

    return step


def batches(training: "Training") -> Iterator[tuple[Any, Any]]:
    """The gate's global batches, then the pipeline's, each cut over the mesh's `batch` axis.

    One pipeline serves all replicas, as under every other strategy: tf.experimental.dtensor.DTensorDataset runs the
    whole of it once for each replica.
    """
    import tensorflow as tf

    on: DeviceMesh = training.strategy
    if training.source.on_device:
        placed = [tf.nest.map_structure(on.batch, batch) for batch in training.batches]
        return itertools.chain(placed, itertools.repeat(placed[-1]))
    return _from_pipeline(training, on)


def _from_pipeline(training: "Training", on: DeviceMesh) -> Iterator[tuple[Any, Any]]:
    import tensorflow as tf
    from tensorflow.experimental import dtensor

    def layout_of(values: Any) -> Any:
        return dtensor.Layout(["batch", *[dtensor.UNSHARDED] * (values.ndim - 1)], on.mesh)

    replicas, shards = on.sizes.batch, on.sizes.model

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def split(*batch: Any) -> Any:
        return tf.nest.map_structure(lambda values: tf.split(values, replicas), batch)

    def packed(parts: Any, layout: Any) -> Any:
        return dtensor.pack([share for share in parts for _ in range(shards)], layout)

    layouts = tf.nest.map_structure(layout_of, training.batches[0])
    for shares in training.dataset().map(split).prefetch(1):
        yield tf.nest.map_structure(packed, shares, layouts)
