"""A collective by itself under TensorFlow: each replica's buffer through the strategy's own call.

A step is one call of a tf.function. What every replica received is an output of the function, of which the graph
optimiser can leave out nothing.
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.cross_device import build_op
from harness.engines.tensorflow.devices import device_kinds
from harness.engines.tensorflow.devices.base import Devices
from harness.engines.tensorflow.executed import inspect
from harness.engines.tensorflow.gradients import gradient_shapes
from harness.engines.tensorflow.memory import forget_peak, peak_device_memory_bytes
from harness.engines.tensorflow.plants import check_loop
from harness.engines.tensorflow.strategies import strategies
from harness.engines.tensorflow.trace import StepTracer, tracer_of
from harness.errors import Unsupported
from harness.protocol.messages import Request
from harness.record.trial import Executed, Resources
from harness.spec.collective import CollectiveCell
from harness.trial.collectives import Sending, collective_of

if TYPE_CHECKING:
    from harness.protocol.state import Array

Received = Sequence[Sequence[Any]]
"""What each replica received, tensor by tensor."""
NO_GATHERING = ("nccl", "hierarchical_copy")
"""Ops that TensorFlow does not gather by (`AllReduceCrossDeviceOps._gather_implementation`)."""


@dataclass
class ReplicaBuffers(Sending):
    """Each replica's buffer on its device, and the program that sends them."""

    request: Request
    cell: CollectiveCell
    devices: Devices
    strategy: Any
    variables: Sequence[Any]
    """The tensors of a buffer, float32 and [elements] together, each a copy on every device with its own values."""
    program: Any
    """A tf.function without arguments: what each replica received, in their order, tensor by tensor."""
    agreed: Callable[[float], float]
    """One number of what each process has measured."""
    first: int = 0

    @property
    def resources(self) -> Resources:
        """The devices of the replicas."""
        return self.devices.resources(self.request)

    def fill(self, own: "Sequence[Array]") -> None:
        """Each tensor has its part of the values, one after the other."""
        copies = [self.strategy.experimental_local_results(variable) for variable in self.variables]
        for values, tensors in zip(own, zip(*copies, strict=True), strict=True):
            begin = 0
            for tensor in tensors:
                end = begin + math.prod(tensor.shape)
                tensor.assign(values[begin:end].reshape(tensor.shape))
                begin = end

    def step(self) -> Received:
        """One call of the program."""
        received: Received = self.program()
        return received

    def wait(self, received: Received) -> None:
        """An element of each tensor is on the host, and accelerators are drained."""
        if self._accelerated:
            import tensorflow as tf

            tf.test.experimental.sync_devices()
        for value in itertools.chain.from_iterable(received):
            (value[0] if value.shape.rank else value).numpy()

    @functools.cached_property
    def _accelerated(self) -> bool:
        return any("CPU" not in name for name in self.devices.names)

    def arrays(self, received: Received) -> "Sequence[Array]":
        """The tensors' elements one after the other."""
        return [_in_one(tensors) for tensors in received]

    def executed(self) -> Executed:
        """What the traced program holds. Ops promise reductions, so of other collectives nothing can differ."""
        found = inspect(self.program.get_concrete_function(), self.cell)
        reduces = self.cell.collective == "all_reduce"
        return found if reduces else found.model_copy(update={"differs_from_request": None})

    def agree(self, value: float) -> float:
        """As the strategy's processes agree."""
        return self.agreed(value)

    def tracer(self) -> StepTracer | None:
        """TensorFlow's profiler, where it is asked for."""
        member = self.request.member
        return tracer_of(self.request, member is None or member.leads)

    def forget_peak(self) -> None:
        """Of the devices."""
        forget_peak(self.devices.names)

    def peak_device_memory_bytes(self) -> int | None:
        """Of the devices."""
        return peak_device_memory_bytes(self.devices.names)


def replica_buffers(request: Request) -> ReplicaBuffers:
    """The buffers of `request` on their devices; Unsupported with what this machine or TensorFlow lacks."""
    import tensorflow as tf

    check_loop(request.plant, None)
    cell = collective_of(request.cell)
    if reason := lacking(cell):
        raise Unsupported(reason)
    devices = device_kinds()[cell.device].set_up(request)
    kind = strategies()[cell.strategy]
    strategy = kind.build(cell, devices, build_op(cell))
    shapes = _shapes_of(cell)  # not in the scope, where the workers would send each other the model's weights
    with strategy.scope():
        variables = [
            tf.Variable(
                tf.zeros(shape),
                trainable=False,
                synchronization=tf.VariableSynchronization.ON_READ,
                aggregation=tf.VariableAggregation.SUM,
            )
            for shape in shapes
        ]
    program = STEPS[cell.collective](strategy, variables)
    first = 0 if request.member is None else request.member.index * cell.replicas
    devices = kind.devices_of(strategy, devices)
    return ReplicaBuffers(request, cell, devices, strategy, variables, program, kind.agree(strategy), first)


def _shapes_of(cell: CollectiveCell) -> list[tuple[int, ...]]:
    """Of the tensors of a buffer. Unsupported for a model that has other gradients than when the cell was planned."""
    if not cell.gradients:
        return [(cell.elements,)]
    shapes = gradient_shapes(cell.gradients)
    if (elements := sum(map(math.prod, shapes))) != cell.elements:
        raise Unsupported(f"model: '{cell.gradients}' has {elements:,} gradients here, and the cell {cell.elements:,}")
    return shapes


def _in_one(tensors: Sequence[Any]) -> "Array":
    """Their elements one after the other, on the host."""
    import numpy as np

    flat = [tensor.numpy().reshape(-1) for tensor in tensors]
    return flat[0] if len(flat) == 1 else np.concatenate(flat)


def lacking(cell: CollectiveCell) -> str | None:
    """What tf.distribute has not got of what the cell asks for; None where it has it."""
    op = f"cross_device_op '{cell.cross_device_op}'"
    if cell.collective == "reduce_scatter":
        return "tf.distribute has no reduce-scatter, in any strategy or cross-device op"
    if cell.collective == "all_gather" and cell.cross_device_op in NO_GATHERING:
        return f"{op} reduces only: TensorFlow gathers with it as with reduction_to_one_device; ask for that"
    if cell.collective == "broadcast" and cell.strategy != "mirrored":
        return (
            f"strategy '{cell.strategy}': tf.distribute's public API has no broadcast between workers, only the one by "
            "which MultiWorkerMirroredStrategy sends initial values of variables"
        )
    if cell.collective == "broadcast" and cell.cross_device_op != "auto":
        return f"{op} has no broadcast of its own: TensorFlow copies to each device, whatever the op; use auto"
    if cell.collective != "all_reduce" and cell.packing != "default":
        return f"{cell.packing}: packs are of reductions, and {cell.collective} is none"
    return None


def _all_reduce(strategy: Any, variables: Sequence[Any]) -> Any:
    """As gradients are summed: all in one batch, which the op packs as it is asked to."""
    import tensorflow as tf

    return _in_replicas(strategy, variables, lambda of, own: of.all_reduce(tf.distribute.ReduceOp.SUM, own))


def _all_gather(strategy: Any, variables: Sequence[Any]) -> Any:
    return _in_replicas(strategy, variables, lambda of, own: [of.all_gather(value, axis=0) for value in own])


def _in_replicas(strategy: Any, variables: Sequence[Any], send: Callable[[Any, list[Any]], Any]) -> Any:
    """`send` in every replica, given its context and its tensors, which are read on its device."""
    import tensorflow as tf

    copies = [strategy.experimental_local_results(variable) for variable in variables]

    def replica() -> Any:
        context = tf.distribute.get_replica_context()
        number = int(tf.get_static_value(context.replica_id_in_sync_group))
        return send(context, [of[number % len(of)].read_value() for of in copies])  # of all workers it is counted

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def step() -> Any:
        received = [strategy.experimental_local_results(tensor) for tensor in strategy.run(replica)]
        return list(zip(*received, strict=True))

    return step


def _broadcast(strategy: Any, variables: Sequence[Any]) -> Any:
    """From the first replica's device, as a strategy gives all replicas the first one's initial values."""
    import tensorflow as tf

    [variable] = variables
    root = strategy.experimental_local_results(variable)[0]

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def step() -> Any:
        received = strategy.experimental_local_results(strategy.extended.broadcast_to(root.value(), variable))
        return [(value,) for value in received]

    return step


STEPS = {"all_reduce": _all_reduce, "all_gather": _all_gather, "broadcast": _broadcast}
"""Each makes a tf.function without arguments that gives what each replica received, in their order."""
