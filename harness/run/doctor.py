"""Try, each in a fresh process, what this machine can run."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.protocol.messages import Request
from harness.run.launchers import launchers
from harness.run.network import available, loopback_available
from harness.run.process.startup import Startup
from harness.run.process.zygote import Zygote
from harness.run.turns.single import live_through, single, single_task
from harness.spec.axes import NO_STRATEGY
from harness.spec.catalogue import VIRTUAL_CPU, Catalogue, CrossDeviceOpTraits
from harness.spec.cell import TrainingCell

LIMIT_S = 60.0
REPLICAS = (2, 3)
"""Ops are tried at an even and at an odd count, since one that is right at 2 may be wrong at 3."""


@dataclass(frozen=True)
class Finding:
    """One thing that was tried: `reason` is None when it works, else what TensorFlow or the machine said."""

    kind: str
    name: str
    status: str
    reason: str | None


def examine(catalogue: Catalogue) -> Iterator[Finding]:
    """Try every device kind, then every strategy and op on the best kind that works, then what clusters need."""
    first = dict(_try_before_others(catalogue))
    with Zygote() as zygote:
        working = []
        for finding in _try_devices(zygote, catalogue, first):
            if finding.reason is None:
                working.append(finding.name)
            yield finding
        device = next((name for name in ("gpu", VIRTUAL_CPU) if name in working), VIRTUAL_CPU)
        for name, traits in catalogue.strategies.items():
            if traits.multi_worker:
                cell = _cluster(name, ps=1 if traits.parameter_servers else 0)
                yield _try_cluster(zygote, "strategy", f"{name} (2 workers)", cell)
                continue
            if name in first:
                yield dataclasses.replace(first[name], kind="strategy")
                continue
            kind = name if name in working else device
            replicas = 2 if traits.takes_cross_device_op and catalogue.devices[device].on_processors else 1
            yield _try(zygote, "strategy", name, probe_cell(kind, name, replicas, "auto"))
        for op in catalogue.cross_device_ops.values():
            yield from _try_op(zygote, op, device, catalogue)
    yield from examine_hosts()


def try_devices(catalogue: Catalogue) -> Iterator[Finding]:
    """Every device kind, each in a fresh process."""
    first = dict(_try_before_others(catalogue))
    with Zygote() as zygote:
        yield from _try_devices(zygote, catalogue, first)


def _try_devices(zygote: Zygote, catalogue: Catalogue, first: Mapping[str, Finding]) -> Iterator[Finding]:
    """Every device kind but those that are tried already."""
    for device in catalogue.devices:
        yield first.get(device) or _try_device(zygote, device, catalogue)


def _try_before_others(catalogue: Catalogue) -> Iterator[tuple[str, Finding]]:
    """Devices that importing the framework takes, in processes of their own, before one that stays imports it."""
    taken = [name for name, traits in catalogue.devices.items() if traits.taken_by_import]
    if taken:
        with Zygote(Startup(preloads=False)) as zygote:
            yield from ((name, _try_device(zygote, name, catalogue)) for name in taken)


def _try_device(zygote: Zygote, device: str, catalogue: Catalogue) -> Finding:
    """Without a strategy, unless the device has one of its own, of its name."""
    strategy = device if device in catalogue.strategies else NO_STRATEGY
    return _try(zygote, "device", device, probe_cell(device, strategy, 1, "auto"))


def examine_hosts() -> Iterator[Finding]:
    """What can place processes here, and on which networks. Nothing is started on other hosts."""
    for name, launcher in launchers().items():
        yield _finding("launcher", name, launcher.available())
    yield _finding("network", "loopback of its own", loopback_available())
    yield _finding("network", "emulated hosts", available())


def _finding(kind: str, name: str, reason: str | None) -> Finding:
    return Finding(kind, name, "ok" if reason is None else "unsupported", reason)


def _try_op(zygote: Zygote, op: CrossDeviceOpTraits, device: str, catalogue: Catalogue) -> Iterator[Finding]:
    """The op with every strategy that takes it: one in a process of its own, or the implementation of a cluster.

    `auto` is what strategies were tried with already, but for an odd number of replicas.
    """
    for name, traits in catalogue.strategies.items():
        if not traits.takes_cross_device_op or (op.strategies is not None and name not in op.strategies):
            continue
        if not traits.multi_worker:
            for replicas in REPLICAS:
                yield _try(zygote, f"op, {replicas} replicas", op.name, probe_cell(device, name, replicas, op.name))
        elif op.name != "auto":
            yield _try_cluster(zygote, "op, 2 workers", op.name, _cluster(name, op.name, device))


def _try_cluster(zygote: Zygote, kind: str, name: str, cell: TrainingCell) -> Finding:
    """A whole trial of two workers on this machine, one window long, its proofs included."""
    trial = single("doctor", zygote, probe_request(cell, 0.02, 1, 4), LIMIT_S)
    live_through(trial)
    return Finding(kind, name, trial.status or "crashed", trial.reason)


def _try(zygote: Zygote, kind: str, name: str, cell: TrainingCell) -> Finding:
    request = probe_request(cell, 0.1, 1, 2 * cell.replicas)
    trial = single_task("doctor", zygote, request.model_copy(update={"task": "probe"}), LIMIT_S)
    return Finding(kind, name, trial.status or "crashed", None if trial.status == "ok" else trial.reason)


def _cluster(strategy: str, op: str = "auto", device: str = VIRTUAL_CPU, ps: int = 0) -> TrainingCell:
    """Two workers of one replica each; with servers an update is one worker's."""
    shape = {"workers": 2, "ps": ps, "global_batch_size": 1 if ps else 2}
    return probe_cell(device, strategy, 1, op).model_copy(update=shape)


def probe_request(cell: TrainingCell, window_s: float, within: int, between: int) -> Request:
    """A trial of a probe's cell, with so many threads within ops and between them."""
    threads = {"intra_op_threads": within, "inter_op_threads": between}
    return Request(cell=cell, seed=0, data_dir=str(Path()), window_s=window_s, **threads)


def probe_cell(device: str, strategy: str, replicas: int, op: str) -> TrainingCell:
    """The smallest cell of the kind: one example a replica, which it need not train on."""
    return TrainingCell(
        device=device,
        strategy=strategy,
        replicas=replicas,
        batch_size=1,
        batch_scope="per_replica",
        global_batch_size=replicas,
        cross_device_op=op,
        model="mlp",
        data="synthetic",
    )
