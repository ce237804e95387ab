"""Throughput against batch size with the knee, and memory beside it."""

from collections.abc import Callable, Sequence

from harness.analysis import Interval, WorkloadSummary
from harness.analysis.batch import BatchCurve, BatchPoint
from harness.analysis.estimates.verdict import EPSILON
from harness.report.export.rows import ExportRow
from harness.report.figures.panels import (
    Curve,
    Panel,
    Point,
    draw_panel,
    has_bands,
    hollow_words,
    keys,
    left_out_words,
    looks_of,
)
from harness.report.figures.svg import Picture, panelled
from harness.report.words.text import OWN_INTERVAL, STATUS_WORDS, listed, percent, shortened
from harness.spec.cell import trained
from harness.spec.quantity import Quantity
from harness.visible import plural

_MIB = 2**20


def batch_figure(summary: WorkloadSummary, curves: Sequence[BatchCurve], name: str) -> Picture | None:
    """Throughput and peak memory against batch size; None without a curve of two batch sizes."""
    if not curves:
        return None
    batch = "global batch" if summary.workload.get("batch_scope") == "global" else "batch of a replica"
    drawn = tuple(_curve(curve) for curve in curves)
    throughput = Panel("throughput", drawn, batch, summary.workload.quantity.unit, logarithmic=True)
    looks = looks_of([throughput])
    panels = [throughput]
    for title, of in (("memory of the process", _memory), ("memory on the devices", _device_memory)):
        known = tuple(filter(None, (_memory_curve(curve, of) for curve in curves)))
        if any(curve.label in looks for curve in known):
            panels.append(Panel(title, known, batch, "MiB at the peak", logarithmic=True))
    caption = (
        f"{knee_words(curves)} Bands: each throughput by itself, {OWN_INTERVAL}, the machine's drift in it; "
        "the table has the paired gain from one batch to the next. A ring marks the knee: no larger batch gains more "
        f"than {percent(EPSILON)}." + hollow_words([throughput]) + left_out_words([throughput], looks, 1)
    )
    entries = keys(looks, ideal=False, bound=False, bands=has_bands([throughput]))
    return panelled(
        [draw_panel(panel, looks) for panel in panels],
        entries,
        name,
        "Throughput and memory against batch size",
        caption,
        _rows(curves, summary.workload.quantity),
    )


def knee_words(curves: Sequence[BatchCurve]) -> str:
    """Where the knees are."""
    found: dict[int, list[str]] = {}
    for curve in curves:
        if curve.knee is not None:
            found.setdefault(curve.knee, []).append(shortened(curve.label))
    parts = [f"The knee is at batch {knee:,} for {listed(labels)}." for knee, labels in sorted(found.items())]
    parts += _rising_words(curves)
    undecided = [curve for curve in curves if curve.found == "undecided"]
    if undecided:
        parts.append(
            f"In {len(undecided)} of {plural(len(curves), 'curve')} the intervals allow a knee below "
            f"{_largest(undecided)} as well as none: more trials would tell."
        )
    return " ".join(parts)


def _rising_words(curves: Sequence[BatchCurve]) -> list[str]:
    """Where the knee lies beyond the largest batch; larger ones are asked for only where none was tried in vain."""
    rising = [curve for curve in curves if curve.found == "rising"]
    among = f"of {plural(len(curves), 'curve')}"
    parts = []
    if still := [curve for curve in rising if not curve.beyond]:
        parts.append(
            f"Throughput still rises at the largest batch ({_largest(still)}) in {len(still)} {among}: measure larger "
            "ones to find the knee."
        )
    ended: dict[str, list[BatchCurve]] = {}
    for curve in rising:
        if curve.beyond:
            first = curve.beyond[0]
            told = f"{trained(first.cell).batch_size:,} has none ({STATUS_WORDS[first.status]})"
            ended.setdefault(told, []).append(curve)
    for told, of in ended.items():
        largest = f"the largest batch with a throughput ({_largest(of)})"
        parts.append(f"Throughput still rises at {largest} in {len(of)} {among}: {told}.")
    return parts


def _largest(curves: Sequence[BatchCurve]) -> str:
    """`512 and 1,024`: the largest batch of each."""
    return listed(f"{size:,}" for size in sorted({curve.points[-1].batch_size for curve in curves}))


def _curve(curve: BatchCurve) -> Curve:
    points = tuple(
        Point(point.batch_size, point.cell.measured.throughput, point.cell.cell_id, point.cell.unproved is not None)
        for point in curve.points
        if point.cell.measured is not None
    )
    return Curve(_label(curve), points, frozenset(() if curve.knee is None else (curve.knee,)), _strategy(curve))


def _label(curve: BatchCurve) -> str:
    return shortened(curve.label)


def _strategy(curve: BatchCurve) -> str:
    return trained(curve.points[0].cell.cell).strategy


def _memory(point: BatchPoint) -> int | None:
    return point.cell.measured.peak_memory_bytes if point.cell.measured else None


def _device_memory(point: BatchPoint) -> int | None:
    return point.cell.measured.peak_device_memory_bytes if point.cell.measured else None


def _memory_curve(curve: BatchCurve, of: Callable[[BatchPoint], int | None]) -> Curve | None:
    known = [(point, size) for point in curve.points if (size := of(point))]
    if not known:
        return None
    points = tuple(Point(p.batch_size, Interval(size / _MIB, None, None), p.cell.cell_id) for p, size in known)
    return Curve(_label(curve), points, strategy=_strategy(curve))


def _rows(curves: Sequence[BatchCurve], quantity: Quantity) -> list[ExportRow]:
    rows = []
    for curve in curves:
        for point in curve.points:
            measured = point.cell.measured
            assert measured is not None
            rows.append(
                {
                    "cell_id": point.cell.cell_id,
                    "curve": curve.label,
                    "batch_size": point.batch_size,
                    quantity.throughput_key: measured.throughput.value,
                    "low": measured.throughput.low,
                    "high": measured.throughput.high,
                    "gain": point.gain.value if point.gain else None,
                    "gain_low": point.gain.low if point.gain else None,
                    "gain_high": point.gain.high if point.gain else None,
                    "peak_memory_bytes": measured.peak_memory_bytes,
                    "peak_device_memory_bytes": measured.peak_device_memory_bytes,
                    "knee": point.batch_size == curve.knee,
                }
            )
    return rows
