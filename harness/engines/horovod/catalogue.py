"""Every name that a spec may use with Horovod, for the parent: importing this imports no TensorFlow."""

from harness.engines.horovod.compression import COMPRESSIONS
from harness.engines.horovod.loops import loops
from harness.spec.catalogue import Catalogue
from harness.trial.same_work.catalogue import replicas_are_processes


def load_catalogue() -> Catalogue:
    """The catalogue of this installation."""
    return replicas_are_processes(
        "Horovod",
        "a plain tf.function in one process",
        "by Horovod",
        {name: f"gradients travel in {of.dtype}, by hvd.Compression.{of.name}" for name, of in COMPRESSIONS.items()},
        {name: loop.summary for name, loop in loops().items()},
        first="tape",
        cycles=True,
    )
