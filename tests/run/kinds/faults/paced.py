"""A model of a job whose steps wait instead of computing: a signal comes to it between its first and its last."""

import time
from typing import Any

import keras

from harness.engines.tensorflow.recovery.parameter_servers import ParameterServerJob
from harness.engines.tensorflow.recovery.synchronous import SynchronousTraining

PACE_S = 0.05
"""Of each step, beside what it computes: no busy machine makes that less."""
step, fly = SynchronousTraining.step, ParameterServerJob._fly


def model() -> keras.Model:
    """Of a hundredth of what the default computes."""
    return _model(8)


def megabyte_model() -> keras.Model:
    """Of weights that, with an optimizer's two slots, take more than a megabyte."""
    return _model(1200)


def _model(width: int) -> keras.Model:
    SynchronousTraining.step = _step  # type: ignore[method-assign]  this process is the job's own
    ParameterServerJob._fly = _fly  # type: ignore[method-assign]
    layers = keras.layers
    return keras.Sequential([keras.Input((8, 8, 1)), layers.Flatten(), layers.Dense(width, "relu"), layers.Dense(10)])


def _step(training: SynchronousTraining, number: int) -> None:
    time.sleep(PACE_S)
    step(training, number)


def _fly(job: ParameterServerJob, number: int) -> Any:
    time.sleep(PACE_S)
    return fly(job, number)
