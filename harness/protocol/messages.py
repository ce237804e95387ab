"""What the parent and a trial say to each other, each a line of JSON (`harness.protocol.channel`), nothing pickled.

The parent sends a `Request` to the zygote with the trial's end of the socket pair, then `Turn`s;
the trial sends `Report`s.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from harness.record.checks import Checks
from harness.record.cluster import AsynchronousUpdates, ClusterRecord
from harness.record.faults import CheckpointCost, UpdateCounts
from harness.record.limits import ProcessLimit
from harness.record.trial import MEASURED, Executed, PhaseName, Plant, Resources, TraceRecord
from harness.spec.axes import ENGINE
from harness.spec.cell import TrainingCell, trained
from harness.spec.work import Cell

PROOF_PHASES = 12
"""In as many blocks the update that is proved after the last window is each of as many in a row, so that a fault that
comes in every second, third, fourth or sixth one does not fall beside it in as many blocks."""


class Message(BaseModel):
    """One message; what checks a kind of them is built when the first is made, as of a record's parts."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class SlurmShape(Message):
    """What TensorFlow's SlurmClusterResolver must be told to come to the cluster that the launcher placed.

    TensorFlow's alone: other engines read the addresses in `Membership.cluster`.
    """

    jobs: dict[str, int]
    """Processes, by task."""
    port_base: int
    tasks_per_node: dict[str, int]
    rank: int
    """This process's, in the resolver's order: tasks by name, nodes by name."""


class LauncherOptions(Message):
    """What a launcher is told beyond the trial: keys of the sweep of the same names."""

    hosts: Annotated[int, Field(ge=0)] = 0
    listen: str = ""
    join_timeout_s: float = 60.0
    slurm_args: str = ""
    engine_python: str = ""
    """Interpreters of engines, as hosts of the launcher's are told."""


class Membership(Message):
    """A process's place in the cluster of a trial of several processes."""

    task: Literal["chief", "worker", "ps"]
    index: Annotated[int, Field(ge=0)]
    cluster: dict[str, list[str]]
    """`host:port` of every process, by task."""
    first_device: int = 0
    """The first of the machine's accelerators that is this process's, where several share a machine."""
    namespace: str = ""
    """A network namespace to enter first; empty stays where it is."""
    user_namespace: str = ""
    """The user namespace that owns it, where that is not the machine's own."""

    slurm: SlurmShape | None = None
    """Set where Slurm placed the processes: TensorFlow is then to learn of them from it."""

    @property
    def serves(self) -> bool:
        """Whether it only carries out what a coordinator sends it."""
        return "chief" in self.cluster and self.task != "chief"

    @property
    def leads(self) -> bool:
        """Whether it is the one whose proof and program are recorded."""
        return not self.serves and self.index == 0

    @property
    def name(self) -> str:
        """`worker 1`; a chief is a `coordinator`."""
        return "coordinator" if self.task == "chief" else f"{self.task} {self.index}"


class JobOrder(Message):
    """What a job is asked that a fault is done to (`harness.trial.job`)."""

    steps: Annotated[int, Field(ge=1)]
    checkpoint_every: Annotated[int, Field(ge=0)]
    """Steps between checkpoints; 0 makes none."""
    folder: str
    """Where its checkpoints lie; what is there already is gone on from."""
    state: str
    """The file that the final state is written to, with the initial one."""
    preemption: bool = False
    """Whether the engine is to listen for SIGTERM, as TensorFlow's PreemptionCheckpointHandler does."""
    cost_windows: int = 0
    """Afterwards, pairs of windows of `checkpoint_every` steps, with a checkpoint and without."""


JobWord = Literal["training", "step", "saved", "preempted", "measuring", "done"]


class JobReport(Message):
    """A job's word on how far it is. `at_s` is the machine's monotonic clock, the same in every process."""

    what: JobWord
    step: int
    """Steps that are done."""
    at_s: float
    seconds: float = 0.0
    """What a checkpoint took."""
    updates: UpdateCounts | None = None
    cost: CheckpointCost | None = None


class TraceRequest(Message):
    """Where a trial is to leave a profile of a few steps."""

    run: str
    """The run's folder."""
    path: str
    """The trace's folder, seen from there."""


class Request(Message):
    """Everything that a trial needs to know."""

    cell: Cell
    engine: str = ENGINE
    """What is preloaded where the process is forked."""
    seed: int
    data_dir: str
    scratch: str = ""
    """A folder that lives as long as the sweep's process, for what trials share; empty is none."""
    window_s: float
    intra_op_threads: int
    inter_op_threads: int
    """Of TensorFlow and Horovod; 0 is under TensorFlow what suits the host where the trial runs
    (`harness.engines.tensorflow.threads`)."""
    gpu_memory_mb: int = 0
    """Of TensorFlow's logical GPUs."""
    tpu: str = "local"
    """The TPU that TensorFlow is to connect to."""
    task: Literal["trial", "prepare", "probe", "preflight", "job", "limits"] = "trial"
    check: str = ""
    """A check of the user's own (`harness.trial.own_check`); empty is none."""
    job: JobOrder | None = None
    others_limit_s: float = 30.0
    """How long the trial may wait for what is not its own work, in seconds: a TPU that is to answer, a process that is
    to come, what another trial computes. Half of what a phase may take."""
    plant: Plant | None = None
    """A slow-down to plant (`harness.engines.tensorflow.plants`), for a validation."""
    instrument: str = ""
    """What of the step is timed once its first updates are proved (`harness.record.explain`); empty is all of it."""
    trace: TraceRequest | None = None
    """Profile a few steps after the last window; None does not."""
    times_alone: bool = False
    """Whether workers in lock-step also time what each computes by itself (`harness.trial.alone`)."""
    proof_phase: int = 0
    """The number of the update that is proved after the last window, modulo `PROOF_PHASES`."""
    launcher: str = "local"
    """Who starts the processes of a trial that has several (`harness.run.launchers`)."""
    launcher_options: LauncherOptions = LauncherOptions()
    isolate: bool = True
    """Whether such processes get a loopback of their own, where they are on one machine and the kernel gives one."""
    member: Membership | None = None
    """Which of them this is; None where the trial is one process."""

    @property
    def training(self) -> TrainingCell:
        """The cell, of a trial that trains; TypeError for one of other work."""
        return trained(self.cell)


class Turn(Message):
    """The parent's word to a live trial: find out how many steps a window has (`pilot`), measure one, or finish.

    To one process of several also: say what you have used (`usage`), and leave, now that all have finished.
    """

    do: Literal["pilot", "window", "finish", "usage", "leave"]
    round: int = 0
    steps: Annotated[int, Field(ge=1)] | None = None
    """Steps of the window; None is what the trial's own pilot chose."""
    prove: bool = False
    """Whether to prove an update before the window."""


class Usage(Message):
    """What a process has used so far, or in a while."""

    cpu_seconds: float = 0.0
    """User and system."""
    system_seconds: float = 0.0
    """Of these in the kernel."""
    page_faults: int = 0
    """Pages, mostly of 4 KiB, that the kernel gave it because it touched them."""

    def since(self, earlier: "Usage") -> "Usage":
        """What was used between the two."""
        return Usage(
            cpu_seconds=max(0.0, self.cpu_seconds - earlier.cpu_seconds),
            system_seconds=max(0.0, self.system_seconds - earlier.system_seconds),
            page_faults=max(0, self.page_faults - earlier.page_faults),
        )


class WindowTimes(Message):
    """One window: wall and processor seconds of `steps` steps, and what the wait before it used."""

    round: int
    steps: int
    seconds: float
    cpu_seconds: float
    waiting_seconds: float
    waiting_cpu_seconds: float
    check_seconds: float = 0.0
    """What was proved before the window took so long."""
    system_seconds: float = 0.0
    """Of the processor's seconds those in the kernel."""
    page_faults: int = 0
    untimed_steps: int = 0
    """Steps that come before each window and are in none, as far as is known by the end of this one."""
    workers: list[float] = []
    """Seconds of each worker, where there are several; `seconds` is the largest."""


class Outcome(Message):
    """How a trial ended, as far as it can tell itself."""

    status: Literal["ok", "unproved", "wrong_result", "unsupported", "out_of_memory", "crashed"]
    """Of a trial that is `ok` its checks may say that something was left unproved (`Checks.unproved`)."""
    reason: str | None = None
    may_pass: bool = False
    """Of `unsupported`: whether another trial of the cell may fare better."""
    evidence: str | None = None
    checks: Checks = Checks()
    executed: Executed = Executed()
    resources: Resources = Resources()
    peak_memory_bytes: int | None = None
    peak_device_memory_bytes: int | None = None
    final_loss: float | None = None
    digests: dict[str, str] = {}
    """Of a worker among several: a digest of every variable that must be the same on all of them."""
    compute_s: list[float] = []
    """Of a worker among several in lock-step: seconds of forward and backward alone."""
    updates: AsynchronousUpdates | None = None
    trace: TraceRecord | None = None
    cluster: ClusterRecord | None = None
    limits: list[ProcessLimit] = []
    """Of the task `limits`."""

    @property
    def well(self) -> bool:
        """Whether it ended well, whatever was proved."""
        return self.status in MEASURED


class Report(Message):
    """A trial's word to the parent; exactly one field is set."""

    phase: PhaseName | None = None
    alive: bool | None = None
    """What it is at takes long, and goes on."""
    set_up: bool | None = None
    """The trial is built and its first updates are proved: it waits for its pilot, its first turn."""
    ready: bool | None = None
    """The pilot is over, and the trial waits for its first window."""
    sync_seconds: float | None = None
    steps: int | None = None
    """With `ready`: the steps a window that the pilot chose."""
    step_seconds: float | None = None
    """With `ready`: what a step took in the pilot."""
    window_seconds: float | None = None
    """With `ready`: how long a window of this trial is to last at least, by its own pilot."""
    window: WindowTimes | None = None
    note: str | None = None
    """A line for the person, of what it waits for."""
    usage: Usage | None = None
    """What a process has used so far that was asked for it."""
    outcome: Outcome | None = None
    job: JobReport | None = None
