"""What only hardware answers, each asked of trials that are alive: the clock, memory, libraries, open driver files."""

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.analysis.estimates.intervals import log_mean
from harness.protocol.messages import WindowTimes
from harness.record.proof import Proof, ProofResult, Subject
from harness.record.trial import TrialRecord
from harness.run.process.zygote import Zygote
from harness.run.request import data_dir_of, request_for
from harness.run.turns.live import Ended
from harness.run.turns.single import single
from harness.spec.sweep import Sweep
from harness.spec.work import Cell
from harness.trial.engines import catalogue_of

SHORT_S, LONG_S = 0.05, 1.0
"""Windows that are held against each other."""
SHORTS, PAIRS = 5, 6
"""A pair is so many short windows and a long one."""
CLOCK_MARGIN = math.log(1.1)
"""A clock that is right shows one step time in both, but for what a window costs by itself: 2 ms of 50."""
MEMORY_MARGIN = 1.1
DRIVERS = ("/dev/nvidia", "/dev/accel", "/dev/vfio/", "/dev/kfd", "/tmp/libtpu_lockfile")
"""Files of GPUs' and TPUs' drivers, by how their paths begin. A process that holds one holds the device."""
NCCL = "libnccl"
COPYING = {
    ("loop", "fit"): "fit reads each step's metrics",
    ("precision", "mixed_float16"): "Keras' loss scaling decides on the host whether a step's update is applied",
}
"""Keys of a cell, and why its step copies to the host whatever the harness does. Strategies say so themselves."""


@dataclass(frozen=True)
class Answered:
    """One live trial: its record, its windows, and which libraries its process had open."""

    record: TrialRecord
    windows: list[WindowTimes]
    libraries: frozenset[str]

    @property
    def failed(self) -> str | None:
        """Why it has no windows to look at; None where it has."""
        return None if self.record.status in ("ok", "unproved") else f"{self.record.status}: {self.record.reason}"


def ask(zygote: Zygote, cell: Cell, sweep: Sweep, limit_s: float, paired: bool) -> Answered:
    """A whole trial of `cell` with windows of SHORT_S, or where `paired` with PAIRS of those and of LONG_S."""
    request = request_for(cell, sweep, data_dir_of(sweep)).model_copy(update={"window_s": SHORT_S})
    trial = single("prove", zygote, request, limit_s)
    libraries: frozenset[str] = frozenset()
    with contextlib.suppress(Ended):
        trial.start()
        trial.set_up()
        short = trial.steps or 1
        trial.take_turn(0)
        trial.measure_from(1)
        lengths = [short] * SHORTS + [max(1, round(short * LONG_S / SHORT_S))] if paired else [short]
        for number, steps in enumerate(lengths * (PAIRS if paired else SHORTS), start=1):
            trial.steps = steps
            trial.take_turn(number)
        libraries = frozenset().union(*map(mapped, trial.child.pids))
        trial.finish()
    return Answered(trial.record(), trial.taken.windows, libraries)


def mapped(pid: int) -> frozenset[str]:
    """Names of the files that a process has mapped into its memory; none where the system does not tell."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines()
    except OSError:
        return frozenset()
    return frozenset(Path(line.split(maxsplit=5)[5]).name for line in lines if line.count("/"))


def clock(of: Answered) -> Proof:
    """Whether short and long windows give one step time. One that ends before the device has does not."""
    if of.failed:
        return _proof("clock", of, "unknown", of.failed)
    estimate = log_mean(_short_to_long(of.windows[1:]), "paired t")
    low, high = estimate.log_bounds() or (-math.inf, math.inf)
    ratios = ", ".join(f"{math.exp(log):.3f}" for log in (estimate.mean, low, high))
    said = f"step time in windows of {SHORT_S:g} s ÷ that in windows of {LONG_S:g} s, with its 95 % limits: {ratios}"
    if max(-low, high) <= CLOCK_MARGIN:
        return _proof("clock", of, "passed", said)
    if low > CLOCK_MARGIN or high < -CLOCK_MARGIN:
        return _proof("clock", of, "failed", said)
    return _proof("clock", of, "unknown", f"{said}: too noisy to tell whether they are within 10 %")


def _short_to_long(windows: list[WindowTimes]) -> list[float]:
    """ln(step time in short windows ÷ in the long one after them), pair by pair."""
    logs = []
    for first in range(0, len(windows), SHORTS + 1):
        *short, long = windows[first : first + SHORTS + 1]
        each = sum(one.seconds for one in short) / sum(one.steps for one in short)
        logs.append(math.log(each * long.steps / long.seconds))
    return logs


def memory(first: Answered, second: Answered) -> Proof:
    """Whether a second trial uses as much memory as the first: what a trial leaves behind would add up."""
    if failed := first.failed or second.failed:
        return _proof("memory", first, "unknown", failed)
    sizes = [(one.record.peak_device_memory_bytes, one.record.peak_memory_bytes) for one in (first, second)]
    on_device = None not in (sizes[0][0], sizes[1][0])
    before, after = (device if on_device else host for device, host in sizes)
    if not before or after is None:
        return _proof("memory", first, "unknown", "this system does not tell how much a process used")
    where = "device" if on_device else "host"
    said = f"{where} memory at most {before / 1e6:.0f} MB, then {after / 1e6:.0f} MB"
    return _proof("memory", first, "passed" if after <= before * MEMORY_MARGIN else "failed", said)


def nccl(of: Answered) -> Proof:
    """Whether NCCL's library is in the process exactly where the record says that NCCL reduces."""
    if of.failed:
        return _proof("nccl", of, "unknown", of.failed)
    recorded = any("nccl" in name.lower() for name in of.record.executed.operations)
    loaded = sorted(name for name in of.libraries if name.startswith(NCCL))
    if not of.libraries:
        return _proof("nccl", of, "unknown", "this system does not tell which libraries a process has")
    said = f"the record names {'NCCL' if recorded else 'no NCCL'}, the process has {', '.join(loaded) or 'none of it'}"
    return _proof("nccl", of, "passed" if recorded == bool(loaded) else "failed", said)


def arithmetic(without: Answered, with_it: Answered) -> Proof:
    """What TensorFloat-32 changes in the gate's error; both must be right."""
    if "tf32" not in with_it.record.executed.arithmetic:
        return _proof("arithmetic", with_it, "unknown", "float32 is multiplied in full: there is no TensorFloat-32")
    if failed := without.failed or with_it.failed:
        return _proof("arithmetic", with_it, "failed", failed)
    shares = [one.record.checks.update_error or 0.0 for one in (without, with_it)]
    said = "error of an update as a share of its limit: {:.2g} without TensorFloat-32, {:.2g} with it".format(*shares)
    return _proof("arithmetic", with_it, "passed", said)


def copies(of: TrialRecord) -> Proof:
    """Whether a step copies from the device to the host though nothing in the cell makes TensorFlow do so, by its
    profile; windows end with one such copy."""
    steps, found = (of.trace.steps, of.trace.copies_to_host) if of.trace else (0, None)
    if found is None:
        reason = of.trace.reason if of.trace and of.trace.reason else "its devices are the host's, and copy nothing"
        return Proof(subject="copies", name=of.cell.label, device=of.cell.shape.device, verdict="unknown", words=reason)
    said, known = f"{found} copies in {steps} steps", _copying(of.cell)
    verdict: ProofResult = "passed" if found < steps or known else "failed"
    words = f"{said}: {known}" if found >= steps and known else said
    return Proof(subject="copies", name=of.cell.label, device=of.cell.shape.device, verdict=verdict, words=words)


def _copying(cell: Cell) -> str:
    """Why TensorFlow's own step of such a cell copies to the host; empty where it need not. Read off profiles of
    TensorFlow 2.21 on a GPU."""
    traits = catalogue_of(cell.get("engine")).strategies.get(cell.get("strategy"))
    reasons = (reason for (key, value), reason in COPYING.items() if cell.get(key) == value)
    return next(reasons, traits.copies_to_host if traits else "")


def drivers(zygote: Zygote, device: str) -> Proof:
    """Whether the fork server holds a file of a driver open, which would hold the device for as long as a run."""
    there = any(any(Path("/").glob(f"{prefix.strip('/')}*")) for prefix in DRIVERS)
    held = sorted(path for path in open_files(zygote.pid) if path.startswith(DRIVERS))
    if held:
        verdict, words = "failed", ", ".join(held)
    elif there:
        verdict, words = "passed", "it holds none open"
    else:
        verdict, words = "unknown", "this machine has no driver of a GPU or TPU"
    return Proof(subject="fork_server", name="driver files", device=device, verdict=verdict, words=words)


def open_files(pid: int) -> Iterator[str]:
    """Paths of the files that a process has open."""
    for link in Path(f"/proc/{pid}/fd").glob("*"):
        with contextlib.suppress(OSError):
            yield str(link.readlink())


def _proof(subject: Subject, of: Answered, verdict: ProofResult, words: str) -> Proof:
    cell = of.record.cell
    return Proof(subject=subject, name=cell.label, device=cell.shape.device, verdict=verdict, words=words)
