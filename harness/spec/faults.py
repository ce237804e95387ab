"""What `faults` does: which jobs, which faults, how often. A TOML key and a flag of the same name mean the same."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from harness.errors import UsageError, not_one_of
from harness.spec.axes import ENGINE, NO_STRATEGY
from harness.spec.bounds import MOST_JOBS, check_product
from harness.spec.catalogue import StrategyTraits
from harness.spec.entry import Setting
from harness.spec.entry import settings as settings_of
from harness.spec.names import whose
from harness.spec.reading import Spec, is_list, read_keys
from harness.spec.sweep import HELP as HELP_OF_SWEEP
from harness.spec.values import Count, DeviceCount, Natural, Seconds

FaultName = Literal["kill_worker", "kill_ps", "freeze_worker", "freeze_ps", "cut_link", "sigterm", "restart"]
FAULT_NAMES: tuple[FaultName, ...] = get_args(FaultName)
FAULTS_OF_SERVERS: tuple[FaultName, ...] = ("kill_ps", "freeze_ps")
"""Faults of a parameter server."""


class Faults(Spec):
    """Every key of a spec. Times are in seconds."""

    engine: list[str] = [ENGINE]
    strategy: list[str] = ["mirrored", "multi_worker_mirrored", "parameter_server"]
    fault: Annotated[list[FaultName], Setting(help=f"faults: {', '.join(FAULT_NAMES)}")] = list(FAULT_NAMES)
    checkpoint_every: Annotated[list[Natural], Setting(help="steps between checkpoints, 0 is none")] = [0, 20]
    target: Annotated[Literal["last", "first"], Setting(help="which worker or server is hit: last, or first")] = "last"
    """The first worker writes checkpoints and holds the coordination of TensorFlow or JAX."""
    repeats: Annotated[int, Field(ge=1, le=1000, strict=True), Setting(help="jobs of every combination")] = 3
    steps: Annotated[int, Field(ge=6, le=10**6, strict=True), Setting(help="steps that a job is to do")] = 100
    workers: Annotated[
        int,
        Field(ge=2, le=64, strict=True),
        Setting(help="workers, and as many replicas of a strategy that is one process"),
    ] = 2
    """`one_device` has one."""
    ps: Annotated[DeviceCount, Setting(help="parameter servers")] = 1
    batch_size: Annotated[Count, Setting(help="batch size a replica")] = 32
    model: str = "mlp"
    data: str = "digits"
    optimizer: str = "adam"
    seed: Annotated[Natural, Setting(help="seed of order, weights, and of the steps that faults come at")] = 1
    stall: Annotated[Seconds, Setting(help="seconds without a step after which a job is started again")] = 10.0
    """Or without an answer of a server."""
    outage: Annotated[Seconds, Setting(help="seconds until a frozen process thaws, or a cut link is mended")] = 30.0
    """Unless they were replaced before."""
    timeout: Annotated[Seconds, Setting(help="seconds after which a job counts as hung")] = 120.0
    data_dir: str = ""
    engine_python: str = ""


LISTS = tuple(key for key in Faults.model_fields if is_list(Faults, key))
SAID = settings_of(Faults)
HELP_OF_FAULTS: dict[str, str] = {
    key: (SAID[key].help if key in SAID else HELP_OF_SWEEP[key]) + (" (comma-separated)" if key in LISTS else "")
    for key in Faults.model_fields
}
"""What each key is, for its flag: what it is in a sweep, where nothing else is said."""


def strategies_of(settings: Faults, engines: Mapping[str, Mapping[str, StrategyTraits]]) -> dict[str, list[str]]:
    """The strategies of each engine's jobs: of those asked for the ones that it has and that something is done to; all
    of its own but the one without any, where it has none of them, and several engines or no names were asked for. An
    engine of which nothing is left is not among them.

    UsageError for a strategy that is unknown or that no engine does anything to, for an engine without any, and for
    servers that none has.
    """
    spared = {engine: {name for name, traits in of.items() if traits.no_faults} for engine, of in engines.items()}
    able = {name: traits for engine, of in engines.items() for name, traits in of.items() if name not in spared[engine]}
    asked = settings.strategy if "strategy" in settings.model_fields_set else []
    for name in asked:
        whys = [of[name].no_faults for of in engines.values() if name in of]
        if not whys:
            raise not_one_of("strategy", name, [*able], whose=whose([*engines]))
        if name not in able:
            raise UsageError(f"strategy: '{name}' is not one of {', '.join(able)}: {whys[0]}")
    found = {}
    for engine, of in engines.items():
        its = [name for name in settings.strategy if name in of and name not in spared[engine]]
        if not its and (left := next((name for name in asked if name in spared[engine]), None)):
            raise UsageError(
                f"engine: '{engine}' has only '{left}' of these strategies: {of[left].no_faults}; leave it out"
            )
        found[engine] = its or _own(engine, of)
    used = {name for names in found.values() for name in names}
    servers = [name for name, traits in able.items() if traits.parameter_servers]
    if settings.ps != Faults.model_fields["ps"].default and not used & {*servers}:
        has = " or ".join(servers) or "none of its engines' has"
        raise UsageError(f"ps: given {settings.ps}, but no strategy of this run has servers: {has}")
    return found


def _own(engine: str, strategies: Mapping[str, StrategyTraits]) -> list[str]:
    """What an engine's jobs are of where nobody says."""
    own = [name for name, traits in strategies.items() if name != NO_STRATEGY and not traits.no_faults]
    if not own:
        why = next(filter(None, (traits.no_faults for traits in strategies.values())), "it has none but 'none'")
        raise UsageError(f"engine: '{engine}' has no strategy that faults are done to: {why}")
    return own


def faults_from(values: dict[str, Any], source: str = "spec") -> Faults:
    """Validate `values`, but for names of strategies; raise UsageError with one line that names the key."""
    settings = read_keys(Faults, values, source)
    for every in settings.checkpoint_every:
        if every >= settings.steps:
            raise UsageError(f"{source}: checkpoint_every: given {every}, expected less than steps ({settings.steps})")
    lists = {key: len(getattr(settings, key)) for key in LISTS}
    check_product(source, {**lists, "repeats": settings.repeats}, "jobs", MOST_JOBS)
    return settings
