"""What this machine can do at most, measured by fresh processes that take turns, in about half a minute."""

import datetime
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from harness.environment import Description, describe, usable_cores
from harness.errors import HarnessError
from harness.record.limits import Limit, LimitKind, LimitsRecord, ProcessLimit, keep_newest, make_place
from harness.record.manifest import Machine
from harness.run.doctor import probe_cell, probe_request
from harness.run.process.zygote import Zygote
from harness.run.progress import say_line
from harness.run.turns.single import single_task
from harness.spec.axes import NO_STRATEGY, USUAL_STRATEGY
from harness.spec.catalogue import VIRTUAL_CPU
from harness.version import __version__

BUDGET_S = 28.0
"""No round beyond LEAST_ROUNDS begins that would end later than this, the import included. With GPUs these two may take
longer: their processes begin with CUDA, whatever a kernel takes."""
LEAST_ROUNDS, MOST_ROUNDS = 2, 6
"""A round is a fresh process on each place. Two are the fewest that give an interval."""
KERNEL_S = 0.1
"""About what a process takes for each of the kernels."""
PROCESS_LIMIT_S = 60.0
"""A process without a sign of life for so long is ended."""
COPIES: dict[int, tuple[LimitKind, ...]] = {1: ("host_to_device", "device_to_host"), 2: ("device_to_device",)}
"""What is missing where so many GPUs are."""


@dataclass
class MeasuredPlace:
    """Where limits are measured: a processor with so many threads, or so many GPUs. `reason`: why they cannot be."""

    device: str
    threads: int
    replicas: int = 1
    on_processor: bool = False
    """Whether its threads compute themselves."""
    reason: str | None = None
    taken: list[list[ProcessLimit]] = field(default_factory=list)
    """What each process came to."""


def places_here() -> list[MeasuredPlace]:
    """One thread, which is what a replica on virtual-cpu has; every core; one GPU; two GPUs."""
    cores = usable_cores()
    processors = [MeasuredPlace(VIRTUAL_CPU, threads, on_processor=True) for threads in dict.fromkeys((1, cores))]
    return [*processors, MeasuredPlace("gpu", cores, replicas=1), MeasuredPlace("gpu", cores, replicas=2)]


def measure_limits(machine: Description, rounds: int = MOST_ROUNDS, kernel_s: float = KERNEL_S) -> LimitsRecord:
    """The limits of the machine that `machine` describes, by at most `rounds` processes on each place.

    Raises HarnessError, of one line, where a process on the processor does not end well; nothing is known then.
    """
    begun = datetime.datetime.now(datetime.UTC)
    start = time.monotonic()
    places = places_here()
    with Zygote() as zygote:
        for number in range(rounds):
            since = time.monotonic()
            for place in places if number % 2 == 0 else places[::-1]:  # what comes first is not always the same
                _measure(place, zygote, kernel_s)
            now = time.monotonic()
            if number + 1 >= LEAST_ROUNDS and now + (now - since) > start + BUDGET_S:
                break
    return LimitsRecord(
        machine_id=str(machine.facts["machine.id"]),
        created_utc=begun.isoformat(timespec="seconds"),
        harness_version=__version__,
        seconds=time.monotonic() - start,
        limits=[limit for place in places for limit in _limits_of(place)],
        machine=Machine(facts=dict(machine.facts), warnings=list(machine.warnings)),
    )


def renew_limits(results: Path, quiet: bool) -> None:
    """Measure those of this machine and keep them, as `doctor --limits --again`: a run is held against the last ones.

    Raises StorageError, and what `measure_limits` does.
    """
    make_place(results)
    record = measure_limits(describe())
    path = keep_newest(results, record)
    if not quiet:
        told = f"what this machine can do at most: measured in {record.seconds:.0f} s, kept in {path}"
        say_line(told, sys.stderr)


def _measure(place: MeasuredPlace, zygote: Zygote, kernel_s: float) -> None:
    """One process more, unless an earlier one has said that there can be none."""
    if place.reason is not None:
        return
    cell = probe_cell(place.device, NO_STRATEGY if place.replicas == 1 else USUAL_STRATEGY, place.replicas, "auto")
    request = probe_request(cell, kernel_s, place.threads, 2).model_copy(update={"task": "limits"})
    trial = single_task("limits", zygote, request, PROCESS_LIMIT_S)
    if trial.status == "ok" and trial.outcome is not None:
        place.taken.append(trial.outcome.limits)
    elif place.on_processor:
        raise HarnessError(f"limits: a process with intra_op_threads {place.threads} failed: {trial.reason}")
    else:
        place.reason = trial.reason or trial.status


def _limits_of(place: MeasuredPlace) -> Iterator[Limit]:
    """What the processes on a place came to, quantity by quantity; where there is none, the reason."""
    if not place.taken:
        for quantity in COPIES[place.replicas]:
            yield Limit(quantity=quantity, type="bytes", device="gpu", threads=0, reason=place.reason)
        return
    for first in place.taken[0]:
        all_taken = (one for process in place.taken for one in process)
        same = [one for one in all_taken if (one.quantity, one.type) == (first.quantity, first.type)]
        known = [one for one in same if one.rate is not None]
        yield Limit(
            quantity=first.quantity,
            type=first.type,
            device="cpu" if place.on_processor else "gpu",
            threads=place.threads if place.on_processor else 0,
            arithmetic=next((one.arithmetic for one in known), ""),
            rates=[one.rate for one in known if one.rate is not None],
            sizes=[one.size for one in known],
            repetitions=[one.repetitions for one in known],
            reason=None if known else first.reason,
        )
