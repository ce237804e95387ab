"""Data sources: one file a source, with one `SOURCE`; `photographs:NUMBER`, `tfds:NAME`, or a user's own."""

import re
from collections.abc import Mapping

from harness.engines.tensorflow.data.base import DataInfo, Source
from harness.engines.tensorflow.data.own import OwnSource
from harness.engines.tensorflow.data.photographs import PREFIX as CROPS_OF
from harness.engines.tensorflow.data.photographs import Photographs
from harness.engines.tensorflow.data.tfds import PREFIX, TfdsSource, unknown
from harness.errors import not_one_of
from harness.registry import registered
from harness.spec.axes import PHOTOGRAPHS, is_own_code

__all__ = ["PRELOAD", "DataInfo", "Source", "data_gives", "has_pipeline", "load_source", "sources", "unknown"]

PRELOAD: tuple[str, ...] = ("tensorflow_datasets", "tensorflow_datasets.core.reader")
"""Modules that reading imports: worth importing once before trials fork. They start no threads and no runtime."""


def sources() -> Mapping[str, Source]:
    """The registered sources by name, without importing TensorFlow: those that no function and no `tfds:NAME` names."""
    return registered(__name__, "SOURCE")


def data_gives(name: str) -> str:
    """The kind of examples of a data set (`Source.gives`), without importing a user's own."""
    known = sources()
    return known[name].gives if name in known else (OwnSource if is_own_code(name) else TfdsSource).gives


def has_pipeline(name: str) -> bool:
    """Whether examples of a data set come through an input pipeline, and not as a batch that stays on the device."""
    known = sources()
    return name not in known or not known[name].on_device


def load_source(name: str) -> Source:
    """The source called `name`, `tfds:NAME`, or a user's own at `package.module:function` (which imports that module).

    UsageError, naming the key `data`, when there is none.
    """
    known = sources()
    if name in known:
        return known[name]
    if name.startswith(PREFIX):
        return TfdsSource(name.removeprefix(PREFIX))
    if re.fullmatch(PHOTOGRAPHS, name):
        return Photographs(int(name.removeprefix(CROPS_OF)))
    if is_own_code(name):
        return OwnSource(name)
    raise not_one_of("data", name, [*known, f"{CROPS_OF}NUMBER", f"{PREFIX}NAME", "package.module:function"])
