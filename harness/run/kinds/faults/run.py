"""A run of faults from its plan to its last record."""

import contextlib
import itertools
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness.protocol.messages import JobOrder, Request
from harness.record.fault_log import FaultLog, load_faults
from harness.record.faults import UNDISTURBED, FaultRecord, FaultsPlan, PlannedFault
from harness.record.store import RunStore
from harness.run.kinds.base import Arm, LiveRun
from harness.run.kinds.faults.crew import Crew
from harness.run.kinds.faults.history import History
from harness.run.kinds.faults.hosts import hosts_for
from harness.run.kinds.faults.judging import Case, NoReference, UndisturbedState, failed, fault_record, unsupported
from harness.run.kinds.faults.progress import FaultLines
from harness.run.kinds.faults.scenarios import inapplicable, plan_jobs, strike_of, wants_handler
from harness.run.kinds.faults.supervisor import Rules, Strike, Supervisor
from harness.run.launchers import CannotPlace
from harness.run.launchers.base import tasks_of
from harness.run.network import NetworkError, NotAvailable
from harness.run.process.zygote import Zygote
from harness.run.request import data_dir_of, request_for
from harness.run.runner import begin, new_manifest
from harness.spec.axes import ENGINE
from harness.spec.cell import TrainingCell, trained
from harness.spec.engines import engine_for
from harness.spec.faults import Faults
from harness.spec.work import Cell
from harness.trial.job_state import read_state

COST_PAIRS = 8
"""Pairs of windows, with a checkpoint and without, of an undisturbed job."""
REFERENCE_JOBS = 2
"""Undisturbed jobs that final weights are compared with: what they differ by is noise, and no fault."""


class FaultsRun(LiveRun[FaultLines]):
    """Runs what is missing of a plan, and appends a record as each job ends."""

    name = "faults"

    def __init__(self, store: RunStore, listener: FaultLines) -> None:
        super().__init__(store, listener)
        self._plan = store.manifest.part(FaultsPlan)
        self._cells = {cell.cell_id: cell for cell in store.manifest.cells}
        self._references: dict[str, UndisturbedState] = {}
        self._refused: dict[str, str] = {}
        self._numbers = itertools.count()
        self.records = load_faults(store.path)

    @property
    def left(self) -> list[PlannedFault]:
        """Planned jobs that have no record yet."""
        done = {(record.scenario, record.repeat) for record in self.records}
        return [job for job in self._plan.jobs if (job.scenario, job.repeat) not in done]

    @property
    def recorded(self) -> int:
        """Jobs."""
        return len(self.records)

    @contextlib.contextmanager
    def environments(self) -> Iterator[Mapping[str, Zygote]]:
        """The preloaded process, and the log that records are appended to."""
        with FaultLog(self.store.path) as self._log, super().environments() as zygotes:
            yield zygotes

    def arms(self) -> Sequence[Arm]:
        """A cell each."""
        sweep = self.store.manifest.sweep
        return [Arm.of(key, cell, sweep, self._zygote_of(cell)) for key, cell in self._cells.items()]

    def _zygote_of(self, cell: Cell) -> Zygote:
        return self.zygotes[engine_for(cell, self.store.manifest.sweep)]

    def announce(self) -> None:
        """How many jobs are left, and about how long they take."""
        left = self.left
        self.progress.started(self.store.manifest.run_id, len(left), estimate_s(self._plan.settings, left, self._cells))

    def execute(self) -> None:
        """One job after the other."""
        for job in self.left:
            record = self._record_of(job)
            if record.status in ("failed", "unsupported"):
                self.interrupts.check()  # taking away the hosts of a job that was to end may have raised over that
            self._keep(record)

    def _keep(self, record: FaultRecord) -> None:
        self._log.append(record)
        self.records.append(record)
        if record.status == "unsupported":
            self._refused[record.scenario] = record.reason or ""
        self.progress.ended(record)

    def _record_of(self, job: PlannedFault) -> FaultRecord:
        cell = trained(self._cells[job.cell_id])
        case = Case(self.store.manifest.run_id, job, cell, self._plan.settings.steps)
        refused = inapplicable(cell, job.fault) or self._refused.get(job.scenario)
        if refused is not None:
            return unsupported(case, refused)
        try:
            return self._tried(case)
        except (CannotPlace, NotAvailable) as error:
            return unsupported(case, str(error))
        except (NetworkError, NoReference) as error:  # a network that broke under the job is one job's trouble
            return failed(case, str(error))

    def _tried(self, case: Case) -> FaultRecord:
        job, zygote = case.job, self._zygote_of(case.cell)
        folder = self._folder(zygote)
        costs = job.fault == UNDISTURBED and job.checkpoint_every
        order = self._order(folder, job.checkpoint_every, wants_handler(job.fault), COST_PAIRS if costs else 0)
        request = self._request(case.cell, order)
        try:
            alone = len(tasks_of(case.cell)) == 1
            with hosts_for(request, zygote, alone, job.fault == "cut_link") as hosts:
                members = [seat.member for seat in hosts.seats]
                strike = strike_of(job, self._plan.settings, members, hosts.network)
                history = self._supervised(Crew.of(request, hosts.seats, zygote), strike, case.cell)
            targets = strike.targets if strike is not None else ()
            case = Case(case.run_id, job, case.cell, case.steps, targets)
            return fault_record(case, history, Path(order.state), lambda: self._reference(case.cell))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _supervised(self, crew: Crew, strike: Strike | None, cell: TrainingCell) -> History:
        settings = self._plan.settings
        rules = Rules(settings.stall, settings.timeout, "tensorflow" if cell.engine == ENGINE else "engine")
        return Supervisor(crew, rules, strike, self.interrupts).run()

    def _reference(self, cell: TrainingCell) -> UndisturbedState:
        """The final state of undisturbed jobs of this cell, done once; NoReference when one does not end well."""
        if cell.cell_id not in self._references:
            states, zygote = [], self._zygote_of(cell)
            for _ in range(REFERENCE_JOBS):
                folder = self._folder(zygote)
                order = self._order(folder, 0, False, 0)
                request = self._request(cell, order)
                with hosts_for(request, zygote, len(tasks_of(cell)) == 1, links=False) as hosts:
                    history = self._supervised(Crew.of(request, hosts.seats, zygote), None, cell)
                if history.end != "done":
                    raise NoReference(
                        f"{cell.label}: an undisturbed job to compare with is {history.end}: {history.reason}"
                    )
                states.append(read_state(Path(order.state)))
                shutil.rmtree(folder, ignore_errors=True)
            self._references[cell.cell_id] = UndisturbedState.of(states)
        return self._references[cell.cell_id]

    def _folder(self, zygote: Zygote) -> Path:
        folder = Path(zygote.scratch) / f"job-{next(self._numbers)}"
        folder.mkdir()
        return folder

    def _order(self, folder: Path, every: int, handler: bool, cost_windows: int) -> JobOrder:
        return JobOrder(
            steps=self._plan.settings.steps,
            checkpoint_every=every,
            folder=str(folder),
            state=str(folder / "state.npz"),
            preemption=handler,
            cost_windows=cost_windows,
        )

    def _request(self, cell: Cell, order: JobOrder) -> Request:
        sweep = self.store.manifest.sweep
        return request_for(cell, sweep, data_dir_of(sweep)).model_copy(update={"task": "job", "job": order})


def measure_faults(settings: Faults, results: Path, command: Sequence[str], lines: FaultLines) -> Path:
    """Measure a new run; its folder. Raises UsageError, StorageError, and Interrupted with how to go on."""
    planned = plan_jobs(settings)
    manifest = new_manifest(
        "faults", command, sweep=planned.sweep, cells=planned.cells, plans=[planned.plan], faults=planned.faults
    )
    return begin(FaultsRun, results, manifest, lines)


def estimate_s(settings: Faults, jobs: Sequence[PlannedFault], cells: Mapping[str, Cell]) -> float:
    """About how long the jobs take: a start each, a restart, and what must be waited for to be noticed."""
    seconds = 0.0
    for job in jobs:
        if inapplicable(trained(cells[job.cell_id]), job.fault):
            continue
        seconds += 4.0 + 0.03 * settings.steps
        if job.fault in ("freeze_worker", "freeze_ps", "cut_link"):
            seconds += min(settings.stall, settings.outage)
        if job.fault != UNDISTURBED:
            seconds += 3.0
    return seconds
