"""A process's place in a cluster: what it must do before TensorFlow's runtime starts, and how it takes its leave."""

import json
import os

from harness.trial.namespace import enter
from harness.trial.protocol import Channel, Membership, Turn


def join(member: Membership) -> None:
    """Take the place: its network, and TF_CONFIG, which TensorFlow's resolvers read.

    The launcher holds every port bound until the trial is over, so that nobody else gets it; TensorFlow's server
    may bind it besides only when told to share.
    """
    if member.namespace:
        enter(member.namespace, member.user_namespace or None)
    os.environ["TF_CONFIG"] = json.dumps(
        {"cluster": member.cluster, "task": {"type": member.task, "index": member.index}}
    )
    os.environ["TF_GRPC_REUSE_PORT"] = "true"


def await_leave(channel: Channel) -> None:
    """Stay until the parent has heard from everyone: a process that leaves early is a failure to the others."""
    while True:
        try:
            line = channel.receive_line()
        except EOFError:
            return
        if line is not None and Turn.model_validate_json(line).do == "leave":
            return
