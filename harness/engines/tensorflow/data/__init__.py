"""Data sources: one file a source, with one `SOURCE`; `photographs:NUMBER`, `tfds:NAME`, `tfrecord:GLOB`,
`folder:PATH`, or a user's own."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from harness.engines.tensorflow.data.base import DataInfo, Source
from harness.engines.tensorflow.data.folder import PREFIX as FOLDER
from harness.engines.tensorflow.data.folder import FolderSource
from harness.engines.tensorflow.data.own import OwnSource
from harness.engines.tensorflow.data.own_batches import own_source
from harness.engines.tensorflow.data.photographs import PREFIX as CROPS_OF
from harness.engines.tensorflow.data.photographs import Photographs
from harness.engines.tensorflow.data.tfds import PREFIX, TfdsSource
from harness.engines.tensorflow.data.tfds import unknown as unknown_to_tfds
from harness.engines.tensorflow.data.tfrecord import PREFIX as FILES
from harness.engines.tensorflow.data.tfrecord import TfrecordSource, kind_here
from harness.errors import UsageError, not_one_of
from harness.registry import registered
from harness.spec.axes import PHOTOGRAPHS, SO_MANY_PHOTOGRAPHS, is_own_code

__all__ = ["PRELOAD", "DataInfo", "Source", "data_gives", "has_pipeline", "load_source", "sources", "unknown"]

PRELOAD: tuple[str, ...] = ("tensorflow_datasets", "tensorflow_datasets.core.reader")
"""Modules that reading imports: worth importing once before trials fork. They start no threads and no runtime."""


PLACES = (f"{FILES}GLOB", f"{FOLDER}PATH")
"""Data that lie where the user says."""


def sources() -> Mapping[str, Source]:
    """The registered sources by name, without importing TensorFlow: those that no function and no `tfds:NAME` names."""
    return registered(__name__, "SOURCE")


def data_gives(name: str) -> str:
    """The kind of examples of a data set (`Source.gives`), without importing a user's own."""
    known = sources()
    if name in known:
        return known[name].gives
    if name.startswith(FILES):
        return kind_here(name)
    if name.startswith(PREFIX):
        return TfdsSource.gives
    return (OwnSource if is_own_code(name) else Source).gives


def unknown(name: str, data_dir: Path) -> str | None:
    """Why there are no data of a name that no registered source has; None where there may be. Asks no network, and
    imports no TensorFlow."""
    if name.startswith(FILES):
        return _fault(TfrecordSource, name.removeprefix(FILES))
    if name.startswith(FOLDER):
        return _fault(FolderSource, name.removeprefix(FOLDER))
    if name.removeprefix(CROPS_OF).isdigit() and not re.fullmatch(PHOTOGRAPHS, name):
        return f"data: given '{name}', expected {SO_MANY_PHOTOGRAPHS}"
    return unknown_to_tfds(name, data_dir)


def _fault(source: Callable[[str], Source], place: str) -> str | None:
    """Why a source cannot be read here; None where it can."""
    try:
        source(place)
    except UsageError as error:
        return str(error)
    return None


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
    if name.startswith(FILES):
        return TfrecordSource(name.removeprefix(FILES))
    if name.startswith(FOLDER):
        return FolderSource(name.removeprefix(FOLDER))
    if re.fullmatch(PHOTOGRAPHS, name):
        return Photographs(int(name.removeprefix(CROPS_OF)))
    if is_own_code(name):
        return own_source(name)
    raise not_one_of("data", name, [*known, SO_MANY_PHOTOGRAPHS, f"{PREFIX}NAME", *PLACES, "package.module:function"])
