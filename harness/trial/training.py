"""One trial's training set-up: strategy, model, optimizer, loss and input, built once."""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.spec.cell import Cell
from harness.trial.cross_device import build_op
from harness.trial.data import Source, load_source
from harness.trial.data.pipeline import gate_batches, pipeline
from harness.trial.devices import Devices, device_kinds
from harness.trial.kept import kept
from harness.trial.protocol import Request
from harness.trial.strategies import strategies
from harness.trial.workloads import Workload, load_workload, loss_of, optimizer_of

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf

GATE_UPDATES = 2
"""Distinct batches that the gate trains on: one shows a wrong update, the second a delayed one."""


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
    input_shape: tuple[int, ...]
    classes: int
    batches: "list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]"

    @property
    def cell(self) -> Cell:
        """What was asked for."""
        return self.request.cell

    def placement(self) -> contextlib.AbstractContextManager[None]:
        """Where a step without a strategy runs: TensorFlow takes a GPU by itself, but not a TPU core."""
        return placement(self.cell, self.devices)

    def dataset(self) -> "tf.data.Dataset":
        """The gate's batches, then the endless pipeline: one path for what is proved and what is timed."""
        import tensorflow as tf

        images = [tf.constant(x) for x, _ in self.batches]
        labels = [tf.constant(y) for _, y in self.batches]
        first = tf.data.Dataset.from_tensor_slices((tf.stack(images), tf.stack(labels)))
        rest = pipeline(
            self.source, Path(self.request.data_dir), self.input_shape, self.classes,
            self.cell.global_batch_size, self.request.seed,
        )  # fmt: skip
        return first.concatenate(rest)


def build(request: Request) -> Training:
    """Build the cell of `request`; raises Unsupported or HarnessError with the reason."""
    import keras

    cell = request.cell
    devices = device_kinds()[cell.device].set_up(request)
    keras.mixed_precision.set_global_policy(cell.precision)
    strategy = strategies()[cell.strategy].build(cell, devices, build_op(cell))
    workload = load_workload(cell.model)
    source = load_source(cell.data)
    data_dir = Path(request.data_dir)
    classes = source.info(data_dir).classes
    with placement(cell, devices):
        model, optimizer = build_model(workload, cell, classes, request.seed, strategy)
    input_shape = workload.input_shape or tuple(model.input_shape[1:])
    classes = model.output_shape[-1]
    batches = _gate_batches(request, source, input_shape, classes)
    return Training(
        request, devices, strategy, workload, model, optimizer, loss_of(model), source, input_shape, classes, batches
    )


def _gate_batches(
    request: Request, source: Source, input_shape: tuple[int, ...], classes: int
) -> "list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]":
    """The gate's global batches (x, y), read from the data set once a sweep."""

    def compute() -> "dict[str, np.ndarray[Any, Any]]":
        size = request.cell.global_batch_size
        found = gate_batches(source, Path(request.data_dir), input_shape, classes, size, GATE_UPDATES)
        return {f"{name}{i}": array for i, batch in enumerate(found) for name, array in zip("xy", batch, strict=True)}

    key = (request.cell.data, request.data_dir, input_shape, classes, request.cell.global_batch_size)
    arrays = kept(request.scratch, "batches", repr(key).encode(), compute)
    return [(arrays[f"x{i}"], arrays[f"y{i}"]) for i in range(GATE_UPDATES)]


def placement(cell: Cell, devices: Devices) -> contextlib.AbstractContextManager[None]:
    """A tf.device scope for a cell without a strategy on a TPU; nothing elsewhere."""
    import tensorflow as tf

    if cell.device == "tpu" and cell.strategy == "none":
        scope: contextlib.AbstractContextManager[None] = tf.device(devices.names[0])
        return scope
    return contextlib.nullcontext()


def build_model(
    workload: Workload, cell: Cell, classes: int, seed: int, strategy: "tf.distribute.Strategy | None" = None
) -> tuple[Any, Any]:
    """The model and its optimizer, variables made under `strategy` (or under none), weights from `seed`."""
    import keras

    keras.utils.set_random_seed(seed)
    with strategy.scope() if strategy is not None else contextlib.nullcontext():
        model = workload.build(workload.input_shape or (), classes)
        optimizer = optimizer_of(model, cell.optimizer)
        if cell.precision == "mixed_float16":
            optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
        optimizer.build(model.trainable_variables)
    return model, optimizer
