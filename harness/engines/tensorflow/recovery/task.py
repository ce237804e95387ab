"""What a process of a job does under TensorFlow: its part of the training, or what a coordinator sends it."""

from harness.engines.tensorflow.clusters import TensorFlowClusters
from harness.engines.tensorflow.ending import classify
from harness.engines.tensorflow.recovery.parameter_servers import ParameterServerJob
from harness.engines.tensorflow.recovery.synchronous import SynchronousTraining
from harness.engines.tensorflow.training import build
from harness.protocol.channel import Channel
from harness.protocol.messages import Outcome, Request
from harness.trial import job
from harness.trial.job import SynchronousJob, Teller


def run_job(request: Request, channel: Channel) -> Outcome:
    """Do the job, or serve it."""
    return job.run_job(request, channel, TensorFlowClusters(), classify, _train)


def _train(request: Request, teller: Teller) -> None:
    assert request.job is not None
    training = build(request)
    if request.training.asynchronous:
        ParameterServerJob(training, teller).run()
    else:
        SynchronousJob(request, teller, SynchronousTraining(training, request.job)).run()
