"""What a process of a job does: its part of the training, or what a coordinator sends it, and how that ends."""

import gc

from harness.engines.tensorflow.ending import classify
from harness.engines.tensorflow.membership import join
from harness.engines.tensorflow.recovery.job import Teller
from harness.engines.tensorflow.recovery.parameter_servers import ParameterServerJob
from harness.engines.tensorflow.recovery.synchronous import SynchronousJob
from harness.engines.tensorflow.server import serve
from harness.engines.tensorflow.training import build
from harness.protocol.channel import Channel
from harness.protocol.messages import Outcome, Report, Request
from harness.trial.ending import ending_of


def run_job(request: Request, channel: Channel) -> Outcome:
    """Do the job, or serve it; what TensorFlow raises becomes the outcome, for the parent to act on."""
    member = request.member
    try:
        if member is not None:
            join(member)
            if member.serves:
                return serve(request, member, channel)
        _train(request, channel)
        return Outcome(status="ok")
    except Exception as error:  # noqa: BLE001  whatever is raised ends this process's part, with its reason
        return Outcome(**ending_of(error, classify)._asdict())


def _train(request: Request, channel: Channel) -> None:
    assert request.job is not None
    channel.send(Report(phase="build"))
    training = build(request)
    kind = ParameterServerJob if request.training.asynchronous else SynchronousJob
    job = kind(training, request.job, Teller(channel))
    gc.enable()
    job.run()
