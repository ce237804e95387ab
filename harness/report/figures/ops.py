"""Cross-device ops side by side, relative to the engine's own default."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate

from harness.analysis import Interval, OpGroup, OpResult, WorkloadSummary
from harness.analysis.estimates.verdict import Judgement, Margins
from harness.analysis.ops import OP, judge_ops
from harness.report.export.rows import ExportRow
from harness.report.figures.artists import Axes, Line2D
from harness.report.figures.layout import round_ticks, row_axes, whiskers, x_axis
from harness.report.figures.svg import MARKERS, MUTED, PAPER, SERIES, Picture, picture, style
from harness.report.words.text import NOT_JUDGED, listed, names_apart, percent, significant
from harness.spec.axes import TABLE
from harness.spec.grouping import SIDE_BY_SIDE
from harness.visible import plural

_MOST_GROUPS = 16
_KEY_LETTERS = 34
"""Of an op's name in the legend."""


def ops_figure(summary: WorkloadSummary, name: str, margins: Margins | None = None) -> Picture | None:
    """A row for each op that was measured beside another; None when no two were.

    `margins` are those of the verdicts; None is the defaults.
    """
    margins = margins or Margins()
    verdicts = judge_ops(summary.ops, margins) if summary.judged else {}
    every = [group for group in summary.ops if any(item.relative is not None for item in group.results)]
    groups = every[:_MOST_GROUPS]
    if not groups:
        return None
    names = list(dict.fromkeys(item.name for group in groups for item in group.results))
    looks = {op: index for index, op in enumerate(names)}
    starts = list(accumulate((len(_marks(group)) + 1 for group in groups), initial=0))
    with style():
        places = {
            start + (len(_marks(group)) - 1) / 2: group.label for start, group in zip(starts, groups, strict=False)
        }
        seen = {looks[item.name] for group in groups for item in _marks(group)}
        figure, (axes,) = row_axes(
            places,
            starts[-1] - 1,
            width=8.0,
            row=0.23,
            keys=_legend(looks, seen),
            columns=3,
        )
        axes.axvline(100, color=MUTED, linewidth=1)
        _draw_ops(axes, groups, starts, looks, verdicts)
        x_axis(axes, *round_ticks(*axes.get_xlim(), most=6), "throughput, % of the reference op; 95 % interval")
    found = _found(verdicts, margins) if summary.judged else NOT_JUDGED
    caption = f"{found} {_caption(summary, groups, verdicts)}"
    if len(every) > len(groups):
        caption += f" The first {len(groups)} of {len(every)} groups are drawn; the table and the CSV have all."
    data = _rows(every, summary, verdicts)
    return picture(figure, name, "Cross-device ops side by side", _describe(groups), caption, data)


def _caption(summary: WorkloadSummary, groups: Sequence[OpGroup], verdicts: Mapping[str, Judgement]) -> str:
    """How the figure is to be read."""
    text = (
        "Each op against the reference of its row: the engine's own default (auto) where it was measured, else the "
        "fastest. An interval that runs out of the figure is in the table."
    )
    if any(judgement.verdict == "undecided" for judgement in verdicts.values()):
        text += " A hollow mark is undecided: a difference that counts is as possible as one that does not."
    unproved = {cell.cell_id for cell in summary.cells if cell.trials.status == "unproved"}
    named = [f"{group.label}, {item.name}" for group in groups for item in _marks(group) if item.cell_id in unproved]
    if named:
        text += f" Unproved, so that a fault could have gone unseen: {listed(named)}."
    return text


def _draw_ops(
    axes: Axes,
    groups: Sequence[OpGroup],
    starts: Sequence[int],
    looks: Mapping[str, int],
    verdicts: Mapping[str, Judgement],
) -> None:
    """A dot with its interval for each op, hollow where undecided; all that look alike are one drawn thing."""
    found: defaultdict[tuple[int, bool], list[tuple[int, Interval]]] = defaultdict(list)
    for start, group in zip(starts, groups, strict=False):
        for row, item in enumerate(_marks(group), start=start):
            interval = (item.relative or Interval(1.0, None, None)).scaled(100)
            decided = item.cell_id not in verdicts or verdicts[item.cell_id].verdict != "undecided"
            found[looks[item.name], decided].append((row, interval))
    for (look, decided), dots in found.items():
        colour = SERIES[look % len(SERIES)]
        whiskers(axes, dots, color=colour)
        axes.plot(
            [of.value for _, of in dots],
            [row for row, _ in dots],
            marker=MARKERS[look % len(MARKERS)],
            color=colour,
            markerfacecolor=colour if decided else PAPER,
            linestyle="none",
        )
    values = [100.0, *(of.value for dots in found.values() for _, of in dots)]
    low, high = min(values), max(values)
    axes.set_xlim(max(0.0, low - 0.25 * (high - low) - 2), high + 0.25 * (high - low) + 2)


def _found(verdicts: Mapping[str, Judgement], margins: Margins) -> str:
    """How many ops got which verdict against their reference, and by which rule."""
    counts = Counter(judgement.verdict for judgement in verdicts.values())
    ended = listed(f"{counts[verdict]} {verdict}" for verdict in ("faster", "slower", "equivalent", "undecided"))
    rule = f"δ {percent(margins.delta)}, ε {percent(margins.epsilon)}"
    together = f"; the {len(verdicts)} corrected together, false discovery rate 5 %" if len(verdicts) > 1 else ""
    return f"Of {plural(len(verdicts), 'comparison')} with the reference op {ended} ({rule}{together})."


def _rows(groups: Sequence[OpGroup], summary: WorkloadSummary, verdicts: Mapping[str, Judgement]) -> list[ExportRow]:
    by_id = {cell.cell_id: cell.trials for cell in summary.cells}
    return [
        {
            "cell_id": item.cell_id,
            "held_fixed": group.label,
            "op": item.op,
            **{key: item.cell.get(key) for key in TABLE if key in SIDE_BY_SIDE and key != OP},
            "status": by_id[item.cell_id].status,
            "is_reference": item.cell_id == group.reference_id,
            "relative": item.relative.value if item.relative else None,
            "low": item.relative.low if item.relative else None,
            "high": item.relative.high if item.relative else None,
            "verdict": verdicts[item.cell_id].verdict if item.cell_id in verdicts else None,
            "executed": " ".join(f"{count}×{name}" for name, count in by_id[item.cell_id].executed.operations.items()),
            "fingerprint": by_id[item.cell_id].executed.fingerprint,
        }
        for group in groups
        for item in group.results
    ]


def _marks(group: OpGroup) -> list[OpResult]:
    return [item for item in group.results if item.relative is not None or item.cell_id == group.reference_id]


def _legend(looks: dict[str, int], seen: set[int]) -> list[Line2D]:
    return [
        Line2D(
            [],
            [],
            color=SERIES[look % len(SERIES)],
            marker=MARKERS[look % len(MARKERS)],
            linestyle="none",
            label=label,
        )
        for label, look in zip(names_apart(list(looks), _KEY_LETTERS), looks.values(), strict=True)
        if look in seen
    ]


def _describe(groups: list[OpGroup]) -> str:
    parts = []
    for group in groups:
        for item in _marks(group):
            value = "the reference" if item.relative is None else f"{significant(100 * item.relative.value)} %"
            parts.append(f"{group.label}, {item.name}: {value}")
    return f"Dot plot of throughput relative to the reference op. {'; '.join(parts)}."
