"""Which engine is meant by a name, and the names that it knows."""

import functools
from typing import cast

from harness.errors import not_one_of
from harness.protocol.engine import Engine
from harness.registry import registered
from harness.spec.catalogue import Catalogue
from harness.trial.own_function import own_function

TENSORFLOW = "tensorflow"


@functools.cache
def engine_of(name: str) -> Engine:
    """The engine of a folder of `harness.engines`, or the one that a user's `package.module:function` returns.

    Imports no framework. UsageError for a name that is not known, and for a function that cannot be loaded.
    """
    if ":" in name:
        return cast(Engine, own_function("engine", name)())
    known = registered("harness.engines", "ENGINE")
    if name not in known:
        raise not_one_of("engine", name, known)
    return cast(Engine, known[name])


@functools.cache
def catalogue_of(engine: str = TENSORFLOW) -> Catalogue:
    """The names that a spec may use with this engine, looked up once; UsageError as `engine_of`."""
    return engine_of(engine).catalogue()
