"""Every name that a spec may use with JAX, for the parent: importing this imports no JAX."""

from harness.engines.jax.loops import loops
from harness.engines.jax.models import models
from harness.environment import usable_cores
from harness.spec.catalogue import Catalogue, CrossDeviceOpTraits, DeviceTraits, ModelTraits, StrategyTraits
from harness.trial.same_work.architectures import unknown as unknown_model
from harness.trial.same_work.batches import DIGITS, SUMMARIES, gives, unknown
from harness.trial.same_work.optimizers import OPTIMIZERS

VIRTUAL_CPU = "virtual-cpu"
NONE = "none"


def _traits(_name: str) -> ModelTraits:
    return ModelTraits(takes=("images",), data=DIGITS)


def load_catalogue() -> Catalogue:
    """The catalogue of this installation."""
    known = models()
    strategies = (
        StrategyTraits(NONE, "a plain jitted step on one device", max_replicas=1),
        StrategyTraits(
            "data_parallel", "weights on every device, batches cut over them, as the loop says", devices=(VIRTUAL_CPU,)
        ),
        StrategyTraits(
            "multi_process",
            "the same over the devices of several processes, which exchange over Gloo",
            multi_worker=True,
            devices=(VIRTUAL_CPU,),
            no_faults="faults of JAX's jobs are not done",
        ),
    )
    return Catalogue(
        devices={
            VIRTUAL_CPU: DeviceTraits(VIRTUAL_CPU, "host platform devices; they share its cores", cores=usable_cores())
        },
        strategies={traits.name: traits for traits in strategies},
        cross_device_ops={"auto": CrossDeviceOpTraits("auto", "XLA's choice")},
        models={name: model.architecture.summary for name, model in known.items()},
        data=SUMMARIES,
        optimizers={name: optimizer.summary for name, optimizer in OPTIMIZERS.items()},
        loops={name: loop.summary for name, loop in loops().items()},
        data_fault=unknown,
        model_fault=unknown_model,
        model_traits=_traits,
        data_gives=gives,
    )
