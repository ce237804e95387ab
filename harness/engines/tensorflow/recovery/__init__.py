"""A job that is to survive faults: so many steps, in an order that can be taken up again, with checkpoints."""

from harness.engines.tensorflow.recovery.job import run_job

__all__ = ["run_job"]
