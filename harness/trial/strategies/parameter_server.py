"""ParameterServerStrategy: variables on servers, workers that update them without waiting for each other."""

import dataclasses
from typing import TYPE_CHECKING, Any

from harness.spec.catalogue import StrategyTraits
from harness.spec.cell import Cell
from harness.trial.devices.base import Devices
from harness.trial.membership import cluster_resolver
from harness.trial.strategies.base import Strategy

if TYPE_CHECKING:
    import tensorflow as tf

MIN_SHARD_BYTES = 64 * 1024
"""`min_size`: as many shards as have at least so many bytes each. TensorFlow's default, 256 KiB, leaves small models
whole."""
MAX_SHARD_BYTES = 64 * 1024
"""`max_size`: as many shards as are needed for none to have more bytes; TensorFlow has no default for it."""
ADDITIONS = 8
"""Additions a worker that the check of the servers schedules."""


class ParameterServer(Strategy):
    """tf.distribute.ParameterServerStrategy with a ClusterCoordinator; the trial runs in the coordinator."""

    traits = StrategyTraits(
        "parameter_server",
        "tf.distribute.ParameterServerStrategy with a ClusterCoordinator, asynchronous",
        multi_worker=True,
        parameter_servers=True,
        devices=("gpu", "virtual-cpu"),
    )

    def build(self, cell: Cell, devices: Devices, cross_device_op: Any) -> "tf.distribute.Strategy":
        """Connects to the servers in TF_CONFIG; returns when all are there."""
        import tensorflow as tf

        resolver = cluster_resolver()
        return tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=partitioner_of(cell))

    def devices_of(self, built: "tf.distribute.Strategy", devices: Devices) -> Devices:
        """A worker's device each; the coordinator computes nothing."""
        import tensorflow as tf

        workers = [name for name in _remote_devices(tf) if "/job:worker/" in name]
        return dataclasses.replace(devices, names=tuple(workers), reference="/job:chief/replica:0/task:0/device:CPU:0")

    def check_reduction(self, built: "tf.distribute.Strategy") -> str | None:
        """Additions from all workers to one variable: nothing is lost and nothing counted twice."""
        import tensorflow as tf

        coordinator = tf.distribute.coordinator.ClusterCoordinator(built)
        with built.scope():
            total = tf.Variable(0.0, dtype=tf.float64)

        @tf.function(autograph=False)  # type: ignore[untyped-decorator]
        def add(value: Any) -> None:
            total.assign_add(value, use_locking=True)

        terms = ADDITIONS * built.extended._num_workers
        for term in range(terms):
            coordinator.schedule(add, args=(tf.constant(2.0**term, tf.float64),))
        coordinator.join()
        got, whole = float(total.numpy()), 2.0**terms - 1
        if got == whole:
            return None
        missing = [str(term) for term in range(terms) if not int(got) >> term & 1]
        return f"{terms} additions to one variable gave {got:.0f} where {whole:.0f} is right; missing: {missing}"


def partitioner_of(cell: Cell) -> Any:
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


def _remote_devices(tf: Any) -> list[str]:
    return sorted(device.name for device in tf.config.list_logical_devices())


STRATEGY = ParameterServer()
