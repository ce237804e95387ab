"""A worker or parameter server: it carries out what the coordinator sends, until the trial is over."""

from typing import TYPE_CHECKING

from harness.engines.tensorflow.devices import device_kinds
from harness.engines.tensorflow.devices.base import ServerDevices
from harness.protocol.channel import Channel
from harness.protocol.messages import Membership, Outcome, Report, Request, Turn
from harness.record.trial import Resources
from harness.trial.usage import peak_memory_bytes, usage

if TYPE_CHECKING:
    import tensorflow as tf


def serve(request: Request, member: Membership, channel: Channel) -> Outcome:
    """Run TensorFlow's server of this place in the cluster; raises what TensorFlow raises when it cannot start, and
    Unsupported where the host lacks the devices."""
    import tensorflow as tf

    channel.send(Report(phase="build"))
    server_devices = device_kinds()[request.cell.shape.device].server_devices(request, member)
    server = tf.distribute.Server(
        tf.train.ClusterSpec(member.cluster),
        job_name=member.task,
        task_index=member.index,
        protocol="grpc",
        config=server_config(request, server_devices),
    )
    channel.send(Report(ready=True))
    _obey(channel)
    del server  # it ends with the process; until here it had to live
    resources = Resources(physical_devices=server_devices.physical)
    return Outcome(status="ok", resources=resources, peak_memory_bytes=peak_memory_bytes())


def server_config(request: Request, server_devices: ServerDevices) -> "tf.compat.v1.ConfigProto":
    """What the server is told, as `tf.config` is not heeded by one: its devices, and the sizes of its pools."""
    import tensorflow as tf

    return tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=request.intra_op_threads,
        inter_op_parallelism_threads=request.inter_op_threads,
        **server_devices.config,
    )


def _obey(channel: Channel) -> None:
    """Answer what the parent asks until it says leave; EOFError when the parent is gone."""
    while True:
        line = channel.receive_line()
        if line is None:
            continue
        match Turn.model_validate_json(line).do:
            case "usage":
                channel.send(Report(usage=usage()))
            case "leave" | "finish":
                return
            case "window":
                pass
