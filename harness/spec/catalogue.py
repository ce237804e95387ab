"""What names exist and what each can do, as far as a matrix must know it.

The objects themselves live one file each in an engine's folder (`harness.engines`); this room only says what it
wants to know of them, so that it depends on no engine.
"""

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from harness.errors import UsageError
from harness.spec import calls

PackingKind = Literal["num_packs", "bytes_per_pack"]
VIRTUAL_CPU = "virtual-cpu"
"""The device kind of a spec that names none."""


@dataclass(frozen=True)
class StrategyTraits:
    """A strategy as the matrix sees it."""

    name: str
    summary: str
    takes_cross_device_op: bool = False
    takes_own_op: bool = False
    """Takes a cross-device op of the user's own; others are given a name only."""
    multi_worker: bool = False
    """Runs in several processes: a trial is a cluster, even of one worker."""
    parameter_servers: bool = False
    """Keeps variables on processes of their own, and updates them asynchronously."""
    replica_a_process: bool = False
    """Each process has one replica: there are as many replicas as workers."""
    meshes: bool = False
    """Runs on a mesh of devices, of which a replica may have several."""
    cutting_loops: tuple[str, ...] | None = None
    """Loops that cut weights, each on a mesh with several devices a replica; in another a replica is one device. None
    is a strategy whose loops take any mesh."""
    packing: PackingKind | None = None
    """What it packs gradients by, whatever the op; None leaves that to the op."""
    packing_loops: tuple[str, ...] | None = None
    """Loops in which it packs gradients; None is every one."""
    collectives: bool = False
    """Its collectives are measured by themselves."""
    cycles: bool = False
    """Its processes ask each other in cycles what is ready to be reduced, of a length that can be chosen."""
    instruments: bool = False
    """In its programs, what an instrument of `explain` lacks can be told from the rest."""
    max_replicas: int | None = None
    devices: tuple[str, ...] | None = None
    """Device kinds that the combination makes sense on; None is any."""
    loops: tuple[str, ...] | None = None
    """Loops that it has; None is every one."""
    one_loop: bool = False
    """Its step is one program whatever the loop is: it is measured once, under the first that is asked for."""
    copies_to_host: str = ""
    """Why its step copies from a device to the host whatever the harness does; empty where it need not."""
    no_faults: str = ""
    """Why `faults` does nothing to its jobs; empty where it does."""

    @property
    def many_replicas_a_process(self) -> bool:
        """Whether a process may have several replicas."""
        return self.max_replicas is None and not (self.replica_a_process or self.parameter_servers)


@dataclass(frozen=True)
class CrossDeviceOpTraits:
    """A cross-device op as the matrix sees it."""

    name: str
    summary: str
    packing: PackingKind | None = None
    strategies: tuple[str, ...] | None = None
    """Strategies that take it; None is every one that takes any."""
    loops: tuple[str, ...] | None = None
    """Loops in which it reduces; None is every one."""
    past_networks: bool = False
    """Whether accelerators of one host exchange past its network, so that an emulated one carries nothing."""


@dataclass(frozen=True)
class DeviceTraits:
    """A device kind as the matrix and the planner see it."""

    name: str
    summary: str
    live_trials: int | None = None
    """Trials that may be alive at once; None is as many as fit memory. Of 1 no more may be asked for."""
    cores: int | None = None
    """Cores that one process without a strategy could compute on, where one device is fewer; None where it is all."""
    past_networks: bool = False
    """Whether processes of one host exchange past its network by any op, so that an emulated one carries nothing."""
    virtual: bool = False
    """Whether its devices are parts of one real device, so that they show what a strategy costs and not what more
    hardware gives."""
    taken_by_import: bool = False
    """Whether a process takes the device as it imports the framework: each trial must then import it itself."""
    on_processors: bool = False
    """Whether it is the processors of a host, shared with what else runs there; else it is an accelerator."""
    refuses: Mapping[str, str] = field(default_factory=dict)
    """Keys of a cell that its trials know the default of alone, each with the reason and what to do."""


@dataclass(frozen=True)
class ModelTraits:
    """A model as the matrix sees it; by default one that nothing is known of."""

    takes: tuple[str, ...] = ()
    """Kinds of data that it can be trained on, of `Catalogue.data_gives`; nothing where only the model itself knows."""
    data: str = ""
    """The data that it has where none are asked for; empty is what a spec that does not say asks for."""
    tokens: int = 0
    """Tokens of an example, in which its work is counted; 0 is counted in examples."""


def _anything(_name: str) -> str:
    return "anything"


def _nothing_known(_name: str) -> ModelTraits:
    return ModelTraits()


def _all_fit(_model: str, _data: str) -> str | None:
    return None


def _none_has(_name: str) -> bool:
    return False


def _may_exist(_name: str, _folder: Path) -> str | None:
    return None


def _may_be_built(_name: str) -> str | None:
    return None


def _without_parameters(key: str, name: str) -> str:
    return calls.text_of(calls.name_of(name), calls.parameters_of(key, name, {}))


_plain_model = functools.partial(_without_parameters, "model")
_plain_optimizer = functools.partial(_without_parameters, "optimizer")


def _no_gradients(name: str, _: float) -> int:
    raise UsageError(f"model: the gradients of '{name}' are sent by TensorFlow alone; leave out model")


@dataclass(frozen=True)
class Catalogue:
    """Every registered name. Models and data may also be named outside it (see `model`, `data`), where nothing is
    `closed`."""

    devices: Mapping[str, DeviceTraits]
    strategies: Mapping[str, StrategyTraits]
    cross_device_ops: Mapping[str, CrossDeviceOpTraits]
    models: Mapping[str, str]
    data: Mapping[str, str]
    optimizers: Mapping[str, str]
    loops: Mapping[str, str]
    closed: frozenset[str] = frozenset()
    """Keys that have registered names alone: none of the user's own, and none by a pattern."""
    taken: Mapping[str, Collection[str]] | None = None
    """By kind of work, the keys of a cell that its trials take; of any other they know the default alone. None is all.
    """
    refuses: Mapping[str, str] = field(default_factory=dict)
    """Settings of a run that its trials do not take, each with the reason and what to do."""
    models_beside: Collection[str] = ()
    """Names of models that there are beside `models`."""
    oversized: str = ""
    """A model that no card has room for, by which `doctor --prove` sees how that ends; empty is none."""
    plants: bool = False
    """Whether a slow-down can be planted in its programs."""
    instruments: Mapping[str, Collection[str]] = field(default_factory=dict)
    """By loop, the instruments of `explain` that its steps have, where the strategy has any."""
    levers: frozenset[str] | None = None
    """Keys of a cell that change anything with this engine, by which `explain` advises; None is all."""
    data_fault: Callable[[str, Path], str | None] = _may_exist
    """Why there is no data set of a name beside the registered ones, prepared in that folder or to be had; None where
    there may be one. Asks no network."""
    model_fault: Callable[[str], str | None] = _may_be_built
    """Why there is no model of a name beside the registered ones; None where there may be one."""
    model_traits: Callable[[str], ModelTraits] = _nothing_known
    """What a model takes and is counted in."""
    data_gives: Callable[[str], str] = _anything
    """The kind of a data set's examples; `anything` fits every model."""
    tokens_fault: Callable[[str, str], str | None] = _all_fit
    """Why a model cannot take the tokens of a data set, as far as their descriptions tell; None where it may."""
    has_pipeline: Callable[[str], bool] = _none_has
    """Whether a data set has an input pipeline, which can be measured by itself."""
    on_devices: Collection[str] = ()
    """Of an engine whose data have no such pipeline, those of which one batch stays on the devices."""
    model_text: Callable[[str], str] = _plain_model
    """The one spelling of a model with its sizes, `transformer(layers=4)`; UsageError where it has no such size."""
    optimizer_text: Callable[[str], str] = _plain_optimizer
    """The one spelling of an optimizer with parameters, `adamw(clipnorm=1.0)`; UsageError where it takes none such."""
    gradient_bytes: Callable[[str, float], int] = _no_gradients
    """Bytes of a model's gradients, which a process of its own builds it for; UsageError where it cannot, or has not
    within about so many seconds."""

    def takes(self, work: str, key: str) -> bool:
        """Whether trials of a kind of work take a key of a cell away from its default."""
        return self.taken is None or key in self.taken.get(work, ())

    @property
    def sends_gradients(self) -> bool:
        """Whether collectives are of gradients, too."""
        return self.gradient_bytes is not _no_gradients

    def beside(self, key: str) -> Collection[str]:
        """Names for `key` that no registry lists, which a misspelt one may be meant for."""
        return self.models_beside if key == "model" else ()
