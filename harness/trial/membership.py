"""A process's place in a cluster: what it must do before TensorFlow's runtime starts, and how it takes its leave."""

import json
import os
import socket
import time
from collections.abc import Iterable
from typing import Any

from harness.errors import HarnessError
from harness.protocol.messages import Channel, Membership, SlurmShape, Turn
from harness.spec.address import split_address
from harness.trial.namespace import enter

SLURM_SHAPE = "HARNESS_SLURM_SHAPE"
"""The variable that holds, as TF_CONFIG does elsewhere, how Slurm's resolver is to see the cluster."""
LISTEN_S = 10.0
"""How long servers are waited for before that is left to TensorFlow."""
LOOK_S = 0.01


def join(member: Membership) -> None:
    """Take the place: its network, and TF_CONFIG, which TensorFlow's resolvers read.

    The launcher holds every port bound until the trial is over, so that nobody else gets it; TensorFlow's server
    may bind it besides only when told to share.
    """
    if member.namespace:
        enter(member.namespace, member.user_namespace or None)
    _resolve_all(member)
    os.environ["TF_GRPC_REUSE_PORT"] = "true"
    if member.slurm is not None:
        _join_by_slurm(member, member.slurm)
        return
    os.environ["TF_CONFIG"] = json.dumps(
        {"cluster": member.cluster, "task": {"type": member.task, "index": member.index}}
    )


def _resolve_all(member: Membership) -> None:
    """HarnessError when a process's host does not resolve here, where TensorFlow would try until the trial's limit."""
    for task, addresses in member.cluster.items():
        for index, address in enumerate(addresses):
            host = split_address("address", address)[0]
            try:
                socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            except OSError as error:
                whose = member.model_copy(update={"task": task, "index": index}).name
                raise HarnessError(
                    f"{whose}'s address '{host}' does not resolve on {socket.gethostname()}: {error.strerror or error}"
                ) from None


def await_listening(addresses: Iterable[str], limit_s: float = LISTEN_S) -> bool:
    """Return when all of `addresses` take connections: True; or after `limit_s` seconds: False.

    TensorFlow's channels try again a whole second after a connection was refused, and processes that are started
    together listen within tenths of one. Whoever is missing after the limit is TensorFlow's to wait for.
    """
    end = time.monotonic() + limit_s
    return all(_listens(address, end) for address in addresses)


def _listens(address: str, end: float) -> bool:
    host, port = split_address("address", address)
    while (left := end - time.monotonic()) > 0:
        try:
            socket.create_connection((host, port or 0), timeout=left).close()
        except OSError:
            time.sleep(LOOK_S)
        else:
            return True
    return False


def cluster_resolver() -> Any:
    """What tells a strategy of the cluster that this process has joined: Slurm where it placed the processes, else
    TF_CONFIG."""
    import tensorflow as tf

    resolvers = tf.distribute.cluster_resolver
    if SLURM_SHAPE not in os.environ:
        return resolvers.TFConfigClusterResolver()
    shape = SlurmShape.model_validate_json(os.environ[SLURM_SHAPE])

    class OfSlurm(resolvers.SlurmClusterResolver):  # type: ignore[misc,name-defined]
        def num_accelerators(self, *_: Any, **__: Any) -> dict[str, int]:
            # Its own answer is the GPUs that it dealt, which it must deal even where there are none.
            return {"GPU": len(tf.config.list_logical_devices("GPU"))}

    return OfSlurm(
        jobs=shape.jobs,
        port_base=shape.port_base,
        tasks_per_node=shape.tasks_per_node,
        gpus_per_task=1,
        gpus_per_node=max(shape.tasks_per_node.values()),
        auto_set_gpu=False,  # which GPUs are visible is the trial's to say
    )


def _join_by_slurm(member: Membership, shape: SlurmShape) -> None:
    """Be the process of this rank, as if srun had started it; HarnessError when Slurm's resolver sees it elsewhere."""
    os.environ["SLURM_PROCID"] = str(shape.rank)
    os.environ[SLURM_SHAPE] = shape.model_dump_json()
    resolver = cluster_resolver()
    seen, place = resolver.cluster_spec().as_dict(), resolver.get_task_info()
    if seen != member.cluster or place != (member.task, member.index):
        raise HarnessError(
            f"SlurmClusterResolver sees {place} in {seen}, where the launcher placed {member.name} in {member.cluster}"
        )


def await_leave(channel: Channel) -> None:
    """Stay until the parent has heard from everyone: a process that leaves early is a failure to the others."""
    while True:
        try:
            line = channel.receive_line()
        except EOFError:
            return
        if line is not None and Turn.model_validate_json(line).do == "leave":
            return
