"""The cells of an acceptance run: every strategy, op, precision, compilation, loop and cluster, each once or twice."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.record.proof import Proof, ProofResult, Subject
from harness.record.reading import Run
from harness.record.trial import TrialRecord
from harness.run.kinds.measure import measure_matrix
from harness.run.progress import Progress
from harness.spec.axes import NO_STRATEGY, USUAL_STRATEGY
from harness.spec.catalogue import VIRTUAL_CPU, Catalogue, DeviceTraits
from harness.spec.expand import Matrix, expand
from harness.spec.sweep import Sweep, sweep_from
from harness.spec.work import Cell

REPLICAS = (1, 2)
VERDICTS: dict[str, ProofResult] = {"ok": "passed", "unproved": "unknown", "unsupported": "unknown"}
"""Of a cell, by how its last trial ended; any other end failed."""
SMALL = {
    "model": "mnist_cnn",
    "data": "synthetic",
    "batch_size": 8,
    "trials": 1,
    "windows": 5,
    "max_warmup": 0,
    "window": 0.02,
}
"""A trial costs its set-up and its proofs; its figures are nobody's."""
VARIANTS: tuple[dict[str, Any], ...] = (
    {"precision": ["mixed_bfloat16", "mixed_float16"]},
    {"xla": True},
)
"""What is tried besides, and every other loop, under no strategy and the usual one, or that of the device."""


def acceptance(catalogue: Catalogue, devices: Sequence[str], only: str = ".*") -> Matrix:
    """Every cell that a machine with these device kinds should run, and what was left out, with the reason.

    `only` leaves those whose label is such.
    """
    parts = [expand(spec, catalogue) for device in devices for spec in _specs(catalogue, device)]
    cells = {cell.cell_id: cell for part in parts for cell in part.cells if re.fullmatch(only, cell.label)}
    left_out = dict.fromkeys(item for part in parts for item in part.left_out)
    return Matrix(tuple(cells.values()), left_out=tuple(left_out))


def has_its_own(device: DeviceTraits) -> bool:
    """Whether one replica has a cell of the kind's own; logical GPUs are one real GPU, which has that cell already."""
    return device.on_processors or not device.virtual


def _specs(catalogue: Catalogue, device: str) -> Iterator[Sweep]:
    """The parts of the matrix on one kind of device."""
    own = has_its_own(catalogue.devices[device])
    fitting = {
        name: traits
        for name, traits in catalogue.strategies.items()
        if (traits.devices is None or device in traits.devices)
        and (name not in catalogue.devices or name == device)
        and (own or traits.max_replicas != 1)
    }
    ops, counts = list(catalogue.cross_device_ops), list(REPLICAS if own else REPLICAS[1:])
    for name, traits in fitting.items():
        shape = {"workers": 2, "ps": 1} if traits.parameter_servers else {"workers": 2} if traits.multi_worker else {}
        replicas = [1] if traits.multi_worker else counts
        with_ops = {"cross_device_op": ops} if traits.takes_cross_device_op else {}
        yield sweep_from({**SMALL, "device": device, "strategy": name, "replicas": replicas, **shape, **with_ops})
    varied = [name for name in (NO_STRATEGY, USUAL_STRATEGY, device) if name in fitting]
    usual = sweep_from(SMALL).asked("loop")
    for variant in (*VARIANTS, *({"loop": loop} for loop in catalogue.loops if loop not in usual)):
        yield sweep_from({**SMALL, "device": device, "strategy": varied, "replicas": counts, **variant})
    if device == "gpu" and catalogue.oversized:
        yield sweep_from({**SMALL, "device": device, "strategy": NO_STRATEGY, "model": catalogue.oversized})


def like(cell: Cell, catalogue: Catalogue, batch_size: int) -> Cell:
    """The plain cell of the same device, strategy and replicas, with so many examples a replica."""
    shape = {"device": cell.shape.device, "strategy": cell.get("strategy"), "replicas": [cell.shape.replicas]}
    asked = expand(sweep_from({**SMALL, **shape, "batch_size": batch_size}), catalogue).cells
    return next(one for one in asked if one.get("strategy") == cell.get("strategy"))


def cluster(catalogue: Catalogue) -> Cell:
    """Two workers on processors, for launchers to start."""
    in_step = (name for name, of in catalogue.strategies.items() if of.multi_worker and not of.parameter_servers)
    spec = {**SMALL, "device": VIRTUAL_CPU, "strategy": next(in_step), "workers": 2, "replicas": [1]}
    [cell] = (cell for cell in expand(sweep_from(spec), catalogue).cells if cell.shape.workers == 2)
    return cell


def settings(devices: Sequence[str]) -> Sweep:
    """What the trials of the run have in common. Steps are traced where there may be copies from a device."""
    return sweep_from({**SMALL, "name": "prove", "trace": any(kind.endswith("gpu") for kind in devices)})


def measure(matrix: Matrix, devices: Sequence[str], results: Path, progress: Progress) -> Path:
    """Measure the cells as a sweep does; the run's folder."""
    return measure_matrix(settings(devices), matrix, results, ["harness", "doctor", "--prove"], progress)


def proofs_of(run: Run, catalogue: Catalogue) -> Iterator[Proof]:
    """What each cell came to, by its last trial."""
    last = {trial.cell_id: trial for trial in run.trials}
    for cell in run.manifest.cells:
        if cell.cell_id in last and cell.subject != catalogue.oversized:
            yield proof_of("cell", cell.label, last[cell.cell_id])


def proof_of(subject: Subject, name: str, trial: TrialRecord) -> Proof:
    """Right, or why not; what was not proved or cannot run here is not told."""
    verdict, device = VERDICTS.get(trial.status, "failed"), trial.cell.shape.device
    return Proof(subject=subject, name=name, device=device, verdict=verdict, words=evidence(trial))


def evidence(trial: TrialRecord) -> str:
    """How near its limit a right update came and what reduced it; of any other end the reason."""
    if trial.status != "ok":
        return f"{trial.status}: {trial.reason}"
    error = trial.checks.update_error
    reduced = ", ".join(f"{count} {name}" for name, count in trial.executed.operations.items())
    said = "" if error is None else f"error of an update {error:.2g} of its limit"
    return "; ".join(filter(None, (said, reduced and f"a step has {reduced}")))


def out_of_memory(run: Run, catalogue: Catalogue) -> Iterator[Proof]:
    """Whether a model without room ends as that, and gets its second try alone where it had company."""
    tried = [trial for trial in run.trials if trial.cell.subject == catalogue.oversized]
    for last in tried[-1:]:
        verdict: ProofResult = "passed" if last.status == "out_of_memory" else "failed"
        words = f"{len(tried)} of at most 2 tries, the last one ended as {last.status}: {last.reason}"
        if verdict == "passed" and len(tried) == 1 and last.interleaving == "turns":
            verdict, words = "unknown", f"{words}; nothing else was alive, so that it had no second try"
        device = last.cell.shape.device
        yield Proof(subject="out_of_memory", name="a model of 840 GB", device=device, verdict=verdict, words=words)
