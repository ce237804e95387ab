"""Flags that make a part of a step smaller, each with the values that are worth a try on a cell.

`LEVERS` has all of them, by the part of the step that they are for; `harness.analysis.advice` chooses among them.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.analysis.explain import Explanation
from harness.analysis.paging import KEEPS_MEMORY, KEPT_BYTES, VARIABLE
from harness.analysis.parts import PartName
from harness.analysis.stages import are_photographs, can_be_kept, in_several_files
from harness.record.explain import STEPS_A_CALL
from harness.spec.axes import FETCHING, REPEATING
from harness.spec.catalogue import Catalogue
from harness.spec.cell import TrainingCell, trained
from harness.spec.expand import untrained
from harness.spec.inputs import FILES, IMAGE_FILES
from harness.spec.mesh import Mesh
from harness.spec.text import ENVIRONMENT
from harness.spec.values import Cache

MORE_AHEAD = 8
"""Batches ahead where a step waits for its input: four times the default."""
MORE_ON_DEVICE = 4
"""And on a device that has memory of its own."""
FILES_AT_ONCE = 4
"""Files that are read at a time."""
PACKS = {"num_packs": 2, "bytes_per_pack": 2**20}
"""Of each kind of packing a value other than one pack for all."""
PARTS_OF_A_PACK = 64
"""Where such a value leaves all in the one pack that the step was seen to have, as many of its parts or more: the first
layer's weights, which are packed last, may be the most of it."""
_RING = ("[ring]", ": ring]")
"""How an operation ends that is TensorFlow's ring, by its own name or by what became of `auto`."""


ToTry = Callable[[TrainingCell, Catalogue], Iterator[object]]
"""Each value of a flag that is worth a try on a cell."""


def _as_it_is(value: object, _: Explanation) -> object:
    return value


@dataclass(frozen=True)
class KnownLever:
    """A flag, or what is like one, that makes a part of a step smaller."""

    words: str
    """What the report says of it."""
    key: str
    """Of a spec, or env.NAME, which every engine has. An axis of which there is none says in its entry why
    (`Axis.no_lever`)."""
    values: ToTry = lambda _cell, _catalogue: iter(())
    fits: Callable[[TrainingCell, Catalogue], bool] | None = None
    """Whether a cell is told of it; None where there is a value to try."""
    unlike_seen: Callable[[object, Explanation], object | None] = _as_it_is
    """A value by what ran of the cell's step: another one, or None, where with this it would be the same program, or
    none."""


def _any_cell(_cell: TrainingCell, _catalogue: Catalogue) -> bool:
    return True


def _cached(kind: Cache) -> ToTry:
    def values(cell: TrainingCell, catalogue: Catalogue) -> Iterator[str]:
        if cell.cache in ("none", "auto") and catalogue.has_pipeline(cell.data):
            yield kind

    return values


def _if_it_can_be_kept(kind: object, found: Explanation) -> object | None:
    return kind if can_be_kept(trained(found.cell), found.input) else None


def _in_few_files(cell: TrainingCell, _: Catalogue) -> Iterator[int]:
    if cell.data.startswith(IMAGE_FILES) and not cell.shards:
        yield 1


def _files_side_by_side(cell: TrainingCell, _: Catalogue) -> Iterator[int]:
    in_files = cell.data.startswith(FILES) or cell.shards > 1 or are_photographs(cell.data)
    if in_files and cell.interleave < 2:
        yield FILES_AT_ONCE


def _if_several_files(at_once: object, found: Explanation) -> object | None:
    return at_once if in_several_files(trained(found.cell), found.input) else None


def _more_calls(cell: TrainingCell, _: Catalogue) -> Iterator[int]:
    if cell.parallel_calls:
        yield 0


def _more_ahead(cell: TrainingCell, _: Catalogue) -> Iterator[int]:
    if cell.prefetch < MORE_AHEAD:
        yield MORE_AHEAD


def _more_on_device(cell: TrainingCell, catalogue: Catalogue) -> Iterator[int]:
    own_memory = not catalogue.devices[cell.device].on_processors
    if own_memory and FETCHING.are(catalogue.strategies[cell.strategy]) and cell.device_prefetch < MORE_ON_DEVICE:
        yield MORE_ON_DEVICE


def _shorter_cycles(cell: TrainingCell, _: Catalogue) -> Iterator[int]:
    if cell.cycle_time:
        yield 0


def _plain(cell: TrainingCell, catalogue: Catalogue) -> bool:
    """Another op may pack otherwise."""
    return catalogue.strategies[cell.strategy].takes_cross_device_op and cell.packing == "default"


def _other_ops(cell: TrainingCell, catalogue: Catalogue) -> Iterator[str]:
    names = list(_ops_beside(cell, catalogue))
    yield from (name for name in names if name != "auto" or "ring" not in names)


def _ops_beside(cell: TrainingCell, catalogue: Catalogue) -> Iterator[str]:
    for name, op in catalogue.cross_device_ops.items() if _plain(cell, catalogue) else ():
        taken = (op.strategies is None or cell.strategy in op.strategies) and cell.loop in (op.loops or [cell.loop])
        between_cards = op.past_networks and catalogue.devices[cell.device].on_processors
        if name != cell.cross_device_op and taken and not between_cards:
            yield name


def _no_second_ring(op: object, found: Explanation) -> object | None:
    """Between workers `auto` is a ring, too."""
    is_ring = any(name.endswith(_RING) for name in found.operations)
    return None if is_ring and op in ("auto", "ring") else op


def _packed(kind: str) -> ToTry:
    def values(cell: TrainingCell, catalogue: Catalogue) -> Iterator[int]:
        ops = catalogue.cross_device_ops
        of_op = ops[cell.cross_device_op].packing if cell.cross_device_op in ops else None
        traits = catalogue.strategies[cell.strategy]
        packs = cell.loop in (traits.packing_loops or [cell.loop])
        if packs and _plain(cell, catalogue) and (traits.packing or of_op) == kind:
            yield PACKS[kind]

    return values


def _that_cut(size: object, found: Explanation) -> object:
    """TensorFlow begins another pack only once the last is larger than `size`: of what is no larger in one pack a power
    of two, which cuts it unless nearly all of it is one weight."""
    match found.pack_bytes:
        case [whole] if whole <= PACKS["bytes_per_pack"]:
            return 2 ** (max(1, whole // PARTS_OF_A_PACK).bit_length() - 1)
    return size


def _larger_batch(cell: TrainingCell, _: Catalogue) -> Iterator[int]:
    yield 2 * cell.batch_size


def _several_steps(cell: TrainingCell, catalogue: Catalogue) -> Iterator[int]:
    if REPEATING.are(catalogue.strategies[cell.strategy]) and cell.steps_per_execution == 1:
        yield STEPS_A_CALL


def _xla(cell: TrainingCell, _: Catalogue) -> Iterator[str]:
    if not cell.xla:
        yield "true"


def _of_workers(cell: TrainingCell, catalogue: Catalogue) -> bool:
    """Whether its replicas become fewer by its workers."""
    return cell.asynchronous or catalogue.strategies[cell.strategy].replica_a_process or cell.replicas == 1


def _of_replicas(cell: TrainingCell, catalogue: Catalogue) -> bool:
    return not _of_workers(cell, catalogue)


def _fewer(key: str, of: Callable[[TrainingCell, Catalogue], bool]) -> ToTry:
    """At most half of them: the most with which there is such a cell."""

    def values(cell: TrainingCell, catalogue: Catalogue) -> Iterator[int]:
        counts = range(cell.get(key) // 2, 0, -1) if of(cell, catalogue) else ()
        able = (count for count in counts if _is_there(cell, cell.model_copy(update={key: count}), catalogue))
        yield from itertools.islice(able, 1)

    return values


def _is_there(cell: TrainingCell, fewer: TrainingCell, catalogue: Catalogue) -> bool:
    """Whether there is `fewer`, which is `cell` with fewer replicas or workers: what it packs it adds up, and its
    mesh and its network are the same."""
    packs = cell.packing == "default" or fewer.replicas_in_sync > 1
    meshes = cell.mesh in ("", Mesh(batch=cell.replicas).text) or fewer.replicas == cell.replicas
    networks = not cell.network or fewer.workers > 1 or cell.asynchronous
    return packs and meshes and networks and not untrained(catalogue, fewer)


def _if_not_slower(key: str) -> Callable[[Any, Explanation], object | None]:
    """Where each has a batch of its own, fewer have a smaller one together: what they share must take more of the step
    than that loses."""

    def value(count: Any, found: Explanation) -> object | None:
        cell = trained(found.cell)
        most = next((part.most_gain for part in found.parts if part.name == "contention"), None)
        loses = 1.0 if cell.batch_scope == "global" else cell.get(key) / count
        return count if most is None or most > loses else None

    return value


def _more_servers(cell: TrainingCell, _: Catalogue) -> Iterator[int]:
    yield 2 * cell.ps


def _cut_variables(cell: TrainingCell, _: Catalogue) -> Iterator[str]:
    if cell.ps > 1 and cell.partitioner == "none":
        yield "fixed"


def _half_precision(cell: TrainingCell, _: Catalogue) -> Iterator[str]:
    if cell.precision == "float32":
        yield "mixed_bfloat16"


def _all_of_it(_cell: TrainingCell, _catalogue: Catalogue) -> Iterator[int]:
    yield KEPT_BYTES


def _if_given_back(kept: object, found: Explanation) -> object | None:
    return kept if found.paging is not None and found.paging.is_much else None


_KEPT_MEMORY = KnownLever(
    f"memory that glibc does not give back ({KEEPS_MEMORY} in the environment)",
    f"{ENVIRONMENT}{VARIABLE}",
    _all_of_it,
    unlike_seen=_if_given_back,
)
_LARGER_BATCH = KnownLever("a larger --batch-size", "batch_size", _larger_batch)
_SERVED = (
    _LARGER_BATCH,
    KnownLever("more servers (--ps)", "ps", _more_servers),
    KnownLever("large variables on several servers (--partitioner)", "partitioner", _cut_variables),
)
_SEVERAL_STEPS = KnownLever("several steps a call (--steps-per-execution)", "steps_per_execution", _several_steps)
_XLA = KnownLever("--xla", "xla", _xla)
_ONE_PROGRAM = (_SEVERAL_STEPS, _XLA)
LEVERS: Mapping[PartName, tuple[KnownLever, ...]] = {
    "input": (
        _KEPT_MEMORY,
        KnownLever("decoding once (--cache memory)", "cache", _cached("memory"), unlike_seen=_if_it_can_be_kept),
        KnownLever("several examples at a time (--parallel-calls)", "parallel_calls", _more_calls),
        KnownLever("more batches ahead (--prefetch)", "prefetch", _more_ahead),
        KnownLever("more of them on the devices (--device-prefetch)", "device_prefetch", _more_on_device),
        KnownLever(
            "decoding once into a file, where memory has no room (--cache file)",
            "cache",
            _cached("file"),
            unlike_seen=_if_it_can_be_kept,
        ),
        KnownLever(
            "several files side by side (--interleave)",
            "interleave",
            _files_side_by_side,
            unlike_seen=_if_several_files,
        ),
        KnownLever("one file for all the images' (--shards)", "shards", _in_few_files),
    ),
    "communication": (
        _KEPT_MEMORY,
        KnownLever("a shorter --cycle-time", "cycle_time", _shorter_cycles),
        KnownLever("another --num-packs", "num_packs", _packed("num_packs")),
        KnownLever("another --bytes-per-pack", "bytes_per_pack", _packed("bytes_per_pack"), unlike_seen=_that_cut),
        # on GPUs there are as many as `--try` measures levers
        KnownLever("another --cross-device-op", "cross_device_op", _other_ops, unlike_seen=_no_second_ring),
        KnownLever("a larger --batch-size (as much is added up for more)", "batch_size", _larger_batch),
    ),
    "update": (
        _KEPT_MEMORY,
        KnownLever("an optimizer that does less (--optimizer)", "optimizer", fits=_any_cell),
        *_ONE_PROGRAM,
    ),
    "pull": _SERVED,
    "push": _SERVED,
    "dispatch": (
        _LARGER_BATCH,
        *_ONE_PROGRAM,
    ),
    "host": (  # what several steps in one call save has been measured
        _SEVERAL_STEPS,
        _LARGER_BATCH,
        _XLA,
    ),
    "contention": (
        _KEPT_MEMORY,
        KnownLever("fewer workers", "workers", _fewer("workers", _of_workers), unlike_seen=_if_not_slower("workers")),
        KnownLever(
            "fewer replicas", "replicas", _fewer("replicas", _of_replicas), unlike_seen=_if_not_slower("replicas")
        ),
        KnownLever("more cores for each", "workers", fits=_any_cell),
    ),
    "compute": (
        _KEPT_MEMORY,
        KnownLever("--precision mixed_bfloat16", "precision", _half_precision),
        KnownLever("--xla (where the device is faster by it)", "xla", _xla),
        KnownLever("a smaller model", "model", fits=_any_cell),
    ),
}
"""By part, in the order in which they are tried."""
