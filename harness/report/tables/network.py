"""The table beside the figure of network speed: what each network was, and what training did on it."""

from harness.analysis import CellSummary, WorkloadSummary
from harness.analysis.cells import marked
from harness.analysis.network import NetworkPoint, network_curves
from harness.report.tables.table import Head, Table
from harness.report.words.text import NOTHING, OWN_INTERVAL, STATUS_WORDS, bounds, seconds, share, significant
from harness.visible import printable

NOTE = (
    "Round trip and bandwidth were measured by TCP between the first two hosts when the network was built. Expected: "
    "the step on the fastest network of the same delay, plus the difference in the ring's cost, R round trips and "
    "2((n−1)/n)S bytes at the measured bandwidth, R being 2 for n = 2 and else n + ½. A step that is clearly shorter "
    "hides communication behind computing. Where a no-strategy base case was measured, the throughput is its "
    "throughput times the speed-up, whose interval this is."
)


def network_table(work: WorkloadSummary) -> Table:
    """Every cell with a network, and those that are the same without; no rows when no cell has one."""
    emulated = [cell for cell in work.cells if cell.trials.cell.shape.network]
    alike = {cell.trials.cell.without_network().cell_id for cell in emulated}
    cells = [cell for cell in work.cells if cell.trials.cell.shape.network or cell.cell_id in alike]
    points = {point.summary.cell_id: point for point in _points(work)}
    columns = (
        Head("cell", False),
        Head("network", False),
        Head("round trip"),
        Head("bandwidth"),
        Head("step"),
        Head("expected"),
        Head("efficiency"),
        Head(work.workload.quantity.unit),
        Head(OWN_INTERVAL),
        Head("TCP", False),
    )
    rows = tuple(tuple(printable(text) for text in _row(cell, points.get(cell.cell_id))) for cell in cells)
    return Table("Speed of the network", columns, rows, NOTE)


def bits(per_second: float) -> str:
    """`94.7 Mbit/s`."""
    for unit, factor in (("Gbit/s", 1e9), ("Mbit/s", 1e6)):
        if per_second >= factor:
            return f"{significant(per_second / factor)} {unit}"
    return f"{significant(per_second / 1e3)} kbit/s"


def _points(work: WorkloadSummary) -> list[NetworkPoint]:
    curves = network_curves(work)
    return [point for curve in curves for point in (*curve.points, curve.loopback) if point is not None]


def _row(cell: CellSummary, point: NetworkPoint | None) -> tuple[str, ...]:
    of, measured = cell.trials.cell, cell.trials.network
    asked = (marked(of.without_network().label, cell.trials), of.shape.network or "none")
    found = (NOTHING, NOTHING, NOTHING)
    if measured is not None:
        found = (seconds(measured.round_trip_s), bits(measured.bandwidth_bits_per_s), measured.congestion_control)
    round_trip, bandwidth, tcp = found
    if point is None:
        return (*asked, round_trip, bandwidth, STATUS_WORDS[cell.trials.status], *(NOTHING,) * 4, tcp)
    return (
        *asked,
        round_trip,
        bandwidth,
        seconds(point.step_s),
        seconds(point.expected_step_s),
        share(point.efficiency) if point.efficiency else NOTHING,
        significant(point.throughput.value),
        bounds(point.throughput),
        tcp,
    )
