"""Every name that a spec may use with Horovod, for the parent: importing this imports no TensorFlow."""

from harness.engines.horovod.compression import COMPRESSIONS
from harness.engines.horovod.loops import loops
from harness.spec.catalogue import Catalogue, StrategyTraits
from harness.trial.same_work.catalogue import NONE, VIRTUAL_CPU, catalogue_of

TAPE = "tape"
"""The loop of a spec that names none: the first."""


def load_catalogue() -> Catalogue:
    """The catalogue of this installation."""
    strategies = (
        StrategyTraits(NONE, "a plain tf.function in one process", max_replicas=1),
        StrategyTraits(
            "data_parallel",
            "a process a replica, gradients averaged by Horovod as the loop says: give --workers, not --replicas",
            takes_cross_device_op=True,
            multi_worker=True,
            replica_a_process=True,
            packing="bytes_per_pack",
            devices=(VIRTUAL_CPU,),
            no_faults="faults of Horovod's jobs are not done",
        ),
    )
    first = sorted(loops(), key=lambda name: name != TAPE)
    return catalogue_of(
        "the processor, shared by processes",
        strategies,
        {name: f"gradients travel in {of.dtype}, by hvd.Compression.{of.name}" for name, of in COMPRESSIONS.items()},
        {name: loops()[name].summary for name in first},
    )
