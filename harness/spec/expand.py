"""From axes to cells: the product, less what makes no sense, plus the base cases."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harness.errors import UsageError, not_one_of
from harness.spec.catalogue import OWN_LOOP, Catalogue
from harness.spec.cell import BatchScope, Cell, Partitioner, Precision, Updates
from harness.spec.mesh import Mesh
from harness.spec.network import join_values, order_of
from harness.spec.sweep import Sweep

ALONE = "one process sends nothing over a network"
OWN = "package.module:function"
OWN_OP_STRATEGIES = ("mirrored",)
"""Strategies that take a cross-device op of the user's own: the others are given a name only."""


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
    if OWN_LOOP in sweep.loop:
        raise UsageError(
            f"loop: '{OWN_LOOP}' is a training step of your own, which the pytest gate measures; it has no axes to "
            f"sweep, expected {' or '.join(catalogue.loops)}"
        )
    _known("loop", sweep.loop, list(catalogue.loops))
    _known("model", sweep.model, list(catalogue.models), or_like=OWN, mark=":")
    _known("data", sweep.data, list(catalogue.data), or_like="tfds:NAME", mark="tfds:")
    _of_parameter_servers(sweep, catalogue)
    _of_networks(sweep, catalogue)
    _of_meshes(sweep, catalogue)
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
    changes = {
        "strategy": "none",
        "replicas": 1,
        "workers": 1,
        "cross_device_op": "auto",
        "packing": "default",
        "global_batch_size": cell.batch_size,
        "ps": 0,
        "partitioner": "none",
        "updates": "locked",
        "network": "",
        "mesh": "",
    }
    return cell.model_copy(update=changes)


def own_step_cell(path: str, examples: int = 1) -> Cell:
    """The cell of a user's own training step, which the function at `path` (`package.module:function`) builds.

    `examples` is how many a step trains on, for throughput. Strategy, devices, model and data are the
    step's own affair: the names in those places say so.
    """
    return Cell(
        device="own", strategy="none", replicas=1, batch_size=examples, batch_scope="per_replica",
        global_batch_size=examples, cross_device_op="auto", model=path, data="own", optimizer="own", loop=OWN_LOOP,
    )  # fmt: skip


class _Combination(NamedTuple):
    """One point of the product of the axes, before it is known to make sense."""

    device: str
    model: str
    data: str
    precision: Precision
    xla: bool
    optimizer: str
    loop: str
    scope: BatchScope
    batch: int
    strategy: str
    workers: int
    replicas: int
    op: str
    ps: int
    partitioner: Partitioner
    updates: Updates
    network: str

    @property
    def n(self) -> int:
        """Replicas over all workers."""
        return self.workers * self.replicas


def _combinations(sweep: Sweep) -> Iterator[_Combination]:
    axes = itertools.product(
        sweep.device, sweep.model, sweep.data, sweep.precision, sweep.xla, sweep.optimizer, sweep.loop,
        sweep.batch_scope, sweep.batch_size, sweep.strategy, sweep.workers, sweep.replicas, sweep.cross_device_op,
        sweep.ps, sweep.partitioner, sweep.updates, sweep.network,
    )  # fmt: skip
    # mypy knows itertools.product up to ten axes, as a tuple of object beyond
    return (_Combination(*values) for values in axes)  # type: ignore[arg-type]


def _product(sweep: Sweep, catalogue: Catalogue) -> Iterator[Cell | LeftOut]:
    for at in _combinations(sweep):
        reason = _nonsense(catalogue, at)
        if reason is not None:
            yield reason
            continue
        packings, refused = _packings(sweep, catalogue, at)
        meshes, unmatched = _meshes(sweep, catalogue, at)
        yield from (*refused, *unmatched)
        servers = _server_keys(catalogue, at)
        network = at.network
        if network and at.workers == 1 and not servers:
            yield LeftOut(f"{at.strategy}, 1 worker over a network", f"{ALONE}; it is measured without")
            network = ""
        for packing, mesh in itertools.product(packings, meshes):
            yield Cell(
                device=at.device, strategy=at.strategy, replicas=at.replicas, workers=at.workers,
                batch_size=at.batch, batch_scope=at.scope, global_batch_size=_examples_an_update(at, bool(servers)),
                cross_device_op=at.op, packing=packing, model=at.model, data=at.data, precision=at.precision,
                xla=at.xla, optimizer=at.optimizer, loop=at.loop, network=network, mesh=mesh,
                **servers,
            )  # fmt: skip


def _server_keys(catalogue: Catalogue, at: _Combination) -> dict[str, Any]:
    """The keys of a cell with parameter servers; none for any other."""
    if not catalogue.strategies[at.strategy].parameter_servers:
        return {}
    return {"ps": at.ps, "partitioner": at.partitioner, "updates": at.updates}


def _examples_an_update(at: _Combination, asynchronous: bool) -> int:
    """G; with parameter servers every update is one worker's, and its share of a global batch."""
    replica = at.batch // at.n if at.scope == "global" else at.batch
    return replica if asynchronous else replica * at.n


def _nonsense(catalogue: Catalogue, at: _Combination) -> LeftOut | None:
    """Why the combination makes no sense, or None when it does."""
    traits = catalogue.strategies[at.strategy]
    name = f"strategy '{at.strategy}'"
    if traits.devices is not None and at.device not in traits.devices:
        return LeftOut(f"{at.strategy} on {at.device}", f"{name} runs on {', '.join(traits.devices)} only")
    if at.workers > 1 and not traits.multi_worker:
        return LeftOut(f"{at.strategy}, {at.workers} workers", f"{name} runs in one process")
    if at.network and not traits.multi_worker:
        return LeftOut(f"{at.strategy} over a network", f"{name} runs in one process, and {ALONE}")
    if traits.parameter_servers and at.replicas > 1:
        return LeftOut(f"{at.strategy} × {at.replicas} replicas", f"a worker of {name} is one replica: use workers")
    if traits.max_replicas is not None and at.n > traits.max_replicas:
        return LeftOut(f"{at.strategy} × {at.n} replicas", f"{name} runs on {traits.max_replicas} replica")
    if at.op != "auto" and not traits.takes_cross_device_op:
        return LeftOut(f"{at.strategy} with {at.op}", f"{name} takes no cross-device op")
    takers = catalogue.cross_device_ops[at.op].strategies if at.op in catalogue.cross_device_ops else OWN_OP_STRATEGIES
    if takers is not None and at.strategy not in takers:
        return LeftOut(f"{at.strategy} with {at.op}", f"'{at.op}' is an op of {', '.join(takers)}")
    if at.op != "auto" and at.n == 1:
        return LeftOut(f"{at.strategy} × 1 replica with {at.op}", "one replica has nothing to reduce across devices")
    if at.scope == "global" and at.batch % at.n:
        return LeftOut(
            f"global batch {at.batch} over {at.n} replicas",
            f"{at.n} replicas do not divide a global batch of {at.batch}",
        )
    return None


def _packings(sweep: Sweep, catalogue: Catalogue, at: _Combination) -> tuple[list[str], list[LeftOut]]:
    """The packings that the op takes among those asked for; what does not apply is listed, not run."""
    asked = {"num_packs": sweep.num_packs, "bytes_per_pack": sweep.bytes_per_pack}
    traits = catalogue.strategies[at.strategy]
    reduces = traits.takes_cross_device_op and at.n > 1
    of_op = catalogue.cross_device_ops[at.op].packing if at.op in catalogue.cross_device_ops else None
    kind = (traits.packing or of_op) if reduces else None
    refused = [
        LeftOut(f"{at.strategy} with {at.op}, {key}={value}", f"{at.op} takes no {key}")
        for key, values in asked.items()
        if reduces and key != kind
        for value in values
    ]
    taken = [f"{kind}={value}" for value in asked[kind]] if kind else []
    return taken or ["default"], refused


def _meshes(sweep: Sweep, catalogue: Catalogue, at: _Combination) -> tuple[list[str], list[LeftOut]]:
    """The meshes with as many replicas as the combination; without any given, one of replicas alone."""
    if not catalogue.strategies[at.strategy].meshes:
        return [""], []
    if not sweep.mesh:
        return [Mesh(batch=at.replicas).text], []
    matching = [text for text in sweep.mesh if Mesh.parse(text).batch == at.replicas]
    if matching:
        return matching, []
    reason = f"no mesh that was given has {at.replicas} replicas (batch:{at.replicas})"
    return [], [LeftOut(f"{at.strategy} × {at.replicas} replicas", reason)]


def _of_meshes(sweep: Sweep, catalogue: Catalogue) -> None:
    """Refuse a mesh that no strategy of the sweep could take, or that has another number of replicas than asked."""
    takers = [name for name, traits in catalogue.strategies.items() if traits.meshes]
    if sweep.mesh and not set(takers) & set(sweep.strategy):
        raise UsageError(f"mesh: given {sweep.mesh}, but no strategy of this sweep takes one: {' or '.join(takers)}")
    for text in sweep.mesh:
        mesh = Mesh.parse(text)
        if mesh.batch not in sweep.replicas:
            raise UsageError(
                f"mesh: '{text}' is {mesh.devices} devices for {mesh.batch} replicas (the size of batch), and replicas "
                f"is {','.join(map(str, sweep.replicas))}: add {mesh.batch} to replicas"
            )


def _of_parameter_servers(sweep: Sweep, catalogue: Catalogue) -> None:
    """Refuse a key of parameter servers that no strategy of the sweep could take."""
    if any(catalogue.strategies[name].parameter_servers for name in sweep.strategy):
        return
    for key in ("ps", "partitioner", "updates"):
        if getattr(sweep, key) != Sweep.model_fields[key].default:
            takers = " or ".join(name for name, traits in catalogue.strategies.items() if traits.parameter_servers)
            raise UsageError(f"{key}: given {getattr(sweep, key)}, but no strategy of this sweep has servers: {takers}")


def _of_networks(sweep: Sweep, catalogue: Catalogue) -> None:
    """Refuse a network between the processes of strategies that all have one only."""
    if any(sweep.network) and not any(catalogue.strategies[name].multi_worker for name in sweep.strategy):
        takers = " or ".join(name for name, traits in catalogue.strategies.items() if traits.multi_worker)
        given = join_values(sweep.network)
        raise UsageError(f"network: given {given}, but no strategy of this sweep has several processes: {takers}")


def _known(key: str, given: list[str], valid: list[str], or_like: str = "", mark: str = "") -> None:
    for name in given:
        if name in valid or (mark and mark in name):
            continue
        raise not_one_of(key, name, [*valid, or_like] if or_like else valid)


def _order(cell: Cell) -> tuple[object, ...]:
    return (
        cell.device, cell.model, cell.data, cell.precision, cell.xla, cell.optimizer, cell.loop, cell.batch_scope,
        cell.batch_size, cell.strategy != "none", cell.strategy, cell.workers, cell.replicas, cell.cross_device_op,
        cell.packing, cell.ps, cell.partitioner, cell.updates, order_of(cell.network), cell.model_shards,
    )  # fmt: skip
