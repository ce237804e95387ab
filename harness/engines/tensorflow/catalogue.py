"""Every registered name, for the parent: importing this imports no TensorFlow."""

from harness.engines.tensorflow.cross_device import cross_device_ops
from harness.engines.tensorflow.data import data_gives, has_pipeline, sources, unknown
from harness.engines.tensorflow.data_for_model import tokens_fault
from harness.engines.tensorflow.devices import device_kinds
from harness.engines.tensorflow.gradients import gradient_bytes
from harness.engines.tensorflow.loops import loops
from harness.engines.tensorflow.strategies import strategies
from harness.engines.tensorflow.workloads import (
    APPLICATIONS,
    OPTIMIZERS,
    model_text,
    model_traits,
    optimizer_text,
    workloads,
)
from harness.engines.tensorflow.workloads import unknown as unknown_model
from harness.record.explain import INSTRUMENTS
from harness.spec.catalogue import Catalogue

INSTRUMENTED = "custom"
"""The one loop whose steps can be taken apart."""


def load_catalogue() -> Catalogue:
    """The catalogue of this installation."""
    return Catalogue(
        devices={name: kind.traits for name, kind in device_kinds().items()},
        strategies={name: strategy.traits for name, strategy in strategies().items()},
        cross_device_ops={name: op.traits for name, op in cross_device_ops().items()},
        models={name: workload.summary for name, workload in workloads().items()},
        data={name: source.summary for name, source in sources().items()},
        optimizers=dict(OPTIMIZERS),
        loops={name: kind.summary for name, kind in loops().items()},
        models_beside=APPLICATIONS,
        oversized="harness.engines.tensorflow.workloads.oversized:make_model",
        plants=True,
        instruments={INSTRUMENTED: tuple(INSTRUMENTS)},
        data_fault=unknown,
        model_fault=unknown_model,
        model_text=model_text,
        optimizer_text=optimizer_text,
        model_traits=model_traits,
        data_gives=data_gives,
        tokens_fault=tokens_fault,
        has_pipeline=has_pipeline,
        gradient_bytes=gradient_bytes,
    )
