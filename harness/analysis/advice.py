"""Flags that make smaller what binds a step: what a report advises, and `explain --try` measures, most to win first.

All that there are is in `harness.analysis.levers`.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass

from harness.analysis.explain import Explanation
from harness.analysis.levers import LEVERS, KnownLever
from harness.analysis.parts import PartName, StepPart
from harness.record.explain import WHOLE
from harness.spec.catalogue import Catalogue
from harness.spec.cell import TrainingCell, trained
from harness.spec.inputs import BEFORE_CACHE, ON_DEVICES, stays_on_device, unfed
from harness.spec.text import ENVIRONMENT


@dataclass(frozen=True)
class Lever:
    """One flag for one cell."""

    cell: TrainingCell
    part: str
    """The part of the step that it is to make smaller."""
    setting: str
    """KEY=VALUE, a key of a spec, or env.NAME=VALUE, as a side of `ab` takes them."""


def levers_of(found: Sequence[Explanation], catalogue_for: Callable[[TrainingCell], Catalogue]) -> list[Lever]:
    """Of the cells with most to win first; of a cell the first lever of each part in question, then the second ones.

    In question are the parts that bind the step, or could where that is undecided. Of a step that its own computation
    binds nobody knows how much there is to win: its levers come last. A cell whose whole step was not measured
    has none.
    """
    of_cells = [(_in_question(one), one) for one in found if WHOLE not in one.lacking]
    of_cells.sort(key=lambda of: -max(map(_gain, of[0]), default=0.0))
    levers: dict[Lever, None] = {}
    for parts, one in of_cells:
        cell = trained(one.cell)
        catalogue = catalogue_for(cell)
        texts = [[(part.binds_as, text) for text in _of_part(part.name, one, catalogue)] for part in parts]
        once: dict[str, str] = {}
        for name, text in filter(None, itertools.chain.from_iterable(itertools.zip_longest(*texts))):
            once.setdefault(text, name)
        levers.update((Lever(cell, name, text), None) for text, name in once.items())
    return list(levers)


def useless_keys(found: Explanation) -> Set[str]:
    """Keys of levers of which its arms have shown that it has nothing to win, or that what its model brings takes no
    heed of; and where its examples come from a cache, or nobody knows whether they do, those of what is before that.
    Batches ahead make no pipeline faster that cannot keep up."""
    called = {"steps_per_execution"} if found.calls_are_free else set()
    cached = set() if _decodes_anew(found) else {"cache", *BEFORE_CACHE}
    kept = {"optimizer"} & {*found.own_training}
    one_step = {"xla"} if trained(found.cell).loop != "fit" and {*found.own_training} - kept else set()
    ahead = {"prefetch", "device_prefetch"} if found.input_limit == "now" else set()
    return {*called, *cached, *kept, *one_step, *ahead}


def _decodes_anew(found: Explanation) -> bool:
    """Whether each pass decodes the examples again: where `auto` has room for them, it keeps them."""
    if not found.input:
        return trained(found.cell).cache == "none"
    return not any(stage.startswith("Cache") for stage in found.input)


def _of_part(part: PartName, found: Explanation, catalogue: Catalogue) -> Iterator[str]:
    """The levers of a part that the cell's engine knows what to do with."""
    for known in _of_use(part, found, catalogue):
        yield from (f"{known.key}={value}" for value in _values(known, found, catalogue))


def _values(known: KnownLever, found: Explanation, catalogue: Catalogue) -> Iterator[object]:
    """Those by which its step is another program than it was seen to be, and has an input that there is."""
    cell = trained(found.cell)
    for value in known.values(cell, catalogue):
        other = known.unlike_seen(value, found)
        if other is not None and unfed(catalogue, cell.model_copy(update={known.key: other})) is None:
            yield other


def advice(part: PartName, found: Explanation, catalogue: Catalogue) -> str:
    """What may make a part of the cell's step smaller, in words that follow `Try`; empty where that is nothing."""
    told, cell = [], trained(found.cell)
    for known in _of_use(part, found, catalogue):
        if known.fits(cell, catalogue) if known.fits else any(True for _ in _values(known, found, catalogue)):
            told.append(known.words)
    *most, last = told or [""]
    return f"{', '.join(most)}{',' if len(most) > 1 else ''} or {last}" if most else last


def _of_use(part: PartName, found: Explanation, catalogue: Catalogue) -> list[KnownLever]:
    if part == "input" and (ON_DEVICES in found.input or stays_on_device(catalogue, trained(found.cell).data)):
        return []
    keys = {known.key for known in LEVERS[part]} if catalogue.levers is None else catalogue.levers
    keys = keys - useless_keys(found)
    return [known for known in LEVERS[part] if known.key in keys or known.key.startswith(ENVIRONMENT)]


def _in_question(found: Explanation) -> list[StepPart]:
    """The parts whose levers are worth a try, the most to win first."""
    match found.bound_by:
        case "undecided":
            untold = [StepPart(name, math.nan, None, None) for name in found.untold if name != "compute"]
            parts = [part for part in found.overheads if part.may_count] + untold
        case _:
            parts = found.all_binding
    return sorted(parts, key=lambda part: -_gain(part))


def _gain(part: StepPart) -> float:
    if part.name == "compute" or part.high is None:
        return 1.0
    return part.most_gain or math.inf  # of a share that may be the whole step no most is known
