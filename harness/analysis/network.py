"""Throughput and efficiency against the speed of an emulated network, beside what the ring's cost formula expects
(`docs/protocol.md#communication-cost`).

It assumes that nothing is computed meanwhile: a step that does better hides some of its communication.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis.estimates.intervals import Interval
from harness.analysis.summary import CellSummary, WorkloadSummary
from harness.spec.network import Network, order_of

RING = ("CollectiveReduceV2", "CollectiveReduceV3")
"""Reductions that TensorFlow carries out as a ring between processors of several workers."""


@dataclass(frozen=True)
class NetworkPoint:
    """One cell on its network."""

    summary: CellSummary
    network: Network | None
    """None is the loopback: no emulation."""
    throughput: Interval
    """The no-strategy base times the paired speed-up over it, where there is a base."""
    efficiency: Interval | None
    """Over the no-strategy base; resource-bounded where replicas share processors."""
    expected_step_s: float | None = None
    """None where no formula applies."""

    @property
    def step_s(self) -> float:
        """Seconds of a step, of the throughput above."""
        return self.summary.trials.cell.work.amount / self.throughput.value

    @property
    def expected_over_measured(self) -> float | None:
        """What the measured throughput and efficiency would be multiplied by, were the step as expected."""
        return None if self.expected_step_s is None else self.step_s / self.expected_step_s


@dataclass(frozen=True)
class NetworkCurve:
    """Cells that differ in the rate of their network only, the slowest first, and the same without emulation."""

    label: str
    points: tuple[NetworkPoint, ...]
    loopback: NetworkPoint | None = None


def ring_round_trips(ranks: int) -> float:
    """Round trips that TensorFlow waits for in one ring all-reduce between workers, of steps that follow each other.

    A worker asks the first what the reduction is, and then its neighbour for the first of 2(n−1) messages; those after
    it are asked for meanwhile. All beginning at once that is 1 + ½ + (n−1). Of two workers the second ends half a round
    trip before the first, and then asks already.
    """
    if ranks < 2:
        return 0.0
    return 2.0 if ranks == 2 else ranks + 0.5


def ring_s(ranks: int, sizes: Sequence[int], round_trip_s: float, bandwidth_bits_per_s: float) -> float:
    """Seconds of ring all-reduces of `sizes` bytes, one after the other, on the way: without what software takes."""
    per_byte_s = 8 / bandwidth_bits_per_s
    latency = ring_round_trips(ranks) * round_trip_s * len(sizes)
    return latency + 2 * (ranks - 1) / ranks * sum(sizes) * per_byte_s


def network_curves(work: WorkloadSummary) -> tuple[NetworkCurve, ...]:
    """A curve for what differs in the rate only; delays and congestion controls have curves of their own.

    What is not ok is on none.
    """
    by_id = {cell.cell_id: cell for cell in work.cells}
    grouped: defaultdict[str, list[NetworkPoint]] = defaultdict(list)
    for cell in work.cells:
        if (point := _point(cell, by_id)) is not None:
            grouped[cell.trials.cell.without_network().cell_id].append(point)
    return tuple(curve for points in grouped.values() for curve in _curves(points))


def _point(cell: CellSummary, by_id: dict[str, CellSummary]) -> NetworkPoint | None:
    if cell.measured is None:
        return None
    of = cell.trials.cell.shape
    network = Network.parse(of.network) if of.network else None
    if cell.vs_none is None:
        return NetworkPoint(cell, network, cell.measured.throughput, None)
    base = by_id[cell.vs_none.base_id].measured
    throughput = cell.measured.throughput if base is None else cell.vs_none.speed_up.scaled(base.throughput.value)
    efficiency = cell.vs_none.resource_efficiency if cell.trials.shared else cell.vs_none.efficiency
    return NetworkPoint(cell, network, throughput, efficiency)


def _curves(points: Sequence[NetworkPoint]) -> list[NetworkCurve]:
    loopback = next((point for point in points if point.network is None), None)
    of = points[0].summary.trials
    label = f"{of.cell.without_network().label} {of.engine_told}".rstrip()
    apart: defaultdict[tuple[float, str], list[NetworkPoint]] = defaultdict(list)
    for point in sorted(points, key=lambda point: order_of(point.summary.trials.cell.shape.network)):
        if point.network is not None:
            apart[point.network.delay, point.network.congestion].append(point)
    curves: list[NetworkCurve] = []
    for delay, congestion in sorted(apart):
        shown = [label, *([f"delay {1e3 * delay:g} ms"] if delay else []), *([congestion] if congestion else [])]
        with_line = _with_expectation(apart[delay, congestion])
        # it has no delay of its own: it stands beside the curve that has the least
        curves.append(NetworkCurve(", ".join(shown), with_line, None if curves else loopback))
    return curves


def _with_expectation(points: Sequence[NetworkPoint]) -> tuple[NetworkPoint, ...]:
    fastest = points[-1]
    cost = _ring_s(fastest)
    if cost is None or len(points) < 2:
        return tuple(points)
    made = []
    for point in points:
        own = _ring_s(point)
        expected = None if own is None else fastest.step_s + own - cost
        made.append(NetworkPoint(point.summary, point.network, point.throughput, point.efficiency, expected))
    return tuple(made)


def _ring_s(point: NetworkPoint) -> float | None:
    """What the formula says of a cell's gradients on its network as measured; None where it says nothing."""
    trials = point.summary.trials
    executed, measured = trials.executed, trials.network
    is_ring = bool(executed.operations) and all(name.startswith(RING) for name in executed.operations)
    if measured is None or not is_ring or not executed.pack_bytes or not measured.bandwidth_bits_per_s:
        return None
    ranks = trials.cell.replicas_in_sync
    return ring_s(ranks, executed.pack_bytes, measured.round_trip_s, measured.bandwidth_bits_per_s)
