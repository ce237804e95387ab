"""A run of faults from its plan to its last record."""

import itertools
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from harness.engines.tensorflow.recovery.state import read_state
from harness.errors import HarnessError, Interrupted, UsageError
from harness.protocol.messages import JobOrder, Request
from harness.record.fault_log import FaultLog, load_faults
from harness.record.faults import UNDISTURBED, FaultRecord, FaultsPlan, PlannedFault
from harness.record.store import RunStore
from harness.run.interrupts import Interrupts
from harness.run.kinds.faults.crew import Crew
from harness.run.kinds.faults.history import History
from harness.run.kinds.faults.hosts import hosts_for
from harness.run.kinds.faults.judging import Case, NoReference, Reference, failed, judge, unsupported
from harness.run.kinds.faults.progress import FaultLines
from harness.run.kinds.faults.scenarios import inapplicable, plan_jobs, strike_of, wants_handler
from harness.run.kinds.faults.supervisor import Rules, Strike, Supervisor
from harness.run.kinds.measure import PREFLIGHT_S, data_dir_of, new_manifest
from harness.run.kinds.sweep import PREPARE_LIMIT_S
from harness.run.launchers import CannotPlace
from harness.run.launchers.base import tasks_of
from harness.run.network import NetworkError, NotAvailable
from harness.run.process.preflight import preflight
from harness.run.process.zygote import Zygote
from harness.run.request import request_for
from harness.run.turns.live import LiveTrial, Place
from harness.spec.cell import Cell
from harness.spec.faults import OF_SERVERS, ONE_PROCESS, Faults

COST_PAIRS = 8
"""Pairs of windows, with a checkpoint and without, of an undisturbed job."""
REFERENCE_JOBS = 2
"""Undisturbed jobs that final weights are compared with: what they differ by is noise, and no fault."""


class FaultsRun:
    """Runs what is missing of a plan, and appends a record as each job ends."""

    def __init__(self, store: RunStore, log: FaultLog, zygote: Zygote, lines: FaultLines) -> None:
        assert store.manifest.faults is not None
        self._store = store
        self._log = log
        self._zygote = zygote
        self._lines = lines
        self._plan: FaultsPlan = store.manifest.faults
        self._cells = {cell.cell_id: cell for cell in store.manifest.cells}
        self._interrupts = Interrupts()
        self._references: dict[str, Reference] = {}
        self._refused: dict[str, str] = {}
        self._numbers = itertools.count()
        self.records = load_faults(store.path)

    @property
    def left(self) -> list[PlannedFault]:
        """Planned jobs that have no record yet."""
        done = {(record.scenario, record.repeat) for record in self.records}
        return [job for job in self._plan.jobs if (job.scenario, job.repeat) not in done]

    def run(self) -> None:
        """Run to the end; raises Interrupted when the person asked to stop, with everything kept."""
        left = self.left
        self._lines.started(self._store.manifest.run_id, len(left), estimate_s(self._plan.settings, left))
        try:
            with self._interrupts:
                self._prepare()
                for job in left:
                    self._keep(self._record_of(job))
        except (Interrupted, KeyboardInterrupt):
            self._store.end("interrupted")
            go_on = f"go on with: python -m harness faults --resume {shlex.quote(str(self._store.path))}"
            raise Interrupted(
                f"interrupted; {len(self.records)} jobs are kept in {self._store.path}; {go_on}"
            ) from None
        self._store.end("finished")

    def _keep(self, record: FaultRecord) -> None:
        self._log.append(record)
        self.records.append(record)
        if record.status == "unsupported":
            self._refused[record.scenario] = record.reason or ""
        self._lines.ended(record)

    def _record_of(self, job: PlannedFault) -> FaultRecord:
        cell = self._cells[job.cell_id]
        case = Case(self._store.manifest.run_id, job, cell, self._plan.settings.steps)
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
        job, folder = case.job, self._folder()
        costs = job.fault == UNDISTURBED and job.checkpoint_every
        order = self._order(folder, job.checkpoint_every, wants_handler(job.fault), COST_PAIRS if costs else 0)
        request = self._request(case.cell, order)
        try:
            alone = len(tasks_of(case.cell)) == 1
            with hosts_for(request, self._zygote, alone, job.fault == "cut_link") as hosts:
                members = [seat.member for seat in hosts.seats]
                strike = strike_of(job, self._plan.settings, members, hosts.network)
                history = self._supervised(Crew.of(request, hosts.seats, self._zygote), strike)
            targets = strike.targets if strike is not None else ()
            case = Case(case.run_id, job, case.cell, case.steps, targets)
            return judge(case, history, Path(order.state), lambda: self._reference(case.cell))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _supervised(self, crew: Crew, strike: Strike | None) -> History:
        rules = Rules(self._plan.settings.stall, self._plan.settings.timeout)
        return Supervisor(crew, rules, strike, self._interrupts).run()

    def _reference(self, cell: Cell) -> Reference:
        """The final state of undisturbed jobs of this cell, done once; NoReference when one does not end well."""
        if cell.cell_id not in self._references:
            states = []
            for _ in range(REFERENCE_JOBS):
                folder = self._folder()
                order = self._order(folder, 0, False, 0)
                request = self._request(cell, order)
                with hosts_for(request, self._zygote, len(tasks_of(cell)) == 1, links=False) as hosts:
                    history = self._supervised(Crew.of(request, hosts.seats, self._zygote), None)
                if history.end != "done":
                    raise NoReference(
                        f"{cell.label}: an undisturbed job to compare with is {history.end}: {history.reason}"
                    )
                states.append(read_state(Path(order.state)))
                shutil.rmtree(folder, ignore_errors=True)
            self._references[cell.cell_id] = Reference.of(states)
        return self._references[cell.cell_id]

    def _folder(self) -> Path:
        folder = Path(self._zygote.scratch) / f"job-{next(self._numbers)}"
        folder.mkdir()
        return folder

    def _order(self, folder: Path, every: int, handler: bool, cost_windows: int) -> JobOrder:
        return JobOrder(
            steps=self._plan.settings.steps, checkpoint_every=every, folder=str(folder),
            state=str(folder / "state.npz"), preemption=handler, cost_windows=cost_windows,
        )  # fmt: skip

    def _request(self, cell: Cell, order: JobOrder) -> Request:
        sweep = self._store.manifest.sweep
        return request_for(cell, sweep, data_dir_of(sweep)).model_copy(update={"task": "job", "job": order})

    def _prepare(self) -> None:
        """Make the data ready; HarnessError with the reason where that fails."""
        cell, sweep = next(iter(self._cells.values())), self._store.manifest.sweep
        request = request_for(cell, sweep, data_dir_of(sweep)).model_copy(update={"task": "prepare"})
        place = Place(self._store.manifest.run_id, 0, "prepare", 0, 1, "none")
        trial = LiveTrial(cell, place, self._zygote, request, PREPARE_LIMIT_S, self._interrupts)
        trial.start()
        trial.finish_task()
        if trial.status == "interrupted":
            raise Interrupted("interrupted")
        if trial.status != "ok":
            raise HarnessError(f"data: '{cell.data}' is not available: {trial.reason}")


def measure_faults(settings: Faults, results: Path, command: Sequence[str], lines: FaultLines) -> Path:
    """Measure a new run; its folder. Raises UsageError, StorageError, and Interrupted with how to go on."""
    planned = plan_jobs(settings)
    manifest = new_manifest(
        "faults", command, sweep=planned.sweep, cells=planned.cells, plans=[planned.plan], faults=planned.faults
    )
    requests = [request_for(cell, planned.sweep, data_dir_of(planned.sweep)) for cell in planned.cells]
    with Zygote() as zygote:
        preflight(zygote, requests, min(PREFLIGHT_S, settings.timeout))
        with RunStore.create(results, manifest) as store, FaultLog(store.path) as log:
            try:
                FaultsRun(store, log, zygote, lines).run()
            except Interrupted:
                raise
            except HarnessError:
                if not load_faults(store.path):
                    store.discard()
                raise
    return store.path


def resume_faults(path: Path, lines: FaultLines) -> None:
    """Run what a run of faults still misses; UsageError when the run is none."""
    with RunStore.open_for_resume(path) as store:
        if store.manifest.faults is None:
            raise UsageError(f"--resume: '{path.name}' is no run of faults")
        if store.manifest.status == "finished":
            return
        with Zygote() as zygote, FaultLog(path) as log:
            FaultsRun(store, log, zygote, lines).run()


def estimate_s(settings: Faults, jobs: Sequence[PlannedFault]) -> float:
    """About how long the jobs take: a start each, a restart, and what must be waited for to be noticed."""
    seconds = 0.0
    for job in jobs:
        strategy = job.scenario.partition("/")[0]
        if job.fault in OF_SERVERS and strategy != "parameter_server":
            continue
        if job.fault == "cut_link" and strategy in ONE_PROCESS:
            continue
        seconds += 4.0 + 0.03 * settings.steps
        if job.fault in ("freeze_worker", "freeze_ps", "cut_link"):
            seconds += min(settings.stall, settings.outage)
        if job.fault != UNDISTURBED:
            seconds += 3.0
    return seconds
