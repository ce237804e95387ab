"""A process's place in a cluster as TensorFlow learns of it: TF_CONFIG, or Slurm where that placed the processes."""

import json
import os
from typing import Any

from harness.errors import HarnessError
from harness.protocol.messages import Membership, SlurmShape
from harness.trial.membership import enter_network

SLURM_SHAPE = "HARNESS_SLURM_SHAPE"
"""The variable that holds, as TF_CONFIG does elsewhere, how Slurm's resolver is to see the cluster."""


def leave_others() -> None:
    """Forget a cluster that this process was started in: strategies would look for it, whatever a cell asks for."""
    for name in ("TF_CONFIG", SLURM_SHAPE):
        os.environ.pop(name, None)


def join(member: Membership) -> None:
    """Take the place: its network, and TF_CONFIG, which TensorFlow's resolvers read.

    The launcher holds every port bound until the trial is over, so that nobody else gets it; TensorFlow's server
    may bind it besides only when told to share.
    """
    enter_network(member)
    os.environ["TF_GRPC_REUSE_PORT"] = "true"
    if member.slurm is not None:
        _join_by_slurm(member, member.slurm)
        return
    os.environ["TF_CONFIG"] = json.dumps(
        {"cluster": member.cluster, "task": {"type": member.task, "index": member.index}}
    )


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
