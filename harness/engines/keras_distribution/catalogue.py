"""Every name that a spec may use with keras.distribution, for the parent: importing this imports no Keras."""

from dataclasses import replace

from harness.engines._on_jax.catalogue import on_jax
from harness.engines.keras_distribution.loops import loops
from harness.spec.catalogue import VIRTUAL_CPU, Catalogue, StrategyTraits
from harness.spec.work import TRAINING
from harness.trial.same_work.catalogue import AXES_OF_TRAININGS, LEVERS_OF_TRAININGS, NONE

OF_NO_USE = frozenset({"prefetch"})
"""`fit` puts batches on the devices within the step, so that nothing of them is done ahead of it."""
TAKEN = AXES_OF_TRAININGS - OF_NO_USE


def load_catalogue() -> Catalogue:
    """The catalogue of this installation."""
    strategies = (
        StrategyTraits(
            NONE,
            "Model.fit without a distribution, on one device",
            max_replicas=1,
            instruments=True,
            one_loop=True,
        ),
        StrategyTraits(
            "distribution",
            "keras.distribution over the devices of one process, as the loop says; model_parallel takes --mesh",
            meshes=True,
            cutting_loops=("model_parallel",),
            instruments=True,
            devices=(VIRTUAL_CPU,),
        ),
        StrategyTraits(
            "multi_process",
            "DataParallel over the devices of several processes, which exchange over Gloo",
            multi_worker=True,
            loops=("data_parallel",),
            instruments=True,
            devices=(VIRTUAL_CPU,),
        ),
    )
    ways = {name: loop.summary for name, loop in loops().items()}
    found = on_jax("host platform devices of JAX; they share its cores", strategies, ways)
    return replace(found, taken={TRAINING: TAKEN}, levers=LEVERS_OF_TRAININGS - OF_NO_USE)
