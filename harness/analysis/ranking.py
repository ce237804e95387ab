"""Which cell is fastest, which cannot be told apart from it, and whether distributing pays.

**The order** is that of the layout's means: by throughput, the machine's drift between groups taken out.

**The set that cannot be told apart from the best.** The best is the cell with the highest estimate. Every other cell
is compared with it, and drops out when the best is ahead by more than the largest of its k − 1 comparisons would be
by chance 1 time in 20: Hsu's comparison with the best, one-sided, by Dunnett's distribution of statistics that share
the cell. So the cell that is truly fastest stays in with at least 95 % however many cells there are, and although the
best was picked by its estimate. Variances are moderated (`estimates/layout.py`), but a cell that is noisier than the
others drops out by its own alone; so a noisy cell may stay in the set below one that is out. A cell without an
interval stays. What the rule keeps and what it costs is simulated in `benchmarks/goals/best.py`.

**Whether distributing pays.** Every cell with more than one replica is compared with the fastest
no-strategy cell of the workload, on one device or on the whole machine, which is what one would otherwise
run; the p-values are adjusted by Benjamini–Hochberg at 5 %, see `docs/protocol.md#many-comparisons`.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from harness.analysis.cells import CellTrials, Measured
from harness.analysis.estimates.dunnett import critical_value
from harness.analysis.estimates.intervals import CONFIDENCE, Interval, LogEstimate, t_quantile
from harness.analysis.estimates.layout import Layout
from harness.analysis.estimates.selection import fastest_over, limits_over
from harness.spec.grouping import THREADS
from harness.spec.naming import TOLD, sayings
from harness.spec.quantity import Quantity
from harness.spec.work import Cell

ALPHA = 0.05
_MOST_TRIALS = 1000
Payoff = Literal[
    "pays", "beats_one_device", "do_not_distribute", "undecided", "cannot_know", "not_measured", "not_judged"
]
"""`beats_one_device`: some cell is faster than no strategy on one virtual device, and no strategy on the whole machine,
which nobody would leave unused, was not measured. `not_judged`: the sweep has not finished."""


@dataclass(frozen=True)
class RankingScope:
    """What is held fixed within one ranking, as the cells' kind of work says; its throughputs have one unit."""

    keys: tuple[tuple[str, Any], ...]
    """(key, value), in the order of the axes' product; of what cells may differ in that compete, what all share."""
    label: str
    """One line that names it."""
    quantity: Quantity

    @classmethod
    def of(cls, cells: Sequence[Cell], untrue: Collection[str] = ()) -> "RankingScope":
        """The workload of cells that have one scope. Its name leaves out values that are `untrue` of what ran."""
        first = cells[0]
        return cls(tuple(first.in_common(cells).items()), first.scope_label(cells, untrue), first.work.quantity)

    def get(self, key: str) -> Any:
        """The value of a key, None where this kind of work has no such key."""
        return dict(self.keys).get(key)


@dataclass(frozen=True)
class Place:
    """One row of a ranking."""

    rank: int
    cell_id: str
    against_best: Interval | None
    """X/X_best between the one-sided 95 % limits of Dunnett's distribution; None for the best itself."""
    with_best: bool | None
    """Whether it belongs to the set that cannot be told apart from the best (the best does); None in a sweep that has
    not finished, of which nothing is judged."""
    trials_to_separate: int | None = None
    """Of a cell that cannot be told apart from the best: trials a cell that would, see the function."""

    @property
    def compared(self) -> bool:
        """Whether there is an interval of it against the best; of the best itself there need be none."""
        return self.against_best is None or self.against_best.known


@dataclass(frozen=True)
class Answer:
    """The answer for one workload. Every field but `verdict` is None when nothing was measured."""

    best_id: str | None
    throughput: Interval | None
    tied_ids: tuple[str, ...]
    """Other cells that cannot be told apart from the best."""
    simplest_id: str | None
    """Of the best and its ties the one with the fewest replicas and processes, no strategy before any strategy. One of
    which nothing is known is left out, unless that is so of every other cell."""
    simplest_distributed_id: str | None
    """The same of those with more than one replica."""
    base_id: str | None
    """The fastest no-strategy cell, whatever its batch size and its threads."""
    best_distributed_id: str | None
    speed_up: Interval | None
    """The fastest distributed cell over `base_id`, allowing for that it was chosen among `distributed`."""
    verdict: Payoff
    paying: int
    """Distributed cells faster than the base at a false discovery rate of 5 %."""
    distributed: int
    """Distributed cells that were compared: those of whose precision and XLA some no-strategy cell is ranked."""
    unsure: int
    """Of these, those of which it is not known by themselves whether they are faster or slower than the base."""
    shared: bool
    """Replicas of some distributed cell shared processors: it shows overhead, not hardware scaling."""
    speed_up_shared: bool
    """The same of the very cell that `speed_up` is about."""
    more_trials: int | None
    """When undecided: trials in all that an interval as wide as the difference would need, if that is known: that of
    the speed-up, or, where the best is slower beyond doubt, that of the unsure cell that needs the most."""


def rank(cell_ids: Iterable[str], layout: Layout, judged: bool = True) -> tuple[Place, ...]:
    """The cells in order, the fastest first, each compared with the best; all are in the layout.

    Unless `judged` no cell is in or out of the set: nothing is decided of a sweep that has not finished.
    """
    ordered = sorted(cell_ids, key=lambda cell_id: (-layout.mean(cell_id), cell_id))
    best = [Place(1, cell_id, None, True) for cell_id in ordered[:1]]
    found = (*best, *(_place(position, ordered, layout) for position in range(2, len(ordered) + 1)))
    return found if judged else tuple(replace(place, with_best=None, trials_to_separate=None) for place in found)


def _place(position: int, ordered: Sequence[str], layout: Layout) -> Place:
    own, others = ordered[position - 1], [*ordered[: position - 1], *ordered[position:]]
    ratio = layout.ratio(own, ordered[0], to_best=True)
    limit = critical_value(ratio, len(others), layout.correlation(own, others), CONFIDENCE)
    # each end by itself holds with 95 %, so that both together do with 90 %
    against = ratio.reaching(limit, limit, 2 * CONFIDENCE - 1, "Dunnett" if len(others) > 1 else None)
    # no interval, no difference: with one trial each nothing can be told apart
    if against.high is not None and against.high < 1:
        return Place(position, own, against, False)
    return Place(position, own, against, True, trials_to_separate(ratio, limit))


def answer(cells: Sequence[CellTrials], places: Sequence[Place], layout: Layout, judged: bool = True) -> Answer:
    """The answer of one workload from its ranking; unless `judged` its figures alone."""
    by_id = {cell.cell_id: cell for cell in cells}
    ordered = [by_id[place.cell_id] for place in places]
    tied = [place.cell_id for place in places[1:] if place.with_best]
    bases = [cell for cell in ordered if cell.cell.is_base]
    base = next(iter(bases), None)
    every = [cell for cell in ordered if cell.cell.devices_in_sync > 1]
    # one of another precision would be compared with no strategy of this one: what precision gains is no gain of it
    distributed = [cell for cell in every if not bases or any(_told_alike(cell, base) for base in bases)]
    ratios = [] if base is None else [layout.ratio(cell.cell_id, base.cell_id) for cell in distributed]
    speed_up, compared = None, ([cell.cell_id for cell in distributed], [cell.cell_id for cell in bases])
    if ratios:
        speed_up = fastest_over(layout, *compared)
    verdict, paying = _payoff(ratios, speed_up, base, ordered)
    unsure = [ratio for ratio in ratios if not _differs(ratio)]
    if not judged:
        verdict, paying, unsure = "not_judged", 0, []
    best = ordered[0] if ordered else None
    fast = _simplest_first([by_id[place.cell_id] for place in _to_choose_from(places)], ordered)
    simplest = next(iter(fast), None)
    simplest_distributed = next((cell for cell in fast if cell.cell.devices_in_sync > 1), None)
    return Answer(
        best_id=best.cell_id if best else None,
        throughput=best.measured.throughput if best and best.measured else None,
        tied_ids=tuple(tied),
        simplest_id=simplest.cell_id if simplest else None,
        simplest_distributed_id=simplest_distributed.cell_id if simplest_distributed else None,
        base_id=base.cell_id if base else None,
        best_distributed_id=distributed[0].cell_id if distributed else None,
        speed_up=speed_up,
        verdict=verdict,
        paying=paying,
        distributed=len(ratios),
        unsure=len(unsure),
        shared=any(cell.shared for cell in every),
        speed_up_shared=bool(distributed) and distributed[0].shared,
        more_trials=_more_trials(speed_up, unsure, layout, *compared) if verdict == "undecided" else None,
    )


def _to_choose_from(places: Sequence[Place]) -> list[Place]:
    """The set without the cells of which nothing is known; all of it where that is so of every other cell."""
    within = [place for place in places if place.with_best]
    compared = [place for place in within if place.compared]
    return compared if any(place.compared for place in places[1:]) else within


def _more_trials(
    speed_up: Interval | None, unsure: Sequence[LogEstimate], layout: Layout, cells: Sequence[str], bases: Sequence[str]
) -> int | None:
    """The trials after which an undecided answer would be decided: where the best is slower, that of the unsure."""
    slower = speed_up is not None and speed_up.high is not None and speed_up.high < 1
    return _trials_of_all(unsure) if slower else _trials_to_decide(layout, cells, bases)


def _trials_to_decide(layout: Layout, cells: Sequence[str], bases: Sequence[str]) -> int | None:
    """The trials after which the interval of the speed-up would leave 1 out."""
    ratio, (below, above) = layout.ratio(cells[0], bases[0]), limits_over(layout, cells, bases)
    return trials_to_separate(ratio, below if ratio.mean > 0 else above)


def _trials_of_all(ratios: Sequence[LogEstimate]) -> int | None:
    """Trials after which each would differ from 1 by itself; once all do, correction for their number does nothing."""
    limits = [t_quantile(ratio.degrees_of_freedom) if ratio.degrees_of_freedom else None for ratio in ratios]
    needed = [trials_to_separate(ratio, limit) for ratio, limit in zip(ratios, limits, strict=True)]
    known = [trials for trials in needed if trials is not None]
    return max(known, default=None) if len(known) == len(ratios) else None


def _differs(ratio: LogEstimate) -> bool:
    p = ratio.p_value()
    return p is not None and p <= ALPHA


def _payoff(
    ratios: Sequence[LogEstimate], speed_up: Interval | None, base: CellTrials | None, ordered: Sequence[CellTrials]
) -> tuple[Payoff, int]:
    """`payoff_of`, held against the speed-up of the best, and against what the base leaves unused of the machine."""
    verdict, paying = payoff_of(ratios)
    if speed_up is not None and _holds_one(speed_up) and verdict in ("pays", "do_not_distribute"):
        verdict = "undecided"  # some cells gain or lose, but of the best that is not known so closely
    if verdict == "pays" and base is not None and not _has_whole_machine(base, ordered):
        verdict = "beats_one_device"
    return verdict, paying


def _holds_one(speed_up: Interval) -> bool:
    return speed_up.low is not None and speed_up.high is not None and speed_up.low <= 1 <= speed_up.high


def _has_whole_machine(base: CellTrials, ordered: Sequence[CellTrials]) -> bool:
    """Whether the fastest no-strategy cell was the best of all that one process can do here."""
    return not base.device.shares_cores or any(cell.all_cores and _told_alike(cell, base) for cell in ordered)


def _told_alike(one: CellTrials, other: CellTrials) -> bool:
    return all(one.cell.get(key) == other.cell.get(key) for key in TOLD)


def trials_to_separate(ratio: LogEstimate, limit: float | None) -> int | None:
    """The fewest P with limit·s/√P ≤ |d|: trials a cell after which the interval would leave 1 out.

    d is the log ratio seen and s = SE·√(trials behind it), both taken as true: in half of such repetitions the
    interval comes out wider. None when it would take more than a thousand, or when nothing is known.
    """
    if ratio.standard_error is None or limit is None or ratio.mean == 0:
        return None
    wanted = ratio.count * (limit * ratio.standard_error / ratio.mean) ** 2
    return max(ratio.count + 1, math.ceil(wanted)) if wanted <= _MOST_TRIALS else None


def payoff_of(ratios: Sequence[LogEstimate]) -> tuple[Payoff, int]:
    """(whether distributing pays, how many cells pay), from the log ratios over the no-strategy base.

    pays: at least one cell is faster; do_not_distribute: every cell is slower; undecided: neither.
    """
    if not ratios:
        return "not_measured", 0
    known = [(ratio.mean, p) for ratio in ratios if (p := ratio.p_value()) is not None]
    if not known:
        return "cannot_know", 0
    adjusted = benjamini_hochberg([p for _, p in known])
    significant = [mean for (mean, _), p in zip(known, adjusted, strict=True) if p <= ALPHA]
    paying = sum(mean > 0 for mean in significant)
    if paying:
        return "pays", paying
    return ("do_not_distribute" if len(significant) == len(ratios) else "undecided"), 0


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values in the order given: reject those ≤ q for a false discovery rate of q (1995)."""
    # `scipy.stats.false_discovery_control`, but for its import: half a second of every command that ranks
    count = len(p_values)
    adjusted = [1.0] * count
    least = 1.0
    for place, index in reversed(list(enumerate(sorted(range(count), key=p_values.__getitem__), start=1))):
        least = min(least, p_values[index] * (count / place))
        adjusted[index] = least
    return adjusted


def references_of(cells: Sequence[CellTrials]) -> list[Measured]:
    """Cells through which others may be compared: no-strategy cells, those with most trials first."""
    bases = [cell.measured for cell in cells if cell.cell.is_base and cell.measured is not None]
    return sorted(bases, key=lambda measured: -measured.trials)


def _throughput(cell: CellTrials) -> float:
    assert cell.measured is not None
    return cell.measured.throughput.value


def _simplest_first(cells: Sequence[CellTrials], ranked: Sequence[CellTrials]) -> list[CellTrials]:
    """By devices, processes, whether there is a strategy, how many of its keys are not at their defaults, and then the
    fastest first. An engine is no key to count, nor is its only loop: each has names of its own for its default."""
    loops: defaultdict[Any, set[Any]] = defaultdict(set)
    for cell in ranked:
        loops[cell.cell.get("engine")].add(cell.cell.get("loop"))

    def simplicity(cell: CellTrials) -> tuple[int, int, bool, int, float]:
        of = cell.cell
        only = ("loop",) if len(loops[of.get("engine")]) < 2 else ()
        chosen = len(sayings(of, without=(*THREADS, "engine", *only)))
        return of.devices_in_sync, of.shape.workers + of.shape.servers, not of.is_base, chosen, -_throughput(cell)

    return sorted(cells, key=simplicity)
