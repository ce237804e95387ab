"""The names of the same work, for the parent: importing this imports no framework."""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from harness.environment import usable_cores
from harness.record.explain import BARRIER, IN_ONE_CALL, INSTRUMENTS, NO_PULL, NO_PUSH
from harness.spec.axes import SYNTHETIC
from harness.spec.catalogue import (
    VIRTUAL_CPU,
    Catalogue,
    CrossDeviceOpTraits,
    DeviceTraits,
    ModelTraits,
    StrategyTraits,
)
from harness.spec.collective import COLLECTIVE
from harness.spec.work import TAG, TRAINING
from harness.trial.same_work.architectures import architectures
from harness.trial.same_work.batches import DIGITS, SUMMARIES, gives
from harness.trial.same_work.optimizers import OPTIMIZERS

AXES_OF_TRAININGS = frozenset(
    {"device", "strategy", "replicas", "workers", "batch_size", "batch_scope", "global_batch_size", "tokens"}
    | {"cross_device_op", "packing", "cycle_time", "model", "data", "optimizer", "loop", "network", "mesh"}
    | {"intra_op_threads", "prefetch", "engine", "quantity"}
)
"""Keys of a cell that these engines know what to do with. Another is refused where it is not at its default, so that
an axis that TensorFlow's programs alone have is never one without effect."""
AXES_OF_COLLECTIVES = frozenset(
    {TAG, "device", "collective", "size", "strategy", "replicas", "workers", "network", "intra_op_threads", "engine"}
)
"""Those of a collective's cell."""
REFUSED = {
    "trace": "TensorFlow's profiler alone is asked; leave the flag out",
    "step": "a step of your own is measured by itself under engine tensorflow: leave engine out",
}
"""Settings of a run that these engines do not take, with the reason."""
GPU = "gpu"
NONE = "none"
LEVERS_OF_TRAININGS = frozenset({"prefetch", "batch_size", "optimizer", "replicas", "workers", "model"})
"""Keys by which `explain` advises; those of packing are an engine's own."""
TAKEN_APART = tuple(name for name in INSTRUMENTS if name not in (IN_ONE_CALL, NO_PULL, NO_PUSH))
"""Instruments of steps that all replicas make together, a call each."""
WITHOUT_BARRIER = tuple(name for name in TAKEN_APART if name != BARRIER)
"""Those of an engine in which nothing can be made to wait for all replicas and for nothing else."""


def replicas_are_processes(
    alone: str,
    averaged: str,
    ops: Mapping[str, str],
    loops: Mapping[str, str],
    first: str,
    instruments: Mapping[str, Collection[str]] = MappingProxyType({}),
    cycles: bool = False,
    cards: Collection[DeviceTraits] = (),
) -> Catalogue:
    """The catalogue of an engine whose replicas are a process each: what a step `alone` is, by what gradients are
    averaged, and the summaries of its ops and loops, of which `first` is that of a spec that names none; `instruments`
    are those of `explain` that it has in a loop; `cycles` as in StrategyTraits; `cards` are its devices beside the
    processor."""
    strategies = (
        StrategyTraits(NONE, alone, max_replicas=1, instruments=bool(instruments), one_loop=True),
        StrategyTraits(
            "data_parallel",
            f"a process a replica, gradients averaged {averaged} as the loop says: give --workers, not --replicas",
            takes_cross_device_op=True,
            multi_worker=True,
            replica_a_process=True,
            packing="bytes_per_pack",
            collectives=True,
            instruments=bool(instruments),
            cycles=cycles,
            devices=(VIRTUAL_CPU, *(card.name for card in cards)),
        ),
    )
    ordered = {name: loops[name] for name in sorted(loops, key=lambda name: name != first)}
    levers = {"bytes_per_pack", *(["cycle_time"] if cycles else [])}
    return catalogue_of("the processor, shared by processes", strategies, ops, ordered, instruments, levers, cards)


def _traits(_name: str) -> ModelTraits:
    return ModelTraits(takes=("images",), data=DIGITS)


def catalogue_of(
    device: str,
    strategies: Iterable[StrategyTraits],
    ops: Mapping[str, str],
    loops: Mapping[str, str],
    instruments: Mapping[str, Collection[str]] = MappingProxyType({}),
    levers: Collection[str] = (),
    cards: Collection[DeviceTraits] = (),
    refuses: Mapping[str, str] = MappingProxyType({}),
) -> Catalogue:
    """The catalogue of an engine: its processor as a device and the `cards` beside it, its strategies, the summaries of
    its ops and loops, the instruments of each loop, keys by which `explain` advises beside LEVERS_OF_TRAININGS, and
    settings that it `refuses` beside REFUSED."""
    processor = DeviceTraits(VIRTUAL_CPU, device, on_processors=True, virtual=True, cores=usable_cores())
    return Catalogue(
        devices={traits.name: traits for traits in (processor, *cards)},
        strategies={traits.name: traits for traits in strategies},
        cross_device_ops={name: CrossDeviceOpTraits(name, summary) for name, summary in ops.items()},
        models={name: architecture.summary for name, architecture in architectures().items()},
        data=SUMMARIES,
        on_devices=(SYNTHETIC,),
        optimizers={name: optimizer.summary for name, optimizer in OPTIMIZERS.items()},
        loops=loops,
        instruments=instruments,
        levers=LEVERS_OF_TRAININGS.union(levers),
        closed=frozenset({"model", "data", "cross_device_op"}),
        taken={TRAINING: AXES_OF_TRAININGS, COLLECTIVE: AXES_OF_COLLECTIVES},
        refuses={**REFUSED, **refuses},
        model_traits=_traits,
        data_gives=gives,
    )
