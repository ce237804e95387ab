"""What is kept of jobs that a fault was done to: a line of `faults.jsonl` each, and the plan in `run.json`."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from harness.record.bounds import SHORTEST_S, Duration, Natural, Positive, Utc
from harness.record.kind import Kind, Undertaking
from harness.record.model import RecordModel
from harness.spec.cell import TrainingCell
from harness.spec.faults import FaultName, Faults

FAULTS_NAME = "faults.jsonl"
UNDISTURBED = "none"
"""The fault of a job that nothing is done to: what checkpoints cost is measured on it."""

FaultStatus = Literal["undisturbed", "recovered", "lost_state", "wrong_weights", "hung", "failed", "unsupported"]
DetectedBy = Literal["tensorflow", "engine", "process_end", "stalled_steps", "heartbeat", "preemption_handler"]


class Detection(RecordModel):
    """Somebody notices that something is wrong."""

    by: DetectedBy
    """`tensorflow`, or another `engine`, where it raised in a process, or ended one that nothing was done to."""
    who: str
    """The process that said so, that ended, or that was silent."""
    after_s: Duration
    """Since the fault."""
    said: str | None = None
    """The engine's error, or how the process ended."""


class UpdateCounts(RecordModel):
    """Updates of a job, counted on its own state.

    `applied` is the optimizer's step counter. With parameter servers every update also adds one to its own
    element of a vector on a server before it touches a weight, and of another when it has written the last:
    `once` is how many elements are 1 in both, `repeated` counts what is above 1, `lost` is how many are 0, `torn` is
    how many differ between the two (begun, and not finished as often).
    """

    scheduled: Natural
    applied: Natural
    once: Natural | None = None
    repeated: Natural = 0
    lost: Natural = 0
    torn: Natural = 0


class WeightCheck(RecordModel):
    """Whether the final state is what so many updates give, and by which criterion that was judged."""

    criterion: Literal["undisturbed_run", "every_update_once"]
    right: bool
    share: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """Undisturbed run: the worst difference of a variable as a share of what the correctness gate allows."""
    identical: bool | None = None
    """Undisturbed run: bit for bit the same."""
    detail: str | None = None


class CheckpointCost(RecordModel):
    """Windows of one undisturbed job, alternately with a checkpoint at their end and without."""

    steps_per_window: Positive
    with_s: list[Duration]
    without_s: list[Duration]
    bytes: Natural
    """Size of one checkpoint on disk."""

    @model_validator(mode="after")
    def _windows_come_in_pairs(self) -> "CheckpointCost":
        if not self.with_s or len(self.with_s) != len(self.without_s):
            raise ValueError("expected as many windows with a checkpoint as without, and some")
        if min(self.with_s + self.without_s) < SHORTEST_S:
            raise ValueError("expected windows that took some time")
        return self


class Interruption(RecordModel):
    """The times between the fault and the first step that had not been done before; they add up to it."""

    detection_s: Duration
    """Fault to detection."""
    restart_s: Duration
    """Detection to training again: processes ended and started, cluster formed, model built, checkpoint read."""
    replay_s: Duration
    """From there to the first step that had not been done before: tracing, and steps done again."""


class FaultRecord(RecordModel):
    """A line of `faults.jsonl`: one job of `steps` steps and what became of it."""

    schema_version: Literal[1] = 1
    run_id: str
    scenario: str
    """Strategy, fault and interval of checkpoints, as the plan names them."""
    cell_id: str
    cell: TrainingCell
    fault: FaultName | Literal["none"]
    checkpoint_every: Natural
    """Steps between checkpoints; 0 is none."""
    repeat: Natural
    status: FaultStatus
    reason: str | None = None
    started_utc: Utc
    steps: Natural
    """Steps that the job is to do."""
    target: str | None = None
    """What the fault was done to."""
    fault_step: Natural | None = None
    """Steps that were done when the fault came."""
    detections: list[Detection] = []
    """In order of time."""
    useful_step_after_s: Duration | None = None
    """From the fault to the first step that had not been done before."""
    standstill_s: Duration | None = None
    """The longest time, from the fault on, without a step that had not been done before."""
    interruption: Interruption | None = None
    """Where that time went, when training had to start again; None when it went on by itself."""
    resumed_from: Natural | None = None
    """The step that training started again from."""
    steps_lost: Natural = 0
    """Steps that had been done and were done again."""
    restarted: list[str] = []
    """Processes that were started again, in order."""
    all_back_after_s: Duration | None = None
    """From the fault until every process that was started again was ready."""
    updates: UpdateCounts | None = None
    weights: WeightCheck | None = None
    step_time_s: Duration | None = None
    """Median time between steps before the fault."""
    checkpoint_s: list[Duration] = []
    """What each checkpoint kept training waiting."""
    cost: CheckpointCost | None = None
    job_s: Duration = 0.0
    """From the first process's start until the last one is gone."""
    evidence: str | None = None

    @model_validator(mode="after")
    def _the_cell_is_the_one_named(self) -> "FaultRecord":
        if self.cell_id != self.cell.cell_id:
            raise ValueError(f"cell_id {self.cell_id} is not the hash of the cell ({self.cell.cell_id})")
        return self

    @property
    def identity(self) -> tuple[str, str, int]:
        """What no other job of its run has: each is done once."""
        return self.scenario, self.cell_id, self.repeat

    @property
    def measured(self) -> bool:
        """Whether its fault was done to it, or it came to its end: what then became of it is what is asked."""
        return self.fault_step is not None or self.status not in ("unsupported", "failed", "hung")


class PlannedFault(RecordModel):
    """One job of the plan."""

    scenario: str
    cell_id: str
    fault: FaultName | Literal["none"]
    checkpoint_every: Natural
    repeat: Natural
    fault_step: Natural | None = None


class FaultsPlan(RecordModel, Undertaking):
    """What a `faults` run set out to do, fixed before the first job."""

    settings: Faults
    jobs: list[PlannedFault]

    @property
    def kind(self) -> Kind:
        """A run of `faults`, whose records are jobs in a file of their own."""
        return Kind("faults", "faults", "jobs", FAULTS_NAME)
