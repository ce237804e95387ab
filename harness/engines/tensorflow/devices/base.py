"""What a kind of device must be able to say and do."""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.cards import cards_in_use
from harness.environment.gpu import not_found
from harness.record.trial import Resources
from harness.spec.catalogue import DeviceTraits

if TYPE_CHECKING:
    from harness.protocol.messages import Membership, Request


@dataclass(frozen=True)
class Devices:
    """The devices that the replicas of one trial got.

    `names` has one logical device a replica; `physical` is the number of processors that bound the
    throughput; `shared` is True when two replicas share one of them. `topology` is what initialising a TPU system
    gave, with its resolver.
    """

    names: tuple[str, ...]
    physical: int
    shared: bool
    resolver: Any = None
    topology: Any = None
    reference: str = ""
    """Where the single-device reference runs; empty is the first replica's device."""

    def resources(self, request: "Request", of_this_process: bool = True) -> Resources:
        """What a trial ran on: the devices, and the sizes of the thread pools. Of devices of other processes the cards
        are not known, and the pools are as asked for."""
        asked = (request.intra_op_threads, request.inter_op_threads)
        within, between = threads_here() if of_this_process else asked
        return Resources(
            logical_devices=list(self.names),
            physical_devices=self.physical,
            shared=self.shared,
            intra_op_threads=within,
            inter_op_threads=between,
            gpus=cards_in_use(self.names) if of_this_process else [],
        )


@dataclass(frozen=True)
class ServerDevices:
    """What a process that only carries out what a coordinator sends takes of its host: the device part of its
    server's ConfigProto, and the processors that bound what its replicas do."""

    config: dict[str, Any]
    physical: int = 1


class DeviceKind(ABC):
    """A kind of device. Methods that touch TensorFlow run in a trial's process only."""

    traits: DeviceTraits

    @property
    def name(self) -> str:
        """The name in specs and records."""
        return self.traits.name

    @abstractmethod
    def available(self) -> str | None:
        """None when this kind can be used here, else the reason. Runs in a fresh trial process."""

    @abstractmethod
    def set_up(self, request: "Request") -> Devices:
        """Configure TensorFlow's runtime for the request and return the replicas' devices.

        Raises Unsupported, with the reason, when the machine lacks what is asked for. In a process of a cluster the
        runtime must not start here: collectives are configured before it (`names` are then given without asking it).
        """

    def server_devices(self, request: "Request", member: "Membership") -> ServerDevices:
        """What a process that only serves takes of its host; raises what `set_up` does.

        A server that is told nothing takes every GPU of its host, all of its memory with it, and then computes there.
        """
        return ServerDevices({"device_count": {"GPU": 0}})


def set_threads(request: "Request") -> None:
    """Fix the pools' sizes; must come before TensorFlow's runtime starts."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(request.intra_op_threads)
    tf.config.threading.set_inter_op_parallelism_threads(request.inter_op_threads)


def threads_here() -> tuple[int, int]:
    """The sizes of this process's pools within and between ops, as TensorFlow says; 0 is its own choice."""
    import tensorflow as tf

    pools = tf.config.threading
    return pools.get_intra_op_parallelism_threads(), pools.get_inter_op_parallelism_threads()


def let_memory_grow(gpus: Sequence[Any] | None = None) -> None:
    """Take of `gpus`, by default of all, what is needed, when it is; must come before TensorFlow's runtime starts.

    TensorFlow takes all of every GPU that it sees, and trials are alive together. It forgets what `set_memory_growth`
    told it where any device is cut into logical ones, as DTensor does with the processor (`_compute_device_options` in
    its `eager/context.py`); the variable it heeds always.
    """
    import tensorflow as tf

    os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
    for gpu in tf.config.list_physical_devices("GPU") if gpus is None else gpus:
        tf.config.experimental.set_memory_growth(gpu, True)


def no_gpu_reason() -> str | None:
    """Why TensorFlow sees no GPU here, or None when it sees one."""
    import tensorflow as tf

    if tf.config.list_physical_devices("GPU"):
        return None
    if not tf.test.is_built_with_cuda() and not tf.test.is_built_with_rocm():
        return "TensorFlow finds no GPU: this build of TensorFlow has no GPU support"
    return not_found(
        "TensorFlow", "its CUDA libraries are missing or do not match (pip install 'tensorflow[and-cuda]')"
    )
