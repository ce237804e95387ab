"""Every name that a spec may use with JAX, for the parent: importing this imports no JAX."""

from harness.engines._on_jax.catalogue import on_jax
from harness.engines.jax.loops import loops
from harness.spec.catalogue import VIRTUAL_CPU, Catalogue, DeviceTraits, StrategyTraits
from harness.trial.same_work.catalogue import GPU, NONE

CARDS = DeviceTraits(
    GPU,
    "physical GPUs of one process",
    live_trials=4,
    refuses={"intra_op_threads": "JAX computes there without the processor's threads: leave intra_op_threads out"},
)


def load_catalogue() -> Catalogue:
    """The catalogue of this installation."""
    strategies = (
        StrategyTraits(NONE, "a plain jitted step on one device", max_replicas=1, instruments=True, one_loop=True),
        StrategyTraits(
            "data_parallel",
            "weights on every device, batches cut over them, as the loop says",
            collectives=True,
            instruments=True,
            devices=(VIRTUAL_CPU, GPU),
        ),
        StrategyTraits(
            "multi_process",
            "the same over the devices of several processes, which exchange over Gloo",
            multi_worker=True,
            collectives=True,
            instruments=True,
            devices=(VIRTUAL_CPU,),
        ),
    )
    ways = {name: loop.summary for name, loop in loops().items()}
    return on_jax("host platform devices; they share its cores", strategies, ways, cards=(CARDS,))
