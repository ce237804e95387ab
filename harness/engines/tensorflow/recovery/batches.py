"""The batches of a job."""

from typing import Any

from harness.engines.tensorflow.data.cached_batches import cached_batches
from harness.engines.tensorflow.training import Training
from harness.trial.job import BATCHES


def job_batches(training: Training) -> list[Any]:
    """Distinct global batches, the same ones in every process and after every restart."""
    return cached_batches(
        training.request,
        "job-batches",
        training.source,
        training.input_shape,
        training.classes,
        BATCHES,
        training.vocabulary,
    )
