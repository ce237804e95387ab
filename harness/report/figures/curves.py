"""Throughput and efficiency against the number of replicas, a panel for each base case."""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from string import ascii_lowercase

from harness.analysis import CellSummary, Interval, WorkloadSummary
from harness.report.export.rows import ExportRow
from harness.report.figures.panels import (
    MOST_PANELS,
    Curve,
    Panel,
    Point,
    draw_panel,
    has_bands,
    hollow_words,
    keys,
    left_out_words,
    looks_of,
    with_one_top,
)
from harness.report.figures.svg import Picture, panelled
from harness.report.tables.overlay import Published, published
from harness.report.words.engines import engine_name
from harness.report.words.over import base_case
from harness.report.words.scaling import found_efficient, found_fastest, over_the_better_base, whole_machine_words
from harness.report.words.text import shortened
from harness.spec.axes import ENGINE, SYNTHETIC, TABLE
from harness.spec.bases import base_among
from harness.spec.cell import TrainingCell
from harness.spec.grouping import SIZE, THREADS, apart, family, lies_in_family_on_curve, own_curve
from harness.spec.naming import TOLD, sayings, told_value, value_words
from harness.spec.work import Cell, quantity_of

CellValue = Callable[[CellSummary], Interval | None]


def throughput_figure(summary: WorkloadSummary, name: str) -> Picture | None:
    """Throughput against replicas; None unless some strategy was measured at two replica counts."""
    panels = _panels(summary, _throughput_value(summary), throughput=True)
    if not panels:
        return None
    how = (
        f"Each point is {base_case(summary)} times the cell's speed-up over it, so a band is the paired interval "
        "of that speed-up."
    )
    if any(panel.ideal for panel in panels):
        how += " Dashed: ideal, n × the base."
    if any(panel.bound for panel in panels):
        how += " Dotted: the bound, min(n, processors) × the base."
    title = f"{scaling_word(summary)}: throughput against replicas"
    drawn = _drawn(panels, looks_of(panels[:MOST_PANELS]))
    whole = whole_machine_words(summary, {panel.whole.cell_id for panel in drawn if panel.whole})
    found = f"{over_the_better_base(summary) if whole else ''}{found_fastest(summary)} {whole}"
    return _draw(summary, panels, name, title, f"{found}{how}")


def efficiency_figure(
    summary: WorkloadSummary, name: str, anchors: Sequence[Published] | None = None
) -> Picture | None:
    """Efficiency over the no-strategy base against replicas, resource-bounded where processors are shared.

    `anchors` are published series for the overlay; None is those that come with the package, which are of TensorFlow
    and of weak scaling, and so are left out beside cells of any other.
    """
    if anchors is None:
        alike = {*map(engine_name, summary.cells)} == {ENGINE} and not _is_strong(summary)
        anchors = published_anchors() if alike else ()
    shared = summary.answer.shared

    def value(cell: CellSummary) -> Interval | None:
        if cell.vs_none is not None:
            bounded = cell.vs_none.resource_efficiency if shared else cell.vs_none.efficiency
            return bounded.scaled(100)
        return Interval(100.0, None, None) if cell.trials.cell.is_base else None

    panels = _panels(summary, value, throughput=False, anchors=anchors)
    if not panels:
        return None
    how = f"Share of the throughput that n copies of {base_case(summary)} would have; 100 % is ideal."
    if shared:
        how = (
            "Resource-bounded efficiency: share of the throughput that min(n, processors) copies of "
            f"{base_case(summary)} would have. Replicas share processors here, so this shows what the strategy costs, "
            "not how the hardware scales."
        )
    kind = "resource-bounded efficiency" if shared else "efficiency"
    title = f"{scaling_word(summary)}: {kind} against replicas"
    floor = min(panel.floor for panel in panels)
    panels = [replace(panel, floor=floor) for panel in panels]
    caption = f"{found_efficient(summary, shared)} {how}" + (" The axes do not start at 0." if floor else "")
    return _draw(summary, panels, name, title, caption, anchors)


def scaling_word(summary: WorkloadSummary) -> str:
    """`Weak scaling` where the batch of a replica is fixed, `Strong scaling` where the global batch is."""
    return "Strong scaling" if _is_strong(summary) else "Weak scaling"


def _is_strong(summary: WorkloadSummary) -> bool:
    return bool(summary.workload.get("batch_scope") == "global")


def published_anchors() -> tuple[Published, ...]:
    """Of each model that was published, synthetic data at the largest batch: five lines can be read, fifteen not."""
    kept: dict[str, Published] = {}
    for series in published():
        before = kept.get(series.model)
        if series.data == SYNTHETIC and (before is None or series.batch_size > before.batch_size):
            kept[series.model] = series
    return tuple(kept.values())


def _throughput_value(summary: WorkloadSummary) -> CellValue:
    by_id = {cell.cell_id: cell for cell in summary.cells}

    def value(cell: CellSummary) -> Interval | None:
        if cell.measured is None:
            return None
        base = by_id[cell.vs_none.base_id].measured if cell.vs_none is not None else None
        if cell.vs_none is None or base is None:
            alone = cell.measured.throughput
            return Interval(alone.value, None, None) if cell.trials.cell.is_base else alone
        return cell.vs_none.speed_up.scaled(base.throughput.value)

    return value


def _panels(
    summary: WorkloadSummary, value: CellValue, *, throughput: bool, anchors: Sequence[Published] = ()
) -> list[Panel]:
    base_of = base_among(cell.trials.cell for cell in summary.cells)
    grouped = _by_base(summary, base_of)
    for base in [base for base, cells in grouped.items() if len({_devices(cell) for cell in cells}) < 2]:
        del grouped[base]  # no curve: the whole machine has one device, and its threads are in no other panel's title
    told = _in_titles(grouped)
    panels = []
    for base, cells in grouped.items():
        unproved = {cell.cell_id for cell in cells if cell.trials.unproved}
        engine = "" if "engine" in told else cells[0].trials.engine_told
        curves = tuple(curve.told(unproved, engine) for curve in _curves(cells, value, told))
        if not any(len(curve.points) > 1 for curve in curves):
            continue
        scope = "global batch" if _is_strong(summary) else "batch of a replica"
        words = {"batch_size": f"{scope} {base.batch_size:,}"} | {key: _title_words(base, key) for key in told}
        title = ", ".join(words[key] for key in sorted(words, key=lambda key: key != "engine"))
        panel = _panel(title, cells, curves, throughput=throughput, anchors=anchors)
        panels.append(replace(panel, whole=_whole_of(summary, base_of(base))) if throughput else panel)
    return panels


def _by_base(summary: WorkloadSummary, base_of: Callable[[Cell], Cell]) -> dict[TrainingCell, list[CellSummary]]:
    """What was measured, each with its base case, which of several loops may be the same cell."""
    grouped: defaultdict[TrainingCell, list[CellSummary]] = defaultdict(list)
    measured = {cell.trials.cell: cell for cell in summary.cells if cell.measured is not None}
    for of, cell in measured.items():
        if isinstance(of, TrainingCell):
            grouped[of.base].append(cell)
    for base, cells in grouped.items():
        if base not in measured and (other := measured.get(base_of(base))) is not None:
            cells.insert(0, other)
    return grouped


def _whole_of(summary: WorkloadSummary, base: Cell) -> Point | None:
    """The best that no strategy on the whole machine does, at any batch size, in all else as `base`."""
    few = {*THREADS, "batch_size", SIZE}
    alike = apart(base, few)
    for cell in summary.ranking:
        if cell.measured and cell.trials.all_cores > 1 and apart(cell.trials.cell, few) == alike:
            return Point(1, cell.measured.throughput, cell.cell_id)
    return None


def _devices(cell: CellSummary) -> int:
    return cell.trials.cell.devices_in_sync


def _in_titles(bases: Collection[TrainingCell]) -> list[str]:
    """Keys beside the batch size in which the base cases differ: the titles of their panels say them."""
    others = [key for key in TrainingCell.model_fields if key not in ("batch_size", SIZE)]
    return [key for key in others if len({getattr(base, key) for base in bases}) > 1]


def _title_words(base: TrainingCell, key: str) -> str:
    """`fit loop`; of an axis whose entry says no more, `prefetch 2`."""
    if key in TOLD:
        return value_words(base, key)
    value = getattr(base, key)
    return told_value(key, value) if TABLE[key].label is None else f"{value} {key}"


def _panel(
    title: str,
    cells: Sequence[CellSummary],
    curves: tuple[Curve, ...],
    *,
    throughput: bool,
    anchors: Sequence[Published],
) -> Panel:
    counts = tuple(sorted({point.x for curve in curves for point in curve.points}))
    ideal, bound = _limits(cells, counts, throughput=throughput)
    if throughput:
        return Panel(title, curves, "replicas", quantity_of(cell.trials.cell for cell in cells).unit, ideal, bound)
    lowest = min(point.interval.value for curve in curves for point in curve.points)
    floor = max(0.0, 10 * math.floor(lowest / 10 - 0.5))
    overlay = tuple(
        (letter, tuple((n, 100 * value) for n, value in series.efficiency))
        for letter, series in zip(ascii_lowercase, anchors, strict=False)
    )
    return Panel(title, curves, "replicas", "% of the base case", ideal, bound, overlay, floor)


def _curves(cells: Sequence[CellSummary], value: CellValue, told: Collection[str]) -> tuple[Curve, ...]:
    """Every cell that has a value is on a curve, and a curve has one value at each count of devices."""
    families: defaultdict[tuple[object, ...], list[_Valued]] = defaultdict(list)
    for cell in cells:
        of = cell.trials.cell
        if isinstance(of, TrainingCell) and (interval := value(cell)) is not None:
            families[family(of)].append((of, interval))
    return tuple(
        curve for family in families.values() for lead in _leads(family) for curve in _of_lead(lead, family, told)
    )


_Valued = tuple[TrainingCell, Interval]


def _leads(family: Sequence[_Valued]) -> list[TrainingCell]:
    """One cell for each curve: an op has its own, and serves for one replica only where nothing else does."""
    found: dict[tuple[object, ...], TrainingCell] = {}
    for cell in sorted((cell for cell, _ in family), key=lambda cell: cell.devices_in_sync == 1):
        if cell.devices_in_sync > 1 or not any(lies_in_family_on_curve(cell, lead) for lead in found.values()):
            found.setdefault(own_curve(cell), cell)
    return list(found.values())


def _of_lead(lead: TrainingCell, family: Sequence[_Valued], told: Collection[str]) -> Iterator[Curve]:
    """The curve of `lead`; several, by replicas a worker, where workers × replicas make one count in two ways."""
    members = [(cell, interval) for cell, interval in family if lies_in_family_on_curve(cell, lead)]
    shapes = dict.fromkeys(cell.replicas for cell, _ in members if cell.devices_in_sync > 1)
    if len({cell.devices_in_sync for cell, _ in members}) == len(members) or len(shapes) < 2:
        yield _joined(curve_label(lead, told), members)
        return
    for replicas in shapes:
        alike = [member for member in members if member[0].replicas == replicas or member[0].devices_in_sync == 1]
        yield _joined(f"{curve_label(lead, told)}, {replicas} a worker", alike)


def _joined(label: str, members: Sequence[_Valued]) -> Curve:
    ordered = sorted(members, key=lambda member: member[0].devices_in_sync)
    points = tuple(Point(cell.devices_in_sync, interval, cell.cell_id) for cell, interval in ordered)
    return Curve(label, points, strategy=ordered[0][0].strategy)


def curve_label(of: TrainingCell, told: Collection[str] = ()) -> str:
    """What a curve is called in its panel, which says the batch size, of several the loop, and the keys `told`."""
    extra = [f"{of.ps} ps"] if of.asynchronous else []
    extra += [f"model:{of.model_shards}"] if of.model_shards > 1 else []
    name = "no strategy (base)" if of.is_base else of.strategy
    return shortened(", ".join([name, *extra, *sayings(of, without=("loop", *told))]))


def _limits(
    cells: Sequence[CellSummary], counts: Sequence[int], *, throughput: bool
) -> tuple[tuple[tuple[int, float], ...], tuple[tuple[int, float], ...]]:
    """(the ideal line, the bound by processors); the bound is empty where it is the ideal line."""
    if not throughput:
        return tuple((n, 100.0) for n in counts), ()
    base = next((c.measured.throughput.value for c in cells if c.measured and c.trials.cell.is_base), None)
    if base is None:
        return (), ()
    ideal = tuple((n, n * base) for n in counts)
    physical = max((c.trials.physical_devices for c in cells if c.trials.cell.devices_in_sync > 1), default=0)
    if not physical or max(counts) <= physical:
        return ideal, ()
    corner = sorted({*counts, physical} - {n for n in (physical,) if n < min(counts)})
    return ideal, tuple((n, min(n, physical) * base) for n in corner)


def _draw(
    summary: WorkloadSummary,
    panels: Sequence[Panel],
    name: str,
    title: str,
    caption: str,
    overlay: Sequence[Published] = (),
) -> Picture:
    looks = looks_of(panels[:MOST_PANELS])
    shown = with_one_top(_drawn(panels, looks), looks)
    entries = keys(
        looks,
        ideal=any(panel.ideal for panel in shown),
        bound=any(panel.bound for panel in shown),
        bands=has_bands(shown),
        whole=any(panel.whole for panel in shown),
    )
    sources = [f"{letter}: {series.words}" for letter, series in zip(ascii_lowercase, overlay, strict=False)]
    drawn = [draw_panel(panel, looks) for panel in shown]
    caption += hollow_words(shown) + left_out_words(panels, looks, len(shown))
    rows = [*_rows(summary, panels), *_published_rows(overlay)]
    return panelled(drawn, entries, name, title, caption.strip(), rows, sources)


def _drawn(panels: Sequence[Panel], looks: Collection[str]) -> list[Panel]:
    """The first of them, without those whose curves are all below those that have a look: they would be empty."""
    return [panel for panel in panels[:MOST_PANELS] if any(curve.label in looks for curve in panel.curves)]


def _rows(summary: WorkloadSummary, panels: Sequence[Panel]) -> list[ExportRow]:
    by_id = {cell.cell_id: cell for cell in summary.cells}
    rows = []
    for panel in panels:
        for curve in panel.curves:
            for point in curve.points:
                cell = by_id[point.cell_id].trials
                rows.append(
                    {
                        "cell_id": point.cell_id,
                        "cell": cell.cell.label,
                        "curve": curve.label,
                        "panel": panel.title,
                        "replicas": point.x,
                        "unit": panel.y_label,
                        "value": point.interval.value,
                        "low": point.interval.low,
                        "high": point.interval.high,
                        "ideal": dict(panel.ideal).get(point.x),
                        "bound": dict(panel.bound).get(point.x),
                        "whole_machine": panel.whole.interval.value if panel.whole else None,
                        "shared_devices": cell.shared,
                    }
                )
    return rows


def _published_rows(overlay: Sequence[Published]) -> list[ExportRow]:
    """What the overlay draws, and where it comes from: nothing that was measured here."""
    return [
        {
            "curve": series.model,
            "replicas": n,
            "unit": "% of the base case",
            "value": 100 * value,
            "published": series.words,
        }
        for series in overlay
        for n, value in series.efficiency
    ]
