"""Flags that make smaller what binds a step: what `explain --try` measures, the most to win first."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.analysis.explain import Explanation, StepPart
from harness.spec.axes import FETCHING, REPEATING
from harness.spec.catalogue import Catalogue
from harness.spec.cell import TrainingCell, trained

MORE_AHEAD = 8
"""Batches ahead where a step waits for its input: four times the default."""
MORE_ON_DEVICE = 4
"""And on a device that has memory of its own."""
STEPS_A_CALL = 10
"""Where calling the step takes time: a tenth of it is left."""
PACKS = {"num_packs": 2, "bytes_per_pack": 2**20}
"""Of each kind of packing a value other than one pack for all."""


@dataclass(frozen=True)
class Lever:
    """One flag for one cell."""

    cell: TrainingCell
    part: str
    """The part of the step that it is to make smaller."""
    setting: str
    """KEY=VALUE, a key of a spec."""


def levers_of(found: Sequence[Explanation], catalogue_for: Callable[[TrainingCell], Catalogue]) -> list[Lever]:
    """Of the cells with most to win first; of a cell the first lever of each part in question, then the second ones.

    In question are the parts that bind the step, or could where that is undecided. Of a step that its own computation
    binds nobody knows how much there is to win: its levers come last.
    """
    of_cells = [(_in_question(one), trained(one.cell)) for one in found]
    of_cells.sort(key=lambda of: -max(map(_gain, of[0]), default=0.0))
    levers: dict[Lever, None] = {}
    for parts, cell in of_cells:
        texts = [[(part.name, text) for text in _of_part(part.name, cell, catalogue_for(cell))] for part in parts]
        once: dict[str, str] = {}
        for name, text in filter(None, itertools.chain.from_iterable(itertools.zip_longest(*texts))):
            once.setdefault(text, name)
        levers.update((Lever(cell, name, text), None) for text, name in once.items())
    return list(levers)


def _of_part(part: str, cell: TrainingCell, catalogue: Catalogue) -> Iterator[str]:
    """The levers of a part that the cell's engine knows what to do with."""
    for setting in _OF_PARTS[part](cell, catalogue):
        if catalogue.levers is None or setting.partition("=")[0] in catalogue.levers:
            yield setting


def _in_question(found: Explanation) -> list[StepPart]:
    """The parts whose levers are worth a try, the most to win first."""
    overheads = [part for part in found.parts if part.name not in ("compute", "unexplained")]
    match found.bound_by:
        case "undecided":
            parts = [part for part in overheads if part.may_count]
        case "mixed":
            parts = [part for part in overheads if part.counts]
        case bound:
            parts = [part for part in found.parts if part.name == bound]
    return sorted(parts, key=lambda part: -_gain(part))


def _gain(part: StepPart) -> float:
    if part.name == "compute" or part.high is None:
        return 1.0
    return part.most_gain or math.inf  # of a share that may be the whole step no most is known


def _of_input(cell: TrainingCell, catalogue: Catalogue) -> Iterator[str]:
    if cell.cache == "none":
        yield "cache=memory"
    if cell.parallel_calls:
        yield "parallel_calls=0"
    if cell.prefetch < MORE_AHEAD:
        yield f"prefetch={MORE_AHEAD}"
    own_memory = catalogue.devices[cell.device].cores is None
    if own_memory and FETCHING.are(catalogue.strategies[cell.strategy]) and cell.device_prefetch < MORE_ON_DEVICE:
        yield f"device_prefetch={MORE_ON_DEVICE}"


def _of_communication(cell: TrainingCell, catalogue: Catalogue) -> Iterator[str]:
    ops, strategy = catalogue.cross_device_ops, catalogue.strategies[cell.strategy]
    if cell.cycle_time:
        yield "cycle_time=0"
    plain = strategy.takes_cross_device_op and cell.packing == "default"  # another op may pack otherwise
    for name, op in ops.items() if plain else ():
        taken = op.strategies is None or cell.strategy in op.strategies
        between_cards = op.past_networks and catalogue.devices[cell.device].cores is not None
        if name != cell.cross_device_op and taken and not between_cards:
            yield f"cross_device_op={name}"
    yield from _larger_batch(cell, catalogue)
    of_op = ops[cell.cross_device_op].packing if cell.cross_device_op in ops else None
    if plain and (kind := strategy.packing or of_op):
        yield f"{kind}={PACKS[kind]}"


def _larger_batch(cell: TrainingCell, _: Catalogue) -> Iterator[str]:
    yield f"batch_size={2 * cell.batch_size}"


def _xla(cell: TrainingCell, _: Catalogue) -> Iterator[str]:
    if not cell.xla:
        yield "xla=true"


def _of_dispatch(cell: TrainingCell, catalogue: Catalogue) -> Iterator[str]:
    yield from _larger_batch(cell, catalogue)
    if REPEATING.are(catalogue.strategies[cell.strategy]) and cell.steps_per_execution == 1:
        yield f"steps_per_execution={STEPS_A_CALL}"
    yield from _xla(cell, catalogue)


def _fewer_replicas(cell: TrainingCell, catalogue: Catalogue) -> Iterator[str]:
    plain = cell.cross_device_op == "auto" and cell.packing == "default"
    processes = catalogue.strategies[cell.strategy].replica_a_process
    if cell.asynchronous or (processes and (cell.workers > 3 or (cell.workers > 1 and plain))):
        yield f"workers={cell.workers // 2}"
    elif cell.replicas > 3 or (cell.replicas > 1 and plain):
        yield f"replicas={cell.replicas // 2}"


def _of_servers(cell: TrainingCell, catalogue: Catalogue) -> Iterator[str]:
    yield from _larger_batch(cell, catalogue)
    yield f"ps={2 * cell.ps}"
    if cell.ps > 1 and cell.partitioner == "none":
        yield "partitioner=fixed"


def _of_compute(cell: TrainingCell, catalogue: Catalogue) -> Iterator[str]:
    if cell.precision == "float32":
        yield "precision=mixed_bfloat16"
    yield from _xla(cell, catalogue)


_OF_PARTS: Mapping[str, Callable[[TrainingCell, Catalogue], Iterator[str]]] = {
    "input": _of_input,
    "communication": _of_communication,
    "update": _xla,
    "pull": _of_servers,
    "push": _of_servers,
    "dispatch": _of_dispatch,
    "contention": _fewer_replicas,
    "compute": _of_compute,
}
"""The flags that the report names for each part, with the values that are tried."""
