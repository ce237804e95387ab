"""ParameterServerStrategy: variables on servers, workers that update them without waiting for each other."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.devices.base import Devices
from harness.engines.tensorflow.membership import cluster_resolver
from harness.engines.tensorflow.strategies.base import Strategy
from harness.spec.catalogue import StrategyTraits
from harness.spec.cell import TrainingCell, trained
from harness.spec.work import DistributedCell
from harness.trial.membership import await_listening
from harness.trial.sums import ANY_MODEL, Tensors

if TYPE_CHECKING:
    import tensorflow as tf

MIN_SHARD_BYTES = 64 * 1024
"""`min_size`: as many shards as have at least so many bytes each. TensorFlow's default, 256 KiB, leaves small models
whole."""
MAX_SHARD_BYTES = 64 * 1024
"""`max_size`: as many shards as are needed for none to have more bytes; TensorFlow has no default for it."""
ADDITIONS = 8
"""Additions a worker that the check of the servers schedules."""
COORDINATOR = "/job:chief/replica:0/task:0/device:CPU:0"
MOST_NAMED = 5
"""Wrong additions that the evidence names."""


class ParameterServer(Strategy):
    """tf.distribute.ParameterServerStrategy with a ClusterCoordinator; the trial runs in the coordinator."""

    traits = StrategyTraits(
        "parameter_server",
        "tf.distribute.ParameterServerStrategy with a ClusterCoordinator, asynchronous",
        multi_worker=True,
        parameter_servers=True,
        instruments=True,
        devices=("gpu", "virtual-cpu"),
    )

    def build(self, cell: DistributedCell, devices: Devices, cross_device_op: Any) -> "tf.distribute.Strategy":
        """Connects to the servers in TF_CONFIG; returns when all are there."""
        import tensorflow as tf

        resolver = cluster_resolver()
        cluster = resolver.cluster_spec().as_dict()
        await_listening(address for task, addresses in cluster.items() if task != "chief" for address in addresses)
        return tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=partitioner_of(trained(cell)))

    def devices_of(self, built: "tf.distribute.Strategy", devices: Devices) -> Devices:
        """The workers' devices of the cell's kind: one on GPUs has a processor, too. The coordinator computes nothing.

        The reference is computed on a device of the same kind, whose arithmetic is the workers': the coordinator's own
        processor, or the first worker's GPU.
        """
        import tensorflow as tf

        kind = tf.DeviceSpec.from_string(devices.names[0]).device_type
        workers = tuple(sorted(d.name for d in tf.config.list_logical_devices(kind) if "/job:worker/" in d.name))
        return dataclasses.replace(devices, names=workers, reference=COORDINATOR if kind == "CPU" else workers[0])

    def check_reduction(self, built: "tf.distribute.Strategy", tensors: Tensors = ANY_MODEL) -> str | None:
        """Additions from all workers to one variable, each of one to its own element: nothing is lost, and nothing
        counted twice."""
        import tensorflow as tf

        coordinator = tf.distribute.coordinator.ClusterCoordinator(built)
        additions = ADDITIONS * built.extended._num_workers
        with built.scope():
            counts = tf.Variable(tf.zeros([additions], tf.int32), trainable=False)

        @tf.function(autograph=False)  # type: ignore[untyped-decorator]
        def add(place: Any) -> None:
            counts.assign_add(tf.one_hot(place, additions, dtype=tf.int32), use_locking=True)

        for place in range(additions):
            coordinator.schedule(add, args=(tf.constant(place),))
        coordinator.join()
        return miscounted(tf.convert_to_tensor(counts).numpy().tolist())


def miscounted(counts: Sequence[int]) -> str | None:
    """What additions of one each, to elements of their own, came to instead; None when each was made once."""
    wrong = {place: count for place, count in enumerate(counts) if count != 1}
    if not wrong:
        return None
    found = ", ".join(f"number {place} {count} times" for place, count in list(wrong.items())[:MOST_NAMED])
    more = f" and {len(wrong) - MOST_NAMED} more" if len(wrong) > MOST_NAMED else ""
    return f"of {len(counts)} additions to one variable, each to be made once: {found}{more}"


def partitioner_of(cell: TrainingCell) -> Any:
    """The partitioner of `cell`, None for none; at most a shard a server."""
    import tensorflow as tf

    partitioners = tf.distribute.experimental.partitioners
    match cell.partitioner:
        case "fixed":
            return partitioners.FixedShardsPartitioner(cell.ps)
        case "min_size":
            return partitioners.MinSizePartitioner(min_shard_bytes=MIN_SHARD_BYTES, max_shards=cell.ps)
        case "max_size":
            return partitioners.MaxSizePartitioner(max_shard_bytes=MAX_SHARD_BYTES, max_shards=cell.ps)
        case _:
            return None


STRATEGY = ParameterServer()
