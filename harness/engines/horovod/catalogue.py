"""Every name that a spec may use with Horovod, for the parent: importing this imports no TensorFlow."""

from harness.engines.horovod.compression import COMPRESSIONS
from harness.engines.horovod.loops import loops
from harness.record.explain import IN_ONE_CALL
from harness.spec.catalogue import Catalogue
from harness.trial.same_work.catalogue import WITHOUT_BARRIER, replicas_are_processes

TAPE, OPTIMIZER, FIT = "tape", "optimizer", "fit"
INSTRUMENTS = (*WITHOUT_BARRIER, IN_ONE_CALL)
"""Whatever processes tell each other waits for Horovod's next cycle, which beside a barrier would pass for waiting for
the slowest."""


def load_catalogue() -> Catalogue:
    """The catalogue of this installation."""
    return replicas_are_processes(
        "a plain tf.function in one process",
        "by Horovod",
        {name: f"gradients travel in {of.dtype}, by hvd.Compression.{of.name}" for name, of in COMPRESSIONS.items()},
        {name: loop.summary for name, loop in loops().items()},
        first=TAPE,
        instruments={TAPE: INSTRUMENTS, OPTIMIZER: INSTRUMENTS, FIT: WITHOUT_BARRIER},
        cycles=True,
    )
