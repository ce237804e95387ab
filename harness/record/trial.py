"""The record of one trial: what was asked, what ran, every window raw, and the proof."""

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from harness.record.bounds import Duration, Natural, PerSecond, Positive, Reported, StepDuration, Utc, WindowDuration
from harness.record.checks import Checks
from harness.record.cluster import AsynchronousUpdates, ClusterRecord
from harness.record.gpus import GpuRecord
from harness.record.interning import shared
from harness.record.model import RecordModel, without_empty
from harness.spec.quantity import EXAMPLES
from harness.spec.work import Cell

Status = Literal["ok", "unproved", "wrong_result", "unsupported", "out_of_memory", "timeout", "crashed", "interrupted"]
MEASURED = ("ok", "unproved")
"""The ends of a trial that has figures: it was timed to its end, and nothing was found wrong."""
PhaseName = Literal["start", "build", "first_step", "check", "warmup", "steady", "alone", "exit"]


class Phases(RecordModel):
    """Wall seconds of each phase of a trial; None where it was not reached.

    `waiting_s` is the time a live trial spent blocked while others were set up or had the turn; it
    is in no other phase. The fixed cost of a trial is start + build + first step + check + exit.
    """

    start_s: Duration | None = None
    build_s: Duration | None = None
    first_step_s: Duration | None = None
    check_s: Duration | None = None
    warmup_s: Duration | None = None
    steady_s: Duration | None = None
    alone_s: Duration | None = None
    """Of workers in lock-step: a measurement of its own, what each computes by itself."""
    waiting_s: Duration | None = None
    exit_s: Duration | None = None

    @property
    def fixed_s(self) -> float:
        """Seconds that do not depend on how long the trial measures."""
        parts = (self.start_s, self.build_s, self.first_step_s, self.check_s, self.exit_s)
        return sum(part for part in parts if part is not None)


class Windows(RecordModel):
    """Every timed window, raw and in order; `seconds[i]` is the wall time of `steps_per_window` steps.

    `rounds[i]` is the round of turns in which window i was taken, equal for trials that took turns.
    `waiting_cpu_seconds` is processor time used while others had the turn: it should be near zero.
    """

    steps_per_window: Positive
    seconds: list[WindowDuration]
    cpu_seconds: list[Duration]
    rounds: list[Natural]
    measured_from: Natural
    """Index of the first window that enters the estimate: those before it are warm-up."""
    steady: bool | None = None
    """What a rule for single trials once found. Nothing rests on it: the analysis looks at all trials of a cell."""
    sync_seconds: Duration
    """Median cost of one synchronisation, from the pilot."""
    waiting_cpu_seconds: Duration = 0.0
    system_seconds: list[Duration] = []
    """Of `cpu_seconds[i]` those in the kernel; empty in earlier records, as `page_faults`."""
    page_faults: list[Natural] = []
    """Pages that the kernel gave the trial's processes in window i because they touched them (minor faults)."""
    after_own: list[Natural] = []
    """Indices of the windows that came right after one of the trial's own, and not after another trial's."""
    workers: list[list[Duration]] = []
    """Of several workers: `workers[w][i]` is worker w's own time of window i, of which `seconds[i]` is the largest."""
    untimed_steps: Natural = 0
    """Steps, or calls of a collective, that came before the last window and are in none."""

    @property
    def cpu_s_per_step(self) -> float | None:
        """Of the measured windows, all processes together, as what follows; None where there is none."""
        return self._per_step(self.cpu_seconds)

    @property
    def page_faults_per_step(self) -> float | None:
        """None where they were not counted."""
        return self._per_step(self.page_faults)

    @property
    def system_share(self) -> float | None:
        """Of the processor time the share in the kernel; None where that was not told."""
        told, used = self._per_step(self.system_seconds), self.cpu_s_per_step
        return told / used if told is not None and used else None

    def _per_step(self, of_windows: Sequence[float]) -> float | None:
        measured = of_windows[self.measured_from :]
        return math.fsum(measured) / (len(measured) * self.steps_per_window) if measured else None

    @model_serializer(mode="wrap")
    def _without_what_is_not_known(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without_empty(write(self), "untimed_steps", "system_seconds", "page_faults")

    @model_validator(mode="after")
    def _lengths_agree(self) -> "Windows":
        if not len(self.seconds) == len(self.cpu_seconds) == len(self.rounds):
            raise ValueError("seconds, cpu_seconds and rounds differ in length")
        if any(kernel and len(kernel) != len(self.seconds) for kernel in (self.system_seconds, self.page_faults)):
            raise ValueError("system_seconds or page_faults differs in length from seconds")
        if self.measured_from > len(self.seconds):
            raise ValueError("measured_from lies beyond the last window")
        if max(self.after_own, default=-1) >= len(self.seconds):
            raise ValueError("after_own names a window beyond the last")
        if any(len(times) != len(self.seconds) for times in self.workers):
            raise ValueError("a worker has another number of windows than the trial")
        return self


TF32 = "tf32"
"""`Executed.arithmetic` where GPUs multiply float32 with 10 bits of fraction in place of 23."""
CALL = "call"
"""The subject of `Executed.unlike` by which an engine says what its call of a collective is."""
BATCH_NORMALISATION, OVER_GLOBAL_BATCH = "batch_normalisation", "over the global batch"
"""Another, and what stands in its words where the statistics are not over each replica's own share."""


_LATER_OF_EXECUTED = (
    *("arithmetic", "optimizer", "nccl", "flops_per_step", "bytes_per_step"),
    *("product_types", "engine", "unlike", "steps_a_call", "initial_weights", "labels"),
    "own_training",
)
"""Fields of `Executed` that are not written where they say nothing."""


class Executed(RecordModel):
    """What the traced program really does; two cells with one fingerprint are the same experiment."""

    operations: dict[str, Natural] = {}
    """Reduction and collective ops of the traced step, and how many: `op`, `op[hint]`, or `op[hint: what]` where
    TensorFlow makes something else of the hint, as a ring of `auto`."""
    packs: Natural | None = None
    """Reductions that one replica takes part in per step."""
    pack_bytes: list[Natural] = []
    """Bytes of each such reduction, in descending order."""
    xla_clusters: Natural = 0
    fingerprint: str = ""
    differs_from_request: str | None = None
    layouts: dict[str, str] = {}
    """On a mesh, how each trained variable lies: the mesh's axis that cuts each of its dimensions, `whole` for none."""
    engine: str = ""
    """What trained, where it was not TensorFlow."""
    unlike: dict[str, str] = {}
    """What of the work such an engine does otherwise than TensorFlow, by subject: `compiler`, `layout`."""
    input: list[str] = []
    """The stages of the input pipeline as it was built, from the source to the consumer, which the traced program does
    not hold: `Shuffle(1797)`, `Prefetch(2)`. What TensorFlow's strategies put behind it is not among them."""
    optimizer: str = ""
    """The optimizer as it was built, whose constants the traced program need not hold: `SGD(learning_rate=0.01)`. Empty
    of other engines and of earlier records."""
    own_training: list[str] = []
    """What of its training a model of the user's own brings: `optimizer`, where it is compiled with one, `train_step`,
    `compute_loss`. Empty of others, of other engines, and of earlier records."""
    arithmetic: str = ""
    """Of `float32` on GPUs: `tf32` where they multiply in fewer bits, as TensorFlow lets those that can, else
    `float32`. Empty of every other precision and device, and of earlier records."""
    nccl: str = ""
    """NCCL's version and how the leading process' ranks reach others, `2.27.3: NET/Socket, P2P/CUMEM`. Empty where it
    was not used or does not tell, and of earlier records."""
    flops_per_step: Positive | None = None
    """Operations of the step's matrix products and convolutions, forward and backward, of all replicas: 2 for each
    multiplication and addition. None where it has none or the graph does not say, and in earlier records."""
    bytes_per_step: Positive | None = None
    """Of the tensors that those products and convolutions read and write, each once; None as there."""
    product_types: list[str] = []
    """Of the numbers that they multiply, `float32`, those of the most operations first. Empty in earlier records."""
    steps_a_call: Positive | None = None
    """Training steps that a call makes, as the loop in its program is bound, of which all else here describes one. None
    of a program that is a step."""
    initial_weights: str = ""
    """A digest of the values that the weights began with, in whatever layout, of the models that several engines train.
    Empty of others, and of earlier records."""
    labels: list[str] = []
    """Of each process that trains a digest of the labels of its first six batches, with the gate's, in their order.
    Empty where the loop in Python does not see them, and of earlier records."""

    @model_serializer(mode="wrap")
    def _without_what_is_not_known(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without_empty(write(self), *_LATER_OF_EXECUTED)


class Resources(RecordModel):
    """What the replicas ran on. `shared` replicas show overhead, not hardware scaling."""

    logical_devices: list[str] = []
    physical_devices: Positive = 1
    """Processors that bound the throughput: cores ÷ intra-op threads, GPUs, or TPU cores."""
    shared: bool = False
    intra_op_threads: Reported = 0
    inter_op_threads: Reported = 0
    gpus: list[str] = []
    """The cards, by the `gpu.N.id` of their machine's facts; empty where there are none or they do not tell."""

    @model_serializer(mode="wrap")
    def _without_what_is_not_known(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without_empty(write(self), "gpus")


class Plant(RecordModel):
    """A slow-down that was planted on purpose, to see whether it is found: see `harness.engines.tensorflow.plants`."""

    kind: str
    """The registered name: `device_work`, `host_delay`, `input_stall`, `slow_pull`, `slow_push`, `slow_replica`,
    `slow_update`, `slow_worker`, `worker_delay`."""
    share: Annotated[float, Field(ge=0, lt=10, allow_inf_nan=False)]
    """By how much a step takes longer than with the placebo: 0.03 is 3 %. The placebo, for the side that is compared
    with, is 0: all that the plant does anyway, and nothing more."""
    each: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """What is planted in each step where that is no share of it, so that steps that lack something have as much:
    seconds of a delay, products or passes of work."""

    @model_serializer(mode="wrap")
    def _without_what_is_not_given(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in write(self).items() if key != "each" or value is not None}


class ZygoteRecord(RecordModel):
    """The preloaded process that a trial was forked from: its trials share what each such process has for itself."""

    number: Positive
    """Counted from 1 over the processes that one sitting of a run started."""
    padding_bytes: Natural
    """By how much its environment was made larger."""
    hash_seed: Natural | None = None
    """PYTHONHASHSEED; None where that was `random`."""


class TraceRecord(RecordModel):
    """A profile of a few steps that were run after the last window, for `sweep --trace`."""

    path: str | None = None
    """Its folder, seen from the run's; None where there is none, and `reason` says why."""
    steps: Positive
    bytes: Natural = 0
    copies_to_host: Natural | None = None
    """Copies from a GPU to the host in all of its steps; None where no GPU was profiled, and in earlier records."""
    parts: dict[str, float] | None = None
    """Seconds a step in which it computes, updates, communicates or waits for input, and the rest, as the profile tells
    it; None where that cannot be read, and in earlier records."""
    reason: str | None = None

    @model_serializer(mode="wrap")
    def _without_what_is_not_known(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        new = ("copies_to_host", "parts")
        return {key: value for key, value in write(self).items() if value is not None or key not in new}


RATE_KEYS = {
    False: ("throughput_per_s", "cpu_seconds_per_unit"),
    True: ("throughput_examples_per_s", "cpu_seconds_per_example"),
}
"""Keys of throughput and processor time: of work that is counted in examples, and of any other."""


def rates(cell: Cell, step_time_s: float, cpu_seconds_a_step: float) -> dict[str, float]:
    """Throughput and processor time of a trial of `cell`, by the keys of its record."""
    rate, each = RATE_KEYS[cell.work.quantity == EXAMPLES]
    return {rate: cell.work.rate(step_time_s), each: cpu_seconds_a_step / cell.work.amount}


class TrialRecord(RecordModel):
    """One line of `trials.jsonl`."""

    schema_version: Literal[1] = 1
    run_id: str
    cell_id: str
    cell: Annotated[Cell, AfterValidator(shared)]
    block: Natural
    group: str
    """Trials with the same group were alive together and took turns: the unit of pairing."""
    order: Natural
    """Position in the group's start order."""
    attempt: Positive = 1
    interleaving: Literal["turns", "blocks", "none"] = "turns"
    side: str | None = None
    """`a` or `b` in a comparison, the arm's name in a validation; None in a sweep."""
    plant: Plant | None = None
    """What was planted in this trial, in a validation."""
    status: Status
    phase: PhaseName | None = None
    """The phase under way when a trial ended that was not measured."""
    reason: str | None = None
    """Why it is not `ok`."""
    may_pass: bool = False
    """Of `unsupported`: the reason may be gone at another time, such as a host that is not there. The cell's other
    trials are tried all the same, and `--resume` tries this one again."""
    started_utc: Utc
    phases: Phases = Phases()
    windows: Windows | None = None
    step_time_s: StepDuration | None = None
    throughput_examples_per_s: PerSecond | None = None
    cpu_seconds_per_example: Duration | None = None
    throughput_per_s: PerSecond | None = None
    """In place of examples a second, where the cell's work is counted in something else: of its own quantity."""
    cpu_seconds_per_unit: Duration | None = None
    """The same of processor time."""
    peak_memory_bytes: Natural | None = None
    peak_device_memory_bytes: Natural | None = None
    final_loss: float | None = None
    checks: Checks = Checks()
    executed: Annotated[Executed, AfterValidator(shared)] = Executed()
    resources: Annotated[Resources, AfterValidator(shared)] = Resources()
    gpus: list[GpuRecord] = []
    """What its GPUs did in each window, of those of the machine of the run."""
    host: str | None = None
    """Of a trial of one process: the host elsewhere that it ran on; None is the machine of the run. `run.json` has
    the facts of each."""
    zygote: ZygoteRecord | None = None
    """Of a trial of one process on the machine of the run: what it was forked from."""
    cluster: ClusterRecord | None = None
    """The processes of a trial that has several; each names its host."""
    updates: AsynchronousUpdates | None = None
    """What became of the updates that parameter servers were sent."""
    trace: TraceRecord | None = None
    """Set where the trial was traced."""
    evidence: str | None = None
    """Stacks or the end of standard error, for a trial that hung or crashed."""

    @property
    def identity(self) -> tuple[int, str, int, str, str | None]:
        """What no other trial of its run has. Arms that memory had parted go again within an attempt, in another group;
        and what was left without its data is of block 0, though that may have been measured before."""
        return self.block, self.group, self.attempt, self.cell_id, self.side

    @property
    def measured(self) -> bool:
        """Whether it was timed to its end and nothing was found wrong."""
        return self.status in MEASURED

    @property
    def throughput(self) -> float | None:
        """In the unit of the cell's work; None unless it was measured."""
        return self.throughput_examples_per_s if self._in_examples else self.throughput_per_s

    @property
    def cpu_seconds_each(self) -> float | None:
        """Processor seconds of one of what the cell's work is counted in."""
        return self.cpu_seconds_per_example if self._in_examples else self.cpu_seconds_per_unit

    @property
    def _in_examples(self) -> bool:
        return self.cell.work.quantity == EXAMPLES

    @model_serializer(mode="wrap")
    def _without_figures_of_another_unit(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written = without_empty(write(self), "gpus")
        for key in RATE_KEYS[not self._in_examples]:
            written.pop(key, None)
        return written

    @model_validator(mode="after")
    def _gpus_were_read_with_the_windows(self) -> "TrialRecord":
        count = 0 if self.windows is None else len(self.windows.seconds)
        if any(gpu.windows not in (None, count) for gpu in self.gpus):
            raise ValueError(f"a GPU was read in another number of windows than the trial's {count}")
        return self

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts elsewhere that it ran on, each once."""
        members = self.cluster.members if self.cluster is not None else []
        return tuple(dict.fromkeys(host for host in (self.host, *(m.host for m in members)) if host is not None))

    @model_validator(mode="after")
    def _a_wrong_answer_has_no_throughput(self) -> "TrialRecord":
        if any(getattr(self, key) is not None for key in RATE_KEYS[not self._in_examples]):
            raise ValueError(f"a figure is given in another unit than the work's, {self.cell.work.quantity.unit}")
        if self.cell_id != self.cell.cell_id:
            raise ValueError(f"cell_id {self.cell_id} is not the hash of the cell ({self.cell.cell_id})")
        if self.status in MEASURED:
            if self.status == "ok" and not self.checks.complete:
                raise ValueError("status is ok but the correctness gate is not complete")
            if self.status == "unproved" and (self.checks.failures or not self.reason):
                raise ValueError("status is unproved but a check failed, or no reason is given")
            instrument = self.checks.gate == "instrument" and self.cell.INSTRUMENTED
            if not instrument and self.checks.gate != self.cell.GATE:
                raise ValueError(f"the work is '{self.cell.tag}' but the gate that was passed is '{self.checks.gate}'")
            if self.step_time_s is None or self.throughput is None or self.windows is None:
                raise ValueError(f"status is {self.status} but there is no measurement")
        elif self.throughput is not None:
            raise ValueError(f"status is {self.status} but a throughput is given")
        return self


HOPELESS = ("unsupported", "wrong_result")
"""Ends that another block would only repeat, unless their reason may pass."""
PATIENCE = 2
"""Blocks in a row in which an arm may fail before it is given up."""


def is_hopeless(trial: TrialRecord) -> bool:
    """Whether another block would only repeat how a trial ended."""
    return trial.status in HOPELESS and not trial.may_pass


def is_given_up(trials: Sequence[TrialRecord]) -> bool:
    """Whether an arm with these trials, in order, is tried no more: the last is hopeless, or those of the latest blocks
    all failed."""
    of_blocks = [*{trial.block: trial for trial in trials}.values()][-PATIENCE:]
    in_a_row = len(of_blocks) == PATIENCE and not any(trial.measured for trial in of_blocks)
    return in_a_row or any(map(is_hopeless, of_blocks[-1:]))
