"""Which engine is meant by a name, and the names that it knows."""

import contextlib
import functools
from collections.abc import Callable, Container, Iterable, Iterator
from typing import cast

from harness.errors import HarnessError, UsageError, nearest, not_one_of
from harness.protocol.engine import Engine, Environment, Software
from harness.registry import registered
from harness.spec.axes import ENGINE, NO_STRATEGY
from harness.spec.catalogue import Catalogue, DeviceTraits
from harness.spec.sweep import Sweep
from harness.trial.own_function import own_function

DEFAULT = ENGINE
"""The engine of a spec that names none."""


@functools.cache
def engine_of(name: str) -> Engine:
    """The engine of a folder of `harness.engines`, or the one that a user's `package.module:function` returns.

    Imports no framework. UsageError for a name that is not known, and for a function that cannot be loaded, raises, or
    returns something else.
    """
    if ":" in name:
        return _own_engine(name)
    known = registered("harness.engines", "ENGINE")
    if name not in known:
        raise not_one_of("engine", name, known)
    return cast(Engine, known[name])


@contextlib.contextmanager
def _asked_of(path: str) -> Iterator[None]:
    """UsageError for whatever a user's own code raises: it is a fault of what was asked for."""
    try:
        yield
    except HarnessError:
        raise
    except Exception as error:
        raise UsageError(f"engine: '{path}': {type(error).__name__}: {error}") from error


def _own_engine(path: str) -> Engine:
    with _asked_of(path):
        found = own_function("engine", path)()
        if not callable(getattr(found, "catalogue", None)):
            raise UsageError(
                f"engine: '{path}': expected an engine (harness.protocol.engine), given {type(found).__name__}"
            )
        if not isinstance(getattr(found, "name", None), str):
            raise UsageError(f"engine: '{path}': expected an engine with a name, its attribute `name`")
    return cast(Engine, found)


@functools.cache
def catalogue_of(engine: str = DEFAULT) -> Catalogue:
    """The names that a spec may use with this engine, looked up once; UsageError as `engine_of`, and for one of the
    user's own that cannot be planned by."""
    if ":" not in engine:
        return engine_of(engine).catalogue()
    with _asked_of(engine):
        found = engine_of(engine).catalogue()
        if fault := _fault_of(found):
            raise UsageError(f"engine: '{engine}': its catalogue {fault}")
    return found


def refused_by(engine: str) -> Container[str]:
    """The settings of a run that its trials do not take; of an engine that is not here nobody knows any."""
    try:
        return catalogue_of(engine).refuses
    except UsageError:
        return ()


def _fault_of(catalogue: object) -> str | None:
    """What a user's own catalogue lacks, or has too much; None where it can be planned by."""
    if not isinstance(catalogue, Catalogue):
        return f"is no Catalogue (harness.spec.catalogue), but {type(catalogue).__name__}"
    if NO_STRATEGY not in catalogue.strategies:
        return f"has no strategy '{NO_STRATEGY}', with which others are compared; add it"
    unknown = [key for key in catalogue.refuses if key not in Sweep.model_fields]
    if not unknown:
        return None
    return f"refuses '{unknown[0]}', which is no key of a spec{nearest(unknown[0], Sweep.model_fields)}"


def devices_of(engines: Iterable[str]) -> dict[str, DeviceTraits]:
    """The device kinds of several engines; of those of one name the first engine's."""
    found: dict[str, DeviceTraits] = {}
    for engine in engines:
        found = {**catalogue_of(engine).devices, **found}
    return found


def environment_of(engine: Engine) -> Environment | None:
    """What the engine needs of an interpreter of its own; None where it has none."""
    found: Environment | None = getattr(engine, "environment", None)
    return found


def software_of(engine: Engine) -> Software:
    """What of an interpreter its trials are of; they need what an environment of their own has, where there is one."""
    found: Software = getattr(engine, "software", Software())
    environment = environment_of(engine)
    return found if environment is None else found._replace(needs=environment.needs)


def engines_that(can: Callable[[Catalogue], object]) -> list[str]:
    """The engines of the house whose catalogue `can` says yes to."""
    return [name for name in registered("harness.engines", "ENGINE") if can(catalogue_of(name))]
