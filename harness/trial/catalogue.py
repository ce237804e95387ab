"""Every registered name, for the parent: importing this imports no TensorFlow."""

from harness.spec.catalogue import Catalogue
from harness.trial.cross_device import cross_device_ops
from harness.trial.data import sources
from harness.trial.devices import device_kinds
from harness.trial.loops import loops
from harness.trial.strategies import strategies
from harness.trial.workloads import OPTIMIZERS, workloads


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
    )
