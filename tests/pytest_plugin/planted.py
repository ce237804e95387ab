"""Measurements that were never made: what the gate would have recorded of steps with a known truth.

A cell's truth goes by the name of its model: `steps:slow` is slower, `steps:wrong` computes the wrong thing,
and so on. Records are consistent, as the store and the comparison check them.
"""

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scipy import special

from harness.environment import facts
from harness.errors import Interrupted, UsageError
from harness.record.checks import Checks
from harness.record.manifest import ComparisonRecord, Machine, PlanRecord, RunManifest
from harness.record.reading import Run, load_run
from harness.record.store import RunStore, new_run_id
from harness.record.trial import RATE_KEYS, TrialRecord, Windows, rates
from harness.run.kinds.decision import AbSettings
from harness.run.kinds.sides import Side, side_records
from harness.spec.expand import Matrix
from harness.spec.sweep import Sweep
from harness.spec.work import Cell, OwnStepCell
from tests.record.examples import failed_trial, trial

BLOCKS = 6
STEP_S = 0.01
UNIT = (-1.0, -0.6, -0.2, 0.2, 0.6, 1.0)
"""Deviations of six blocks, before they are scaled to a standard deviation of 1."""


@dataclass(frozen=True)
class Truth:
    """How side b ends against side a: log ratio of throughputs and its deviation, or a status instead."""

    ratio: float = 0.0
    deviation: float = 0.004
    cpu: float = 0.0
    """Log ratio of examples per CPU second."""
    a: str = "ok"
    b: str = "ok"
    crashes: tuple[int, ...] = ()
    """Blocks in which side b crashes."""


def just_slower(p: float, deviation: float) -> Truth:
    """Slower by so little that the p-value by itself is `p` (δ 1 %)."""
    distance = -special.stdtrit(BLOCKS - 1, p / 2) * deviation / math.sqrt(BLOCKS)
    return Truth(ratio=-(math.log1p(0.01) + distance), deviation=deviation)


TRUTHS: dict[str, Truth] = {
    "steps:same": Truth(),
    "steps:slow": Truth(ratio=-0.15, cpu=-0.15),
    "steps:waiting": Truth(ratio=-0.15),
    "steps:fast": Truth(ratio=0.15, cpu=0.15),
    "steps:noisy": Truth(ratio=-0.02, deviation=0.05),
    "steps:just": just_slower(0.03, deviation=0.02),
    "steps:wrong": Truth(b="wrong_result"),
    "steps:was_wrong": Truth(a="wrong_result"),
    "steps:crashing": Truth(b="crashed"),
    "steps:flaky": Truth(crashes=(4,)),
    "steps:failing": Truth(crashes=(2, 5)),
    "steps:slightly": Truth(ratio=-0.06),
    "steps:unsupported": Truth(a="unsupported", b="unsupported"),
}


@dataclass
class Planted:
    """Stands in for `decide` and `measure_matrix`, and remembers what was asked of them."""

    decided: list[tuple[Side, Side]] = field(default_factory=list)
    settings: list[AbSettings] = field(default_factory=list)
    measured: list[tuple[Sweep, tuple[Cell, ...]]] = field(default_factory=list)
    later: bool = False
    """Whether the working tree has changed: runs of it alone are then like side b."""
    interrupted: bool = False
    machine: dict[str, Any] = field(default_factory=dict)
    """Facts of the machine that measures, laid over this one's."""

    def decide(
        self, sides: tuple[Side, Side], settings: AbSettings, results: Path, command: Sequence[str], progress: object
    ) -> Run:
        """Stands in for `harness.run.kinds.ab.decide`."""
        if self.interrupted:
            raise Interrupted("interrupted; 3 trials are kept; go on with: …")
        if sides[0].cell.subject == "steps:new":
            raise UsageError("model: 'steps:new': no 'new' in steps")
        if sides[0].cell.subject == "steps:treeless":
            raise UsageError("--rev-a: git cannot make a work tree in '/nowhere': no space left")
        self.decided.append(sides)
        self.settings.append(settings)
        truth = TRUTHS[sides[0].cell.subject]
        plan = PlanRecord.sealed(1, 1, [[["a", "b"]]] * BLOCKS)
        manifest = _manifest(
            sides[0].sweep,
            [sides[0].cell],
            plan,
            self._facts(),
            command=list(command),
            comparison=ComparisonRecord(
                sides=side_records(sides),
                delta=settings.margins.delta,
                epsilon=settings.margins.epsilon,
                margins_source=settings.margins.source,
                max_blocks=settings.max_blocks,
            ),
        )
        records = []
        for block, (wall, cpu) in enumerate(_differences(truth)):
            place = {"block": block, "group": f"b{block}", "run_id": manifest.run_id}
            records.append(_record(sides[0].cell, truth.a, STEP_S, 1.0, side="a", **place))
            status = "crashed" if block in truth.crashes else truth.b
            records.append(_record(sides[1].cell, status, STEP_S / wall, 1 / cpu, side="b", **place))
        return _kept(results, manifest, records)

    def measure_matrix(
        self, sweep: Sweep, matrix: Matrix, results: Path, command: Sequence[str], progress: object
    ) -> Path:
        """Stands in for `harness.run.kinds.measure.measure_matrix`."""
        broken = [cell for cell in matrix.cells if cell.subject == "steps:broken"]
        if broken:
            raise UsageError("model: 'steps:broken' cannot be built: ValueError: no")
        self.measured.append((sweep, matrix.cells))
        blocks = [[[cell.cell_id] for cell in matrix.cells]] * sweep.trials
        plan = PlanRecord.sealed(1, 1, blocks)
        manifest = _manifest(sweep, list(matrix.cells), plan, self._facts(), command=list(command))
        records = []
        for number in range(sweep.trials):
            for cell in matrix.cells:
                truth = TRUTHS.get(cell.subject, Truth())
                wall, cpu = _differences(truth)[number % BLOCKS]
                own = math.exp(truth.deviation * UNIT[(3 * number) % BLOCKS])
                step, work = (STEP_S / wall, 1 / cpu) if self.later else (STEP_S * own, own)
                place = {"block": number, "group": f"b{number}-{cell.cell_id}", "run_id": manifest.run_id}
                records.append(_record(cell, truth.b, step, work, **place))
        return _kept(results, manifest, records).path

    def _facts(self) -> dict[str, Any]:
        return {**facts(), **self.machine}


def _differences(truth: Truth) -> list[tuple[float, float]]:
    """(ratio of throughputs, ratio of examples per CPU second) of each block; the mean and deviation are exact."""
    scale = math.sqrt(sum(unit**2 for unit in UNIT) / (BLOCKS - 1))
    noise = [truth.deviation * unit / scale for unit in UNIT]
    return [(math.exp(truth.ratio + own), math.exp(truth.cpu + own)) for own in noise]


def _manifest(sweep: Sweep, cells: list[Cell], plan: PlanRecord, found: dict[str, Any], **more: Any) -> RunManifest:
    now = datetime.datetime.now(datetime.UTC).isoformat()
    return RunManifest(
        run_id=new_run_id(sweep.name),
        created_utc=now,
        finished_utc=now,
        status="finished",
        harness_version="0.1.0",
        sweep=sweep,
        cells=cells,
        plans=[plan],
        machine=Machine(facts=found),
        **more,
    )


NO_RATES = dict.fromkeys(key for keys in RATE_KEYS.values() for key in keys)


def _record(cell: Cell, status: str, step_s: float, work: float, **place: Any) -> TrialRecord:
    changes = {"cell": cell, "cell_id": cell.cell_id, **place}
    if status != "ok":
        words = {"wrong_result": "the sum misses replica 2", "unsupported": "there is no such device"}
        return failed_trial(**changes, status=status, reason=words.get(status, "ended by SIGSEGV"))
    proof = {"checks": Checks(gate="own_step", loss_finite=True)} if isinstance(cell, OwnStepCell) else {}
    windows = Windows(
        steps_per_window=10,
        seconds=[10 * step_s] * 12,
        cpu_seconds=[20 * step_s] * 12,
        rounds=list(range(12)),
        measured_from=2,
        steady=True,
        sync_seconds=0.0004,
    )
    return trial(
        **changes,
        **proof,
        windows=windows,
        step_time_s=step_s,
        **{**NO_RATES, **rates(cell, step_s, 1e-4 * work * cell.work.amount)},
    )


def _kept(results: Path, manifest: RunManifest, records: Sequence[TrialRecord]) -> Run:
    with RunStore.create(results, manifest) as store:
        for record in records:
            store.append(record)
    return load_run(store.path)
