"""Which engine is meant by a name, and the names that it knows."""

import functools
from collections.abc import Callable, Iterable
from typing import cast

from harness.errors import HarnessError, UsageError, not_one_of
from harness.protocol.engine import Engine, Environment, Software
from harness.registry import registered
from harness.spec.axes import ENGINE
from harness.spec.catalogue import Catalogue, DeviceTraits
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


def _own_engine(path: str) -> Engine:
    try:
        found = own_function("engine", path)()
    except HarnessError:
        raise
    except Exception as error:  # whatever a user's own code raises is a fault of what was asked for
        raise UsageError(f"engine: '{path}': {type(error).__name__}: {error}") from error
    if not callable(getattr(found, "catalogue", None)):
        raise UsageError(
            f"engine: '{path}': expected an engine (harness.protocol.engine), given {type(found).__name__}"
        )
    return cast(Engine, found)


@functools.cache
def catalogue_of(engine: str = DEFAULT) -> Catalogue:
    """The names that a spec may use with this engine, looked up once; UsageError as `engine_of`."""
    return engine_of(engine).catalogue()


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
