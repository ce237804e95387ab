"""One trial's training set-up: strategy, model, optimizer, loss and input, built once."""

import contextlib
import functools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.cross_device import build_op
from harness.engines.tensorflow.data import Source
from harness.engines.tensorflow.data.cached_batches import cached_batches
from harness.engines.tensorflow.data.pipeline import ahead_on_device, fetching, pipeline
from harness.engines.tensorflow.data.stages import hand_over_of, stages_of
from harness.engines.tensorflow.data_for_model import must_have_targets, must_have_weights, taken_by, workload_for
from harness.engines.tensorflow.devices import Devices, device_kinds
from harness.engines.tensorflow.mesh import DeviceMesh, cuts_of, placing
from harness.engines.tensorflow.own_training import brought_by, must_have_a_place, own_training
from harness.engines.tensorflow.server_state import FusedOptimizer, StatelessModel, on_servers
from harness.engines.tensorflow.sharded import must_be_shared_evenly, source_of
from harness.engines.tensorflow.strategies import strategies
from harness.engines.tensorflow.structures import (
    Batch,
    Shapes,
    Weighted,
    has_targets,
    stacked,
    unweighted,
)
from harness.engines.tensorflow.workloads import (
    Vocabulary,
    Workload,
    classes_of,
    loss_for,
    optimizer_of,
)
from harness.errors import Unsupported
from harness.protocol.engine import GATE_UPDATES
from harness.protocol.messages import Request
from harness.spec.cell import TrainingCell
from harness.trial.examples import late_labels
from harness.trial.same_work.architectures import architectures

if TYPE_CHECKING:
    import tensorflow as tf


@dataclass(frozen=True)
class Training:
    """Everything that a loop and the gate share. `batches` are the gate's global batches."""

    request: Request
    devices: Devices
    strategy: "tf.distribute.Strategy"
    workload: Workload
    model: Any
    optimizer: Any
    loss: Any
    source: Source
    input_shape: Shapes
    classes: int
    batches: list[Batch]
    input: list[str] = field(default_factory=list)
    """The stages of the input pipeline, once it was built."""
    hand_over: list[str] = field(default_factory=list)
    """Those between it and the devices."""
    vocabulary: Vocabulary | None = None
    """Of a model that takes whole numbers."""
    unprovable: list[str] = field(default_factory=list)
    """Why no late update can be proved, once that is known."""
    settled: list[tuple[int, float]] = field(default_factory=list)
    """How many replicas a share of an own train_step hears of, and what of its gradients counts, once that is known."""
    target_classes: Any = 0
    """How many classes a target is one of, 0 where it is none; of several targets a structure of such."""

    own_training: list[str] = field(default_factory=list)
    """As `Executed` has it."""

    @property
    def cell(self) -> TrainingCell:
        """What was asked for."""
        return self.request.training

    @functools.cached_property
    def late_batches(self) -> list[Batch]:
        """What updates late in training are proved with, in turn: the gate's batches, with other labels."""
        import tensorflow as tf

        def late(y: Any) -> Any:
            labels = tf.nest.map_structure(late_labels, unweighted(y), self.target_classes)
            return y._replace(targets=labels) if isinstance(y, Weighted) else labels

        return [(x, late(y)) for x, y in self.batches]

    @functools.cached_property
    def agree(self) -> Callable[[float], float]:
        """As the strategy says; one for all that ask, since the first call may trace it."""
        return strategies()[self.cell.strategy].agree(self.strategy)

    def placement(self) -> contextlib.AbstractContextManager[None]:
        """Where a step without a strategy runs: TensorFlow takes a GPU by itself, but not a TPU core."""
        return placement(self.cell, self.devices)

    @property
    def worker(self) -> int:
        """Which worker this process is, from 0."""
        return 0 if self.request.member is None else self.request.member.index

    def own_parts(self, batches: Sequence[Batch]) -> Batch:
        """This worker's part of global batches, one after the other: each array [replicas, batch of a replica, ...]."""
        import numpy as np
        import tensorflow as tf

        size, first = self.cell.replica_batch_size, self.worker * self.cell.replicas

        def own(*of_each: Any) -> Any:
            end = (first + self.cell.replicas) * size
            return np.concatenate([of[first * size : end].reshape(-1, size, *of.shape[1:]) for of in of_each])

        parts: Batch = tf.nest.map_structure(own, *batches)
        return parts

    def own_dataset(self) -> "tf.data.Dataset":
        """This worker's part of `dataset`, a batch for one replica at a time: of the gate's batches its own, whoever
        shares the endless rest."""
        import tensorflow as tf

        cell, gate = self.cell, tf.data.Dataset.from_tensor_slices(self.own_parts(self.batches))
        if cell.autoshard == "off":
            return gate.concatenate(self.endless(cell.replica_batch_size, (self.worker, cell.workers)))
        return gate.concatenate(self._autosharded())

    def _autosharded(self) -> "tf.data.Dataset":
        """What `tf.distribute` makes for this worker of an endless pipeline of global batches, by the cell's policy."""
        import tensorflow as tf

        asked = tf.data.Options()
        asked.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy[
            self.cell.autoshard.upper()
        ]
        everything = self.endless(self.cell.global_batch_size).with_options(asked)
        [own] = self.strategy.experimental_distribute_dataset(everything)._cloned_datasets
        self.input[:] = stages_of(own)
        made: tf.data.Dataset = own
        return made

    def dataset(self) -> "tf.data.Dataset":
        """The gate's batches, then the endless pipeline: one path for what is proved and what is timed."""
        import tensorflow as tf

        first = tf.data.Dataset.from_tensor_slices(stacked(self.batches))
        return first.concatenate(self.endless(self.cell.global_batch_size))

    def endless(self, batch: int, shard: tuple[int, int] = (0, 1)) -> "tf.data.Dataset":
        """The pipeline's batches of so many examples (`data.pipeline.pipeline`), whose stages become the `input`'s."""
        made = pipeline(
            self.source,
            Path(self.request.data_dir),
            self.input_shape,
            self.classes,
            batch,
            self.request.seed,
            shard=shard,
            cell=self.cell,
            vocabulary=self.vocabulary,
            scratch=self.request.scratch,
        )
        self.input[:] = stages_of(made)
        return made

    def distributed(self, dataset: "tf.data.Dataset") -> Any:
        """Global batches in the parts of this process's replicas, each on its device before the step asks for it,
        unless the cell leaves them on the host."""
        if self.cell.strategy == "none":
            made: Any = ahead_on_device(dataset, self.devices.names[0], self.cell.device_prefetch)
            self.hand_over[:] = stages_of(made)[len(stages_of(dataset)) :]
            return made
        made = self.strategy.experimental_distribute_dataset(dataset, fetching(self.cell.device_prefetch))
        self.hand_over[:] = hand_over_of(made)
        return made

    def distributed_of_worker(self, dataset: "tf.data.Dataset") -> Any:
        """The same of `own_dataset`, or of what is like it."""
        options = fetching(self.cell.device_prefetch)
        made = self.strategy.distribute_datasets_from_function(lambda _: dataset, options)
        self.hand_over[:] = hand_over_of(made)
        return made


def build(request: Request) -> Training:
    """Build the cell of `request`; raises Unsupported or HarnessError with the reason."""
    import keras

    cell = request.training
    devices = device_kinds()[cell.device].set_up(request)
    keras.mixed_precision.set_global_policy(cell.precision)
    kind = strategies()[cell.strategy]
    strategy = kind.build(cell, devices, build_op(cell))
    devices = kind.devices_of(strategy, devices)
    source = source_of(cell, Path(request.data_dir))
    if cell.autoshard == "file":
        must_be_shared_evenly(source, cell.workers)
    workload, info = workload_for(cell.model, source, Path(request.data_dir))
    with placement(cell, devices):
        stateless = bool(cell.mesh) or (cell.asynchronous and cell.updates == "locked")
        model, optimizer = build_model(workload, cell, info.outputs, request.seed, None if stateless else strategy)
    must_have_weights(model, cell.model)
    if workload.input_shape is None:
        source = source.for_model(model)
    input_shape, classes, vocabulary = taken_by(model, workload, source, info)
    batches = cached_batches(request, "batches", source, input_shape, classes, GATE_UPDATES, vocabulary)
    targets = unweighted(batches[0][1])
    must_have_targets(model, targets, source)
    loss = loss_for(model, targets, by_share=not cell.mesh)
    told = loss is not None and has_targets(targets)
    known_classes = classes_of(model, targets) if told else keras.tree.map_structure(lambda _: 0, targets)
    must_have_a_place(request, own_training(model))
    own = brought_by(model)
    if stateless:
        model, optimizer = _without_state(strategy, workload, model, optimizer)
    known = (request, devices, strategy, workload, model, optimizer, loss, source, input_shape, classes, batches)
    return Training(*known, vocabulary=vocabulary, target_classes=known_classes, own_training=own)


def _without_state(
    strategy: Any, workload: Workload, model: Any, optimizer: Any
) -> tuple[StatelessModel, FusedOptimizer]:
    """Both without state of their own: it lies on the parameter servers, or on a mesh."""
    import keras

    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        raise Unsupported("precision: mixed_float16 scales the loss, and TensorFlow's fused kernels cannot do that")
    if isinstance(strategy, DeviceMesh):
        place = placing(strategy, cuts_of(workload, model, strategy.sizes))
    else:
        place = functools.partial(on_servers, strategy)
    stateless = StatelessModel(place, model)
    return stateless, FusedOptimizer(place, optimizer, stateless)


def placement(cell: TrainingCell, devices: Devices) -> contextlib.AbstractContextManager[None]:
    """A tf.device scope for a cell without a strategy on a TPU; nothing elsewhere."""
    import tensorflow as tf

    if cell.device == "tpu" and cell.strategy == "none":
        scope: contextlib.AbstractContextManager[None] = tf.device(devices.names[0])
        return scope
    return contextlib.nullcontext()


def build_model(
    workload: Workload,
    cell: TrainingCell,
    classes: int,
    seed: int,
    strategy: "tf.distribute.Strategy | None" = None,
    alike: bool = True,
) -> tuple[Any, Any]:
    """The model and its optimizer, variables made under `strategy` (or under none). Weights are drawn from `seed`, and
    those of a model that other engines train too as they draw them, unless they need not be `alike`: they are set.

    TensorFlow is not seeded then for a model by name, which draws no more from it: it forgets every program that it has
    compiled when it is, and the step would be compiled once more (ResNets and the like take seconds).
    """
    import keras
    import numpy as np

    if alike or workload.input_shape is None:
        keras.utils.set_random_seed(seed)
    else:  # of these a model may draw what is no weight
        random.seed(seed)
        np.random.seed(seed)
    with strategy.scope() if strategy is not None else contextlib.nullcontext():
        model = workload.build(workload.input_shape or (), classes)
        if alike:
            begin_alike(model, workload.name, classes, seed)
        optimizer = optimizer_of(model, cell.optimizer)
        if cell.precision == "mixed_float16":
            optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
        optimizer.build(model.trainable_variables)
    return model, optimizer


def begin_alike(model: Any, name: str, classes: int, seed: int) -> None:
    """Give the weights the values that every engine begins with, where `name` is a model of theirs in its own size."""
    import numpy as np

    if (architecture := architectures().get(name)) is None:
        return
    values = [*architecture.initial(np.random.default_rng(seed), classes).values()]
    weights = model.trainable_variables
    if [tuple(weight.shape) for weight in weights] != [value.shape for value in values]:
        return
    for weight, value in zip(weights, values, strict=True):
        weight.assign(value)


def share_loss(training: Training, model: Any, parts: int = 1) -> Callable[[Any, Any], Any]:
    """Forward of a replica's share of a batch, or of one of so many `parts` of it: (x, y) -> its part of the mean loss.

    Gradients are summed over replicas and parts, so the loss is divided by the global batch, and what the model adds to
    it (regularisers) by how many there are of both.
    """

    def loss_of(x: Any, y: Any) -> Any:
        loss = part_of_mean(training, y, model(x, training=True))
        if model.losses:
            loss += added_loss(model.losses) / (training.cell.replicas_per_update * parts)
        return loss

    return loss_of


def part_of_mean(training: Training, y: Any, outputs: Any) -> Any:
    """What these examples add to the mean loss over the global batch, each as much as its weight says: as Keras'
    `sum_over_batch_size` has it, which does not divide by the weights."""
    import tensorflow as tf

    weighted = isinstance(y, Weighted)
    losses = training.loss.weighted(y.targets, outputs, y.weights) if weighted else training.loss(y, outputs)
    return tf.reduce_sum(losses) / training.cell.global_batch_size


def share_gradients(
    training: Training, model: Any, optimizer: Any, parts: int = 1
) -> Callable[[Any, Any], tuple[Any, list[Any]]]:
    """Forward and backward of a replica's share of a batch, or of one of so many `parts` of it: (x, y) -> (its part of
    the mean loss, gradients)."""
    import tensorflow as tf

    loss_of = share_loss(training, model, parts)

    def gradients_of(x: Any, y: Any) -> tuple[Any, list[Any]]:
        with tf.GradientTape() as tape:
            loss = loss_of(x, y)
            scaled = optimizer.scale_loss(loss)
        return loss, tape.gradient(scaled, model.trainable_variables)

    return gradients_of


def added_loss(losses: Sequence[Any]) -> Any:
    """What a model adds to its loss, all together and in float32, as Keras' `fit` does."""
    import tensorflow as tf

    added = [tf.cast(loss, tf.float32) for loss in losses]
    return tf.add_n([tf.reduce_sum(loss) if loss.shape.rank else loss for loss in added])
