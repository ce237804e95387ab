"""What a process of a job does: its part of the training, or what a coordinator sends it, and how that ends."""

import gc
import os

from harness.engines.tensorflow.ending import classify
from harness.engines.tensorflow.membership import join
from harness.engines.tensorflow.recovery.job import Teller
from harness.engines.tensorflow.recovery.parameter_servers import ServedJob
from harness.engines.tensorflow.recovery.synchronous import SynchronousJob
from harness.engines.tensorflow.server import serve
from harness.engines.tensorflow.training import build
from harness.errors import HarnessError, Unsupported
from harness.protocol.channel import Channel
from harness.protocol.messages import Outcome, Report, Request
from harness.record.trial import Resources
from harness.trial.ending import traceback_without_paths


def run_job(request: Request, channel: Channel) -> Outcome:
    """Do the job, or serve it; what TensorFlow raises becomes the outcome, for the parent to act on."""
    member, evidence = request.member, None
    try:
        if member is not None:
            join(member)
            if member.serves:
                return serve(request, member, channel)
        _train(request, channel)
        return Outcome(status="ok", resources=Resources())
    except EOFError:
        os._exit(1)  # the parent is gone
    except Unsupported as error:
        status, reason = "unsupported", str(error)
    except HarnessError as error:
        status, reason = "crashed", str(error)
    except Exception as error:  # noqa: BLE001  whatever is raised ends this process's part, with its reason
        status, reason = classify(error)
        evidence = traceback_without_paths()
    return Outcome(status=status, reason=reason, evidence=evidence, resources=Resources())


def _train(request: Request, channel: Channel) -> None:
    assert request.job is not None
    channel.send(Report(phase="build"))
    training = build(request)
    kind = ServedJob if request.training.asynchronous else SynchronousJob
    job = kind(training, request.job, Teller(channel))
    gc.enable()
    job.run()
