"""From axes to cells: the product, less what makes no sense, plus the base cases."""

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from harness.errors import UsageError
from harness.spec.axes import NO_MODEL, OUTER_FIRST, TABLE
from harness.spec.bases import under_one_loop
from harness.spec.catalogue import Catalogue, StrategyTraits
from harness.spec.cell import TrainingCell
from harness.spec.collective import COLLECTIVE, ELEMENT_BYTES, GRADIENTS, CollectiveCell, in_whole_shares
from harness.spec.combination import (
    SENDS_NOTHING,
    meshes_of,
    misfit,
    nonsense,
    packings_of,
    reaches_unchanged,
    undivided,
)
from harness.spec.exclusions import excluded_by, exclusions
from harness.spec.grouping import idle_in
from harness.spec.inputs import LeftOut, NothingLeft, on_device, unfed
from harness.spec.mesh import Mesh
from harness.spec.names import must_be_known, own_of
from harness.spec.pipeline import PIPELINE, PipelineCell, appetites_of
from harness.spec.quantity import EXAMPLES, checked_quantity
from harness.spec.spelling import SPELT, spelt
from harness.spec.sweep import ASKED, Sweep
from harness.spec.taken import must_be_taken, untaken, with_names_of
from harness.spec.work import Cell, OwnStepCell
from harness.visible import quoted

WITHOUT_USE = {
    "network": ("1 worker over a network", SENDS_NOTHING),
    "cycle_time": ("1 worker with a cycle time", "one process waits for no cycle, so cycle_time changes nothing"),
}
"""Of axes that say nothing of one process (`Axis.idle`) what is asked of it, and why it is measured without."""
_Expanded = TypeVar("_Expanded", bound=Cell)


@dataclass(frozen=True)
class Matrix:
    """The cells of a sweep in canonical order; `added_base` are the ids that only serve as base cases."""

    cells: tuple[Cell, ...]
    left_out: tuple[LeftOut, ...] = ()
    added_base: frozenset[str] = field(default_factory=frozenset)


def expand(sweep: Sweep, catalogue: Catalogue, taken: bool = False) -> Matrix:
    """The matrix of `sweep`; UsageError on an unknown name, and NothingLeft when no combination is left.

    `taken` is of one of several engines: some strategy of theirs takes each axis (`must_be_taken`).
    """
    if sweep.work in MATRIX_OF:
        return MATRIX_OF[sweep.work](sweep, catalogue, taken)
    if sweep.step:
        return Matrix(tuple(_own_steps(sweep)))
    if OwnStepCell.EARLIER_LOOP in sweep.asked("loop"):
        raise UsageError(
            f"loop: '{OwnStepCell.EARLIER_LOOP}' is a training step of your own: give --step package.module:function; "
            f"expected {' or '.join(catalogue.loops)}"
        )
    sweep = with_names_of(sweep, catalogue)
    _known_names(sweep, catalogue)
    sweep = _with_texts(sweep, catalogue)
    if not taken:
        must_be_taken([(sweep, catalogue)])
    _of_meshes(sweep)
    asked, left_out = _sorted_out(sweep, catalogue, _trainings(sweep, catalogue))
    bases = itertools.chain.from_iterable(cell.bases(catalogue) for cell in asked)
    measured = under_one_loop(((cell, catalogue) for cell in (*asked, *bases)), left_out=excluded_by(sweep.exclude))
    again = [_measured_already(cell, measured[cell]) for cell in asked if measured[cell] != cell]
    cells = dict.fromkeys(measured.values())
    added = frozenset(cell.cell_id for cell in cells) - {cell.cell_id for cell in asked}
    return Matrix(ordered(cells), (*left_out, *dict.fromkeys(again)), added)


def _measured_already(cell: TrainingCell, other: Cell) -> LeftOut:
    one = f"strategy '{cell.strategy}' is one program whatever the loop is"
    reason = f"{one}: it is measured under '{other.get('loop')}'"
    return LeftOut(f"{cell.strategy}, loop {cell.loop}", reason)


def ordered(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """As a matrix has them."""
    return tuple(sorted(cells, key=lambda cell: cell.order))


def _sorted_out(
    sweep: Sweep, catalogue: Catalogue, found: Iterable[_Expanded | LeftOut]
) -> tuple[tuple[_Expanded, ...], tuple[LeftOut, ...]]:
    """The cells and what is left out, each once; NothingLeft where no cell is left."""
    cells: dict[_Expanded, None] = {}
    left_out: dict[LeftOut, None] = {}
    excluded = exclusions(sweep.exclude)
    for one in found:
        if isinstance(one, LeftOut):
            left_out[one] = None
        elif fitting := [exclusion.left_out for exclusion in excluded if exclusion.fits(one, catalogue)]:
            left_out |= dict.fromkeys(fitting)
        else:
            cells[one] = None
    if not cells:
        raise NothingLeft(tuple(left_out))
    return tuple(cells), tuple(left_out)


def _collectives(sweep: Sweep, catalogue: Catalogue, taken: bool) -> Matrix:
    """The cells of collectives: each in each size, by every strategy, op and packing that makes sense together.

    What the framework lacks of them the engine's own process says.
    """
    able = {name: traits for name, traits in catalogue.strategies.items() if traits.collectives}
    if not able:
        raise UsageError(f"engine: '{sweep.asked('engine')[0]}' has no collectives by themselves; leave it out")
    sweep = _with_replicas(sweep, able)
    _known_names(sweep, catalogue)
    for name in sweep.asked("strategy"):
        if name not in able:
            raise UsageError(f"strategy: given '{name}', but collectives are measured of {' or '.join(able)} only")
    if not taken:
        must_be_taken([(sweep, catalogue)])
    cells, left_out = _sorted_out(sweep, catalogue, _buffers(sweep, catalogue, taken))
    return Matrix(ordered(cells), left_out)


def _with_replicas(sweep: Sweep, able: Mapping[str, StrategyTraits]) -> Sweep:
    """With the strategy that nobody asked for, the engine's first that is `able`, between processes where these are
    asked for; and with two replicas, each a process where the strategy has them so."""
    found, given = {"strategy": sweep.asked("strategy")}, sweep.model_fields_set
    if "strategy" not in given or not found["strategy"]:
        between = [name for name, traits in able.items() if traits.multi_worker and max(sweep.asked("workers")) > 1]
        found["strategy"] = [*between, *able][:1]
    if not sweep.asked("replicas"):
        apart = all(name in able and able[name].replica_a_process for name in found["strategy"])
        found |= {"replicas": [1 if apart else 2]} | ({"workers": [2]} if apart and "workers" not in given else {})
    return sweep.model_copy(update=found)


def _buffers(sweep: Sweep, catalogue: Catalogue, beside_others: bool) -> Iterator[CollectiveCell | LeftOut]:
    for point in _product(CollectiveCell.model_fields, sweep, catalogue):
        at = CollectiveCell.model_construct(**point)
        reason = nonsense(catalogue, at) or _nobody_to_send_to(at)
        if reasons := untaken(catalogue, at, point["engine"]) or ([] if reason is None else [reason]):
            yield from reasons
            continue
        packings, refused = packings_of(sweep, catalogue, at)
        yield from refused
        buffers = [("", size) for size in sweep.asked("size")]
        models = dict.fromkeys(catalogue.model_text(name) for name in sweep.asked(GRADIENTS))
        if models and beside_others and not catalogue.sends_gradients:  # alone it is refused for them
            yield LeftOut("gradients of models", "TensorFlow alone sends them")
            models = {}
        of_models = {model: catalogue.gradient_bytes(model, sweep.timeout) for model in models}
        yield from (
            LeftOut(f"gradients of {model}", "it has no weight that is trained, so there are none to send")
            for model, size in of_models.items()
            if not size
        )
        buffers += [(model, size) for model, size in of_models.items() if size]
        for packing, collective, (model, size) in itertools.product(packings, sweep.asked("collective"), buffers):
            if model and collective != "all_reduce":
                yield LeftOut(f"{collective} of gradients", "gradients are added up: ask for all_reduce")
                continue
            keys = {**at.model_dump(), "packing": packing, "gradients": model}
            yield _collective(keys, collective, size, at.replicas_in_sync)


def _collective(keys: Mapping[str, Any], collective: str, size: int, n: int) -> CollectiveCell | LeftOut:
    """The cell of a buffer of at most `size`, cut as nccl-tests cuts it where each of n replicas has a share."""
    whole = in_whole_shares(collective, size, n)
    if not whole:
        told = f"{collective} of {size} bytes over {n} replicas"
        return LeftOut(told, f"a share is one float32 or more: {ELEMENT_BYTES * n} bytes at least")
    return CollectiveCell.model_validate({**keys, "collective": collective, "size": whole})


def _nobody_to_send_to(at: CollectiveCell) -> LeftOut | None:
    if at.replicas_in_sync == 1:
        return LeftOut(f"{at.strategy} × 1 replica", "one replica has nobody to send to")
    if at.network and at.workers == 1:
        return LeftOut(f"{at.strategy}, 1 worker over a network", SENDS_NOTHING)
    return None


def _pipelines(sweep: Sweep, catalogue: Catalogue, _taken: bool) -> Matrix:
    """The cells of input pipelines, and what each of their models takes: that is measured for its sake."""
    named = [model for model in sweep.asked("model") if model != NO_MODEL]
    _known_names(sweep.model_copy(update={"model": named}), catalogue)
    if not any(map(catalogue.has_pipeline, catalogue.data)):
        raise UsageError("engine: it has no input pipeline that is measured by itself; leave it out")
    cells, left_out = _sorted_out(sweep, catalogue, _inputs(_with_texts(sweep, catalogue), catalogue))
    appetites = ordered(appetites_of(cells))
    return Matrix((*appetites, *ordered(cells)), left_out, frozenset(cell.cell_id for cell in appetites))


def _inputs(sweep: Sweep, catalogue: Catalogue) -> Iterator[PipelineCell | LeftOut]:
    for point in _product(PipelineCell.model_fields, sweep, catalogue):
        data = point["data"]
        if "model" not in sweep.model_fields_set and reaches_unchanged(catalogue, data):
            point["model"] = NO_MODEL
        model = point["model"]
        if (unlike := misfit(catalogue, model, data)) is not None:
            yield unlike
        elif not catalogue.has_pipeline(data):
            yield LeftOut(f"{model} on {data}", f"data: {on_device(data)}")
        else:
            whole = PipelineCell(**{**point, **_counted(catalogue, point)})
            if (reason := unfed(catalogue, whole)) is not None:
                yield reason
                continue
            yield whole
            yield from map(whole.cut_behind, sweep.asked("cut"))


MATRIX_OF: Mapping[str, Callable[[Sweep, Catalogue, bool], Matrix]] = {COLLECTIVE: _collectives, PIPELINE: _pipelines}
"""The matrix of each kind of work that a spec asks for by `work`, but of trainings."""


def _with_texts(sweep: Sweep, catalogue: Catalogue) -> Sweep:
    """The same with models, optimizers and data in their one spelling."""
    given = [key for key in SPELT if key in sweep.model_fields_set]
    asked = {key: list(dict.fromkeys(spelt(key, text, catalogue) for text in sweep.asked(key))) for key in given}
    return sweep.model_copy(update=asked)


def _known_names(sweep: Sweep, catalogue: Catalogue) -> None:
    """UsageError for a name that no registry has."""
    for key, axis in TABLE.items():
        if axis.choices is not None:
            names = list(getattr(catalogue, axis.choices))
            own = own_of(key, [catalogue])
            must_be_known(key, sweep.asked(key), names, *own, sweep.asked("engine"), catalogue.beside(key))


def _product(cell_keys: Collection[str], sweep: Sweep, catalogue: Catalogue) -> Iterator[dict[str, Any]]:
    """The product of the axes among the keys of a kind of cell: before it is known what makes sense, unchecked.

    An axis that the strategy does not take is at its default, and data that nobody asked for are the model's own.
    """
    keys = [key for key in OUTER_FIRST if key in cell_keys and key in ASKED and ASKED[key].values]
    for values in itertools.product(*(sweep.asked(key) for key in keys)):
        point = dict(zip(keys, values, strict=True))
        for key, axis in ((key, TABLE[key]) for key in keys if key in TABLE):
            takers = axis.takers if "strategy" in point else None  # a pipeline by itself has none
            if takers is not None and takers.dropped and not takers.are(catalogue.strategies[point["strategy"]]):
                point.pop(key)
        if point.get("model", NO_MODEL) != NO_MODEL and "data" not in sweep.model_fields_set:
            point["data"] = catalogue.model_traits(point["model"]).data or point["data"]
        yield point


def _trainings(sweep: Sweep, catalogue: Catalogue) -> Iterator[TrainingCell | LeftOut]:
    for point in _product(TrainingCell.model_fields, sweep, catalogue):
        at = TrainingCell.model_construct(**point)
        if reasons := untrained(catalogue, at):
            yield from reasons
            continue
        packings, refused = packings_of(sweep, catalogue, at)
        meshes, unmatched = meshes_of(sweep, catalogue, at)
        yield from (*refused, *unmatched)
        values = {**at.model_dump(), "global_batch_size": _examples_an_update(at), **_counted(catalogue, point)}
        for key, (alone, why) in WITHOUT_USE.items():
            if values[key] != TABLE[key].base and idle_in(key, at):
                yield LeftOut(f"{at.strategy}, {alone}", f"{why}; it is measured without")
                values[key] = TABLE[key].base
        for packing, mesh in itertools.product(packings, meshes):
            yield TrainingCell.model_validate({**values, "packing": packing, "mesh": mesh})


def untrained(catalogue: Catalogue, at: TrainingCell) -> list[LeftOut]:
    """Why there is no such training, whatever its packing, mesh and network: each key that its engine does not take, or
    what makes no sense first; nothing where there is one."""
    if found := untaken(catalogue, at, at.engine):
        return found
    reason = misfit(catalogue, at.model, at.data) or nonsense(catalogue, at) or undivided(at) or unfed(catalogue, at)
    return [] if reason is None else [reason]


def _own_steps(sweep: Sweep) -> Iterator[OwnStepCell]:
    for quantity in sweep.asked("quantity"):
        if "=" in quantity:
            raise UsageError(f"quantity: given {quoted(quantity)}; of a step of your own, amount says how much it does")
        yield OwnStepCell(step=sweep.step, amount=sweep.amount, quantity=quantity or EXAMPLES.many)


def _counted(catalogue: Catalogue, point: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a cell that say what its work is counted in."""
    tokens = 0 if point["model"] == NO_MODEL else catalogue.model_traits(point["model"]).tokens
    return {"tokens": tokens, "quantity": checked_quantity(point["quantity"], point["model"], tokens)}


def _examples_an_update(at: TrainingCell) -> int:
    """G; with parameter servers every update is one worker's, and its share of a global batch."""
    replica = at.batch_size // at.replicas_in_sync if at.batch_scope == "global" else at.batch_size
    return replica if at.asynchronous else replica * at.replicas_in_sync


def _of_meshes(sweep: Sweep) -> None:
    """Refuse a mesh that has another number of replicas than asked."""
    replicas = sweep.asked("replicas")
    for text in sweep.asked("mesh"):
        mesh = Mesh.parse(text)
        if mesh.batch not in replicas:
            raise UsageError(
                f"mesh: '{text}' is {mesh.devices} devices for {mesh.batch} replicas (the size of batch), and replicas "
                f"is {','.join(map(str, replicas))}: add {mesh.batch} to replicas"
            )
