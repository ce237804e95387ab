"""Every name that a spec may use with PyTorch, for the parent: importing this imports no PyTorch."""

from harness.engines.torch.loops import loops
from harness.engines.torch.loops.ddp_hook import COMPRESSIONS
from harness.environment import usable_cores
from harness.spec.catalogue import Catalogue, CrossDeviceOpTraits, DeviceTraits, ModelTraits, StrategyTraits
from harness.trial.same_work.architectures import architectures
from harness.trial.same_work.architectures import unknown as unknown_model
from harness.trial.same_work.batches import DIGITS, SUMMARIES, gives, unknown
from harness.trial.same_work.optimizers import OPTIMIZERS

VIRTUAL_CPU = "virtual-cpu"
NONE = "none"
DDP = "ddp"
"""The loop of a spec that names none: the first."""


def _traits(_name: str) -> ModelTraits:
    return ModelTraits(takes=("images",), data=DIGITS)


def load_catalogue() -> Catalogue:
    """The catalogue of this installation."""
    strategies = (
        StrategyTraits(NONE, "a plain eager step in one process", max_replicas=1),
        StrategyTraits(
            "data_parallel",
            "a process a replica, gradients averaged over Gloo as the loop says: give --workers, not --replicas",
            takes_cross_device_op=True,
            multi_worker=True,
            replica_a_process=True,
            packing="bytes_per_pack",
            devices=(VIRTUAL_CPU,),
            no_faults="faults of PyTorch's jobs are not done",
        ),
    )
    return Catalogue(
        devices={VIRTUAL_CPU: DeviceTraits(VIRTUAL_CPU, "the processor, shared by processes", cores=usable_cores())},
        strategies={traits.name: traits for traits in strategies},
        cross_device_ops={
            name: CrossDeviceOpTraits(name, f"gradients travel in {of.dtype}, by DDP's {of.hook}")
            for name, of in COMPRESSIONS.items()
        },
        models={name: architecture.summary for name, architecture in architectures().items()},
        data=SUMMARIES,
        optimizers={name: optimizer.summary for name, optimizer in OPTIMIZERS.items()},
        loops={name: loops()[name].summary for name in sorted(loops(), key=lambda name: name != DDP)},
        data_fault=unknown,
        model_fault=unknown_model,
        model_traits=_traits,
        data_gives=gives,
    )
