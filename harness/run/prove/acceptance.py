"""The whole acceptance run: devices, cells, then what is asked of living trials; each answer is told as it comes."""

import datetime
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from harness.environment import Description
from harness.record.manifest import Machine
from harness.record.proof import Proof, ProofRecord, ProofResult, Subject
from harness.record.reading import Run, load_run
from harness.run.doctor import Finding, examine_hosts, try_devices
from harness.run.launchers import launchers
from harness.run.process.startup import Startup
from harness.run.process.zygote import Zygote
from harness.run.progress import Progress
from harness.run.prove import cells, questions
from harness.run.prove.launched import launched
from harness.spec.axes import NO_STRATEGY, USUAL_STRATEGY
from harness.spec.catalogue import Catalogue
from harness.spec.expand import Matrix
from harness.spec.work import Cell
from harness.trial.engines import catalogue_of
from harness.version import __version__

LIMIT_S = 180.0
"""A phase of a trial that is asked something."""
CLUSTERS_OWN = "local"
TF32 = "NVIDIA_TF32_OVERRIDE"
BUSY_BATCH = 4096
"""Examples a replica, of an accelerator's steps that are timed."""


def prove(
    machine: Description, results: Path, progress: Progress, tell: Callable[[Proof], None], only: str = ".*"
) -> ProofRecord:
    """Ask everything of this machine; `tell` hears each answer. The cells' run is kept below `results`.

    `only` leaves cells whose label is such. Raises what `harness.run.kinds.measure.measure` does.
    """
    catalogue, begun, start = catalogue_of(), datetime.datetime.now(datetime.UTC), time.monotonic()
    proofs: list[Proof] = []
    for proof in _devices(catalogue):
        proofs.append(proof)
        tell(proof)
    working = [proof.name for proof in proofs if proof.subject == "device" and proof.verdict == "passed"]
    matrix = cells.acceptance(catalogue, working, only=only)
    run = load_run(cells.measure(matrix, working, results, progress))
    for proof in _asked(run, matrix, working, catalogue):
        proofs.append(proof)
        tell(proof)
    return ProofRecord(
        machine_id=str(machine.facts["machine.id"]),
        created_utc=begun.isoformat(timespec="seconds"),
        harness_version=__version__,
        seconds=time.monotonic() - start,
        run_id=run.manifest.run_id,
        proofs=proofs,
        machine=Machine(facts=dict(machine.facts), warnings=list(machine.warnings)),
    )


def _devices(catalogue: Catalogue) -> Iterator[Proof]:
    """Devices that answer, networks that are there, and launchers that are not."""
    for finding in try_devices(catalogue):
        yield _of_finding("device", finding)
    for finding in examine_hosts():
        if finding.kind != "launcher":
            yield _of_finding("host", finding)
        elif finding.reason is not None:
            yield _of_finding("launcher", finding)


def _of_finding(subject: Subject, finding: Finding) -> Proof:
    verdict: ProofResult = "passed" if finding.reason is None else "unknown"
    return Proof(subject=subject, name=finding.name, verdict=verdict, words=finding.reason or "")


def _asked(run: Run, matrix: Matrix, working: Sequence[str], catalogue: Catalogue) -> Iterator[Proof]:
    """What the run says of its cells, then what living trials say of each kind of device, then launchers."""
    yield from cells.proofs_of(run, catalogue)
    yield from cells.out_of_memory(run, catalogue)
    own = {name for name, traits in catalogue.devices.items() if not traits.on_processors}
    yield from map(questions.copies, (one for one in run.trials if one.trace and one.cell.shape.device in own))
    for device in [kind for kind in working if cells.has_its_own(catalogue.devices[kind])]:
        alone, mirrored = (_one(matrix.cells, device, *of) for of in ((NO_STRATEGY, 1), (USUAL_STRATEGY, 2)))
        with Zygote(Startup(preloads=not catalogue.devices[device].taken_by_import)) as zygote:
            yield from _of_living(zygote, *(_busy(cell, catalogue) for cell in (alone, mirrored)))
            yield questions.drivers(zygote, device)
        if device == "gpu" and alone is not None:
            yield _of_arithmetic(alone)
    usable = [name for name, launcher in launchers().items() if launcher.available() is None]
    for name in usable:
        if name != CLUSTERS_OWN:  # clusters of it are among the cells
            yield launched(name, cells.cluster(catalogue), LIMIT_S)


def _of_living(zygote: Zygote, alone: Cell | None, mirrored: Cell | None) -> Iterator[Proof]:
    """Clock, memory and libraries of a cell without a strategy, and libraries of a mirrored one."""
    sweep = cells.settings(())
    if alone is not None:
        first = questions.ask(zygote, alone, sweep, LIMIT_S, paired=True)
        yield questions.clock(first)
        yield questions.memory(first, questions.ask(zygote, alone, sweep, LIMIT_S, paired=False))
        yield questions.nccl(first)
    if mirrored is not None:
        both = questions.ask(zygote, mirrored, sweep, LIMIT_S, paired=True)
        yield questions.clock(both)
        yield questions.nccl(both)


def _busy(cell: Cell | None, catalogue: Catalogue) -> Cell | None:
    """The same cell with steps that keep an accelerator busy for longer than the host needs to ask for them: only
    then would a clock that stops too early be seen."""
    if cell is None or catalogue.devices[cell.shape.device].on_processors:
        return cell
    return cells.like(cell, catalogue, BUSY_BATCH)


def _of_arithmetic(cell: Cell) -> Proof:
    """The same trial without and with TensorFloat-32, which NVIDIA's own variable turns off."""
    found = []
    for value in ("0", "1"):
        with Zygote(Startup(environment={TF32: value})) as zygote:
            found.append(questions.ask(zygote, cell, cells.settings(()), LIMIT_S, paired=False))
    return questions.arithmetic(*found)


def _one(of: Sequence[Cell], device: str, strategy: str, replicas: int) -> Cell | None:
    """The plainest cell of the kind: the first in canonical order."""
    fitting = (c for c in of if (c.shape.device, c.get("strategy"), c.shape.replicas) == (device, strategy, replicas))
    return next((c for c in fitting if c.get("precision") == "float32" and c.get("cross_device_op") == "auto"), None)
