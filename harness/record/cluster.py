"""What is recorded of a trial of several processes beyond what every trial has."""

from harness.record.bounds import Duration, Natural, Speed, StepDuration
from harness.record.model import RecordModel


class MemberRecord(RecordModel):
    """One process of the trial."""

    name: str
    """`worker 0`, `ps 1`, `coordinator`."""
    address: str
    """`host:port` that the others reach it at."""
    host: str | None = None
    """The host elsewhere that it ran on, by its name in `run.json`; None is the machine of the run."""
    phase: str | None = None
    """The phase it was last in, when the trial did not end well."""
    reason: str | None = None
    """What it said of its own end, when that was no good one."""
    peak_memory_bytes: Natural | None = None
    compute_s: list[StepDuration] = []
    """Of a worker in lock-step: seconds of one step's forward and backward without the reduction, which would make it
    wait; one value a round of some such passes, that all workers make at the same time after the last window. Only
    the first blocks of a run have them (`harness.run.turns.live`)."""


class NetworkRecord(RecordModel):
    """An emulated network: what was asked for is in the cell; this is what was measured between two of its hosts."""

    round_trip_s: Duration
    bandwidth_bits_per_s: Speed
    congestion_control: str


class ClusterRecord(RecordModel):
    """The processes of a trial, and who started them."""

    launcher: str
    members: list[MemberRecord]
    isolated: bool = False
    """Whether nothing outside could reach the processes' ports."""
    network: NetworkRecord | None = None


class AsynchronousUpdates(RecordModel):
    """Updates to parameter servers, the gate's and the warm-up's included.

    `scheduled` were asked for, `applied` are those that the step counter on the server shows; `lost` is the difference
    where it is positive, `repeated` where it is negative. `staleness[s]` says how many updates were computed from
    weights that s other updates had passed before they were written; next to none of Keras' own, whose counter moves
    when an update begins.
    """

    scheduled: Natural
    applied: Natural
    staleness: dict[Natural, Natural] = {}

    def unproved(self, workers: int) -> str | None:
        """What of the updates of so many workers has no proof: what they do together. None of one worker."""
        if workers < 2:
            return None
        return f"updates: those of {workers} workers that wait for nobody have no reference together; they were counted"

    @property
    def lost(self) -> int:
        """Updates that never reached the weights."""
        return max(0, self.scheduled - self.applied)

    @property
    def repeated(self) -> int:
        """Updates that were applied more often than they were asked for."""
        return max(0, self.applied - self.scheduled)
