"""From axes to cells: the product, less what makes no sense, plus the base cases."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

from harness.errors import UsageError, not_one_of
from harness.spec.catalogue import Catalogue
from harness.spec.cell import Cell
from harness.spec.sweep import Sweep


OWN = "package.module:function"


@dataclass(frozen=True)
class LeftOut:
    """A combination that was asked for and makes no sense, with the reason."""

    combination: str
    reason: str


@dataclass(frozen=True)
class Matrix:
    """The cells of a sweep in canonical order; `added_base` are the ids that only serve as base cases."""

    cells: tuple[Cell, ...]
    left_out: tuple[LeftOut, ...] = ()
    added_base: frozenset[str] = field(default_factory=frozenset)


def expand(sweep: Sweep, catalogue: Catalogue) -> Matrix:
    """The matrix of `sweep`; UsageError on an unknown name or when no combination is left."""
    _known("device", sweep.device, list(catalogue.devices))
    _known("strategy", sweep.strategy, list(catalogue.strategies))
    _known("cross_device_op", sweep.cross_device_op, list(catalogue.cross_device_ops), or_like=OWN, mark=":")
    _known("optimizer", sweep.optimizer, list(catalogue.optimizers))
    _known("model", sweep.model, list(catalogue.models), or_like=OWN, mark=":")
    _known("data", sweep.data, list(catalogue.data), or_like="tfds:NAME", mark="tfds:")
    cells: dict[Cell, None] = {}
    left_out: dict[LeftOut, None] = {}
    for combination in _product(sweep, catalogue):
        if isinstance(combination, LeftOut):
            left_out[combination] = None
        else:
            cells[combination] = None
    if not cells:
        reasons = "; ".join(dict.fromkeys(f"{item.combination}: {item.reason}" for item in left_out))
        raise UsageError(f"no combination is left to run ({reasons})")
    asked = tuple(cells)
    for cell in asked:
        cells[base_of(cell)] = None
    added = frozenset(cell.cell_id for cell in cells) - {cell.cell_id for cell in asked}
    return Matrix(tuple(sorted(cells, key=_order)), tuple(left_out), added)


def base_of(cell: Cell) -> Cell:
    """The base case *no strategy, one device* at the same batch: b for weak scaling, G for strong."""
    batch = cell.batch_size if cell.batch_scope == "per_replica" else cell.global_batch_size
    changes = {
        "strategy": "none",
        "replicas": 1,
        "workers": 1,
        "cross_device_op": "auto",
        "packing": "default",
        "global_batch_size": batch,
    }
    return cell.model_copy(update=changes)


def _product(sweep: Sweep, catalogue: Catalogue) -> Iterator[Cell | LeftOut]:
    axes = itertools.product(
        sweep.device, sweep.model, sweep.data, sweep.precision, sweep.xla, sweep.optimizer, sweep.loop,
        sweep.batch_scope, sweep.batch_size, sweep.strategy, sweep.workers, sweep.replicas, sweep.cross_device_op,
    )  # fmt: skip
    for device, model, data, precision, xla, optimizer, loop, scope, batch, strategy, workers, replicas, op in axes:
        reason = _nonsense(catalogue, device, strategy, workers, replicas, op, scope, batch)
        if reason:
            yield LeftOut(reason[0], reason[1])
            continue
        n = workers * replicas
        packings, refused = _packings(sweep, catalogue, strategy, n, op)
        yield from refused
        for packing in packings:
            yield Cell(
                device=device, strategy=strategy, replicas=replicas, workers=workers, batch_size=batch,
                batch_scope=scope, global_batch_size=batch if scope == "global" else n * batch,
                cross_device_op=op, packing=packing, model=model, data=data, precision=precision,
                xla=xla, optimizer=optimizer, loop=loop,
            )  # fmt: skip


def _nonsense(
    catalogue: Catalogue, device: str, strategy: str, workers: int, replicas: int, op: str, scope: str, batch: int
) -> tuple[str, str] | None:
    """(combination, reason) when the combination makes no sense, else None."""
    traits = catalogue.strategies[strategy]
    n = workers * replicas
    if traits.devices is not None and device not in traits.devices:
        return f"{strategy} on {device}", f"strategy '{strategy}' runs on {', '.join(traits.devices)} only"
    if workers > 1 and not traits.multi_worker:
        return f"{strategy}, {workers} workers", f"strategy '{strategy}' runs in one process"
    if traits.max_replicas is not None and n > traits.max_replicas:
        return f"{strategy} × {n} replicas", f"strategy '{strategy}' runs on {traits.max_replicas} replica"
    if op != "auto" and not traits.takes_cross_device_op:
        return f"{strategy} with {op}", f"strategy '{strategy}' takes no cross-device op"
    if op != "auto" and n == 1:
        return f"{strategy} × 1 replica with {op}", "one replica has nothing to reduce across devices"
    if scope == "global" and batch % n:
        return f"global batch {batch} over {n} replicas", f"{n} replicas do not divide a global batch of {batch}"
    return None


def _packings(sweep: Sweep, catalogue: Catalogue, strategy: str, n: int, op: str) -> tuple[list[str], list[LeftOut]]:
    """The packings that `op` takes among those asked for; what does not apply is listed, not run."""
    asked = {"num_packs": sweep.num_packs, "bytes_per_pack": sweep.bytes_per_pack}
    reduces = catalogue.strategies[strategy].takes_cross_device_op and n > 1
    kind = catalogue.cross_device_ops[op].packing if reduces and op in catalogue.cross_device_ops else None
    refused = [
        LeftOut(f"{strategy} with {op}, {key}={value}", f"{op} takes no {key}")
        for key, values in asked.items()
        if reduces and key != kind
        for value in values
    ]
    taken = [f"{kind}={value}" for value in asked[kind]] if kind else []
    return taken or ["default"], refused


def _known(key: str, given: list[str], valid: list[str], or_like: str = "", mark: str = "") -> None:
    for name in given:
        if name in valid or (mark and mark in name):
            continue
        raise not_one_of(key, name, [*valid, or_like] if or_like else valid)


def _order(cell: Cell) -> tuple[object, ...]:
    return (
        cell.device, cell.model, cell.data, cell.precision, cell.xla, cell.optimizer, cell.loop, cell.batch_scope,
        cell.batch_size, cell.strategy != "none", cell.strategy, cell.workers, cell.replicas, cell.cross_device_op,
        cell.packing,
    )  # fmt: skip
