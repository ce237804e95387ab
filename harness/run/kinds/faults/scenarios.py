"""The plan: which faults make sense for which strategy, what each is done to, and when."""

import random
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.protocol.messages import Membership
from harness.record.faults import UNDISTURBED, FaultsPlan, PlannedFault
from harness.record.manifest import PlanRecord
from harness.run.kinds.faults.crew import Crew, Hand
from harness.run.kinds.faults.supervisor import Strike
from harness.run.launchers.base import tasks_of
from harness.run.network import EmulatedNetwork
from harness.run.request import asked_matrix
from harness.spec.axes import ENGINE, TABLE
from harness.spec.cell import TrainingCell, trained
from harness.spec.faults import FAULTS_OF_SERVERS, Faults, strategies_of
from harness.spec.sweep import Sweep, sweep_from
from harness.trial.engines import catalogue_of


@dataclass(frozen=True)
class JobPlan:
    """What is planned, as the run's manifest keeps it: the settings as a sweep has them, cells, jobs, sealed blocks."""

    sweep: Sweep
    cells: list[TrainingCell]
    faults: FaultsPlan
    plan: PlanRecord


def plan_jobs(settings: Faults) -> JobPlan:
    """Every job of every repeat: a block a repeat, in an order drawn from the seed. UsageError on an unknown name."""
    engines = {engine: catalogue_of(engine).strategies for engine in settings.engine}
    chosen = strategies_of(settings, engines)
    named = list(dict.fromkeys(name for names in chosen.values() for name in names))
    settings = settings.model_copy(update={"strategy": named, "engine": [*chosen]})
    cells = [_cell(settings, engine, strategy) for engine, names in chosen.items() for strategy in names]
    jobs: list[PlannedFault] = []
    blocks = []
    for repeat in range(settings.repeats):
        block = [job for cell in cells for job in _jobs_of(settings, cell, repeat)]
        random.Random(f"{settings.seed}/{repeat}").shuffle(block)
        jobs += block
        blocks.append([[job.scenario] for job in block])
    sweep = _sweep(settings, {})
    return JobPlan(sweep, cells, FaultsPlan(settings=settings, jobs=jobs), PlanRecord.sealed(settings.seed, 1, blocks))


def _jobs_of(settings: Faults, cell: TrainingCell, repeat: int) -> list[PlannedFault]:
    """Undisturbed jobs, one for each interval of checkpoints, then every fault with each of them."""
    intervals = [every for every in settings.checkpoint_every if every] or [0]
    jobs = [_job(cell, UNDISTURBED, every, repeat, None) for every in intervals]
    for fault in settings.fault:
        # the same step whatever the interval: what differs between intervals is not where the fault fell
        drawn = random.Random(f"{settings.seed}/{cell.cell_id}/{fault}/{repeat}")
        step = drawn.randint(max(1, settings.steps // 3), max(1, 2 * settings.steps // 3))
        jobs += [_job(cell, fault, every, repeat, step) for every in settings.checkpoint_every]
    return jobs


def _job(cell: TrainingCell, fault: str, every: int, repeat: int, step: int | None) -> PlannedFault:
    return PlannedFault.model_validate(
        {
            "scenario": "/".join([*([cell.engine] if cell.engine != ENGINE else []), cell.strategy, fault, str(every)]),
            "cell_id": cell.cell_id,
            "fault": fault,
            "checkpoint_every": every,
            "repeat": repeat,
            "fault_step": step,
        }
    )


def _cell(settings: Faults, engine: str, strategy: str) -> TrainingCell:
    """As many workers everywhere: processes, or replicas of a strategy that has one process and takes several."""
    traits = catalogue_of(engine).strategies[strategy]
    alone, most = not traits.multi_worker, traits.max_replicas or settings.workers
    axes: dict[str, list[Any]] = {
        "engine": [engine],
        "strategy": [strategy],
        "replicas": [min(settings.workers, most) if alone else 1],
        "workers": [1 if alone else settings.workers],
        "ps": [settings.ps] if traits.parameter_servers else list(TABLE["ps"].asked),
    }
    matrix = asked_matrix(_sweep(settings, axes))
    asked = (trained(cell) for cell in matrix.cells if cell.cell_id not in matrix.added_base)
    return next(cell for cell in asked if cell.strategy == strategy)


def _sweep(settings: Faults, axes: dict[str, list[Any]]) -> Sweep:
    """The settings as a sweep has them, with `axes` in place of what they say of these."""
    same = {key: getattr(settings, key) for key in Faults.model_fields if key in Sweep.model_fields}
    if "data" not in settings.model_fields_set:  # they are then the model's own
        del same["data"]
    return sweep_from({"name": "faults", "trials": settings.repeats, **same, **axes})


def inapplicable(cell: TrainingCell, fault: str) -> str | None:
    """Why a fault makes no sense for a strategy, or None."""
    if fault in FAULTS_OF_SERVERS and not cell.asynchronous:
        return f"{cell.strategy} has no parameter servers"
    if fault == "cut_link" and len(tasks_of(cell)) == 1:
        return f"{cell.strategy} is one process: it has no link to others"
    return None


def strike_of(
    job: PlannedFault, settings: Faults, members: Sequence[Membership], network: EmulatedNetwork | None
) -> Strike | None:
    """What is done to the job; None for one that is left in peace. One worker, or server, is hit."""
    if job.fault == UNDISTURBED or job.fault_step is None:
        return None
    every = tuple(member.name for member in members) or ("the process",)
    kind = "ps" if job.fault in FAULTS_OF_SERVERS else "worker"
    named = [member.name for member in members if member.task == kind]
    target = (named or every)[0 if settings.target == "first" else -1]
    match job.fault:
        case "restart":
            return Strike(job.fault_step, _each(every, signal.SIGKILL), targets=every)
        case "sigterm":
            return Strike(job.fault_step, _each([target], signal.SIGTERM), targets=(target,))
        case "kill_worker" | "kill_ps":
            return Strike(job.fault_step, _each([target], signal.SIGKILL), targets=(target,))
        case "freeze_worker" | "freeze_ps":
            stop, go_on = _each([target], signal.SIGSTOP), _each([target], signal.SIGCONT)
            return Strike(job.fault_step, stop, go_on, settings.outage, (target,))
        case _:
            assert network is not None
            host = every.index(target)
            return Strike(
                job.fault_step, lambda _: network.cut(host), lambda _: network.restore(host), settings.outage, (target,)
            )


def _each(names: Sequence[str], number: int) -> Callable[[Crew], None]:
    """Sends a signal to the processes of these names that are there."""

    def send(crew: Crew) -> None:
        hit: list[Hand] = [hand for hand in crew.hands if hand.name in names and hand.child is not None]
        for hand in hit:
            crew.signal(hand, number)

    return send


def wants_handler(fault: str) -> bool:
    """Whether the job is told to listen for SIGTERM."""
    return fault == "sigterm"
