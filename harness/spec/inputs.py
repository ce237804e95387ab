"""What cannot be asked of an input, whatever is trained on it."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from harness.errors import UsageError
from harness.spec.axes import TABLE, Axes, is_own_code
from harness.spec.catalogue import Catalogue
from harness.spec.cell import TrainingCell
from harness.spec.pipeline import PipelineCell
from harness.spec.text import text_of
from harness.visible import plural

FILES = "tfrecord:"
IMAGE_FILES = "folder:"
JPEG_FILES = "photographs"
"""What data are called that lie in a TFRecord file, or in several, by how many there are."""
UNCOUNTED = 10_000
"""The shuffle buffer of examples whose number is not known, which are not cached: there may be no end of them."""
ON_DEVICES = "OnDevices"
"""The stage of an input whose one batch stays there, where an engine has no pipelines."""
BEFORE_CACHE = tuple(key for key, axis in TABLE.items() if axis.stage in ("source", "decode"))
"""Axes of what a cache does once."""
OF_STAGES = {key: Axes.model_fields[key].default for key, axis in TABLE.items() if axis.stage is not None}
"""Axes of what a pipeline is made of, with their defaults."""


@dataclass(frozen=True)
class LeftOut:
    """A combination that was asked for and makes no sense, with the reason."""

    combination: str
    reason: str

    @property
    def words(self) -> str:
        """Both in a line."""
        return f"{self.combination}: {self.reason}"


class NothingLeft(UsageError):
    """Every combination that was asked for is left out."""

    def __init__(self, left_out: Sequence[LeftOut], instead: str = "") -> None:
        """`instead` is what could be asked for."""
        self.left_out = left_out
        self.reasons = "; ".join(dict.fromkeys(item.words for item in left_out))
        super().__init__(f"no combination is left to run ({self.reasons}){instead}")


def unfed(catalogue: Catalogue, at: TrainingCell | PipelineCell) -> LeftOut | None:
    """Why the input cannot be had as it is asked for, or what is asked would do nothing; None where it can."""
    return (
        _unserved(catalogue, at)
        or _unwritten(catalogue, at)
        or _unmapped(at)
        or _unshared(catalogue, at)
        or _unpiped(catalogue, at)
        or _unkept(at)
    )


def on_device(data: str) -> str:
    """Of data without a pipeline, why what is asked of one says nothing."""
    return f"'{data}' stays on the device, without a pipeline: give other data"


def _unserved(catalogue: Catalogue, at: TrainingCell | PipelineCell) -> LeftOut | None:
    """Why a tf.data service could not keep what is promised of the input, or would do nothing."""
    if not at.data_service:
        return None
    reason = None
    if stays_on_device(catalogue, at.data):
        reason = on_device(at.data)
    elif at.cache != "none":
        reason = "after the first pass every example would come from the cache: --cache none"
    elif at.data_service > 1 and at.deterministic:
        reason = "examples of several come in the order in which they are ready: --deterministic false"
    elif isinstance(at, TrainingCell) and (at.workers > 1 or at.ps):
        reason = "processes of a cluster share examples by their order, which it does not keep: one worker"
    service = f"a data service of {plural(at.data_service, 'worker')}"
    return None if reason is None else LeftOut(f"{service}, cache {at.cache}", reason)


def _unwritten(catalogue: Catalogue, at: TrainingCell | PipelineCell) -> LeftOut | None:
    """Why the data are not written into files. Of engines that write none see `untaken`."""
    if not at.shards:
        alone = "data are compressed as they are written into files: --shards 1, or more"
        return LeftOut(f"{at.data}, compression {at.compression}", alone) if at.compression != "none" else None
    reason = None
    if at.data.startswith(FILES):
        reason = "they lie in files: python -m harness prepare writes their source into as many as you want"
    elif is_own_code(at.data):
        way = f"python -m harness prepare {shlex.quote(at.data)} FOLDER"
        reason = f"a function may give others each time: {way} writes them once"
    elif stays_on_device(catalogue, at.data):
        reason = on_device(at.data)
    return None if reason is None else LeftOut(f"{at.data} in {plural(at.shards, 'shard')}", reason)


def _unmapped(at: TrainingCell | PipelineCell) -> LeftOut | None:
    """Why nothing is done to examples of the user's own, which come as the model takes them."""
    if not is_own_code(at.data):
        return None
    asked = (
        (at.parallel_calls, f"parallel_calls {at.parallel_calls}", "map them there, as many at a time as you want"),
        (at.interleave > 1, f"interleave {at.interleave}", "interleave its files there"),
        (not at.deterministic and not at.data_service, "deterministic false", "let their order be free there"),
    )
    found = next(((told, instead) for is_asked, told, instead in asked if is_asked), None)
    return found and LeftOut(f"{at.data}, {found[0]}", f"your function makes its examples itself: {found[1]}")


def _unpiped(catalogue: Catalogue, at: TrainingCell | PipelineCell) -> LeftOut | None:
    """Why nothing is asked of the stages of a pipeline that is not there: the cell would be the one without."""
    key = next((key for key, usual in OF_STAGES.items() if at.get(key) != usual), None)
    if key is None or not stays_on_device(catalogue, at.data):
        return None
    asked, usual = (f"{key} {text_of(key, value)}" for value in (at.get(key), OF_STAGES[key]))
    return LeftOut(f"{at.data}, {asked}", f"{on_device(at.data)}, or {usual}")


def stays_on_device(catalogue: Catalogue, data: str) -> bool:
    """Whether nothing is done for their batches in a step: they have no pipeline where others of the engine have one,
    or it says so of them."""
    piped = any(map(catalogue.has_pipeline, catalogue.data))
    return data in catalogue.on_devices or (piped and not catalogue.has_pipeline(data))


def _unshared(catalogue: Catalogue, at: TrainingCell | PipelineCell) -> LeftOut | None:
    """Why several workers would not have each example once between them, or none of them anything to share."""
    if not isinstance(at, TrainingCell) or at.ps or (at.workers == 1 and at.autoshard == "off"):
        return None
    reason, policy = None, at.autoshard
    if policy != "off" and stays_on_device(catalogue, at.data):
        reason = on_device(at.data)
    elif at.workers == 1:
        reason = "one worker reads everything itself: --workers 2, or more"
    elif not at.deterministic and (policy == "data" or (policy == "off" and at.interleave > 1)):
        reason = "workers share examples by their order, which nothing keeps: --deterministic true"
    elif policy == "file":
        reason = _files_unshared(at)
    return None if reason is None else LeftOut(f"{at.data}, {plural(at.workers, 'worker')}, autoshard {policy}", reason)


def _unkept(at: TrainingCell | PipelineCell) -> LeftOut | None:
    """Why the examples are not kept in a file: what servers' workers read is traced once, the file's name with it."""
    if not isinstance(at, TrainingCell) or not at.asynchronous or at.workers == 1 or at.cache != "file":
        return None
    reason = "they would write one file, which two cannot fill at the same time: --cache memory"
    return LeftOut(f"{at.strategy}, {at.workers} workers, cache file", reason)


def _files_unshared(at: TrainingCell) -> str | None:
    """Why files cannot be shared among the workers. How many files of the user's own there are, their trials see."""
    if not at.shards and not at.data.startswith(FILES):
        return f"they do not lie in TFRecord files: --shards {at.workers}, or more"
    if at.cache != "none":
        return "after the first pass every example would come from the cache: --cache none"
    if at.shards % at.workers:
        several = (at.shards // at.workers + 1) * at.workers
        return f"{plural(at.shards, 'file')} are not as many for each worker: --shards {several}"
    return None
