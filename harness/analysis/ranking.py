"""Which cell is fastest, which cannot be told apart from it, and whether distributing pays.

**The order** is that of `adjusted_means`: by throughput, the machine's drift between groups taken out.

**The set that cannot be told apart from the best.** The best is the cell with the highest estimate. Each
other cell is compared with it by the log ratio (paired where the two took turns), in an interval
corrected for the number of comparisons (Bonferroni, 1 − 0.05/(k − 1)); the cell is in the set unless the
whole interval lies on the slower side. This is Hsu's multiple comparison with the best in its
distribution-free form: the cell that is truly fastest drops out only if some other cell beats it
significantly in one of the k − 1 comparisons *it* takes part in, so it stays in with at least 95 %
however many cells there are, and although the best was picked by its estimate. (Benjamini–Hochberg does
not give that: it bounds the share of wrongly dropped cells among the dropped. Simulated with a quarter to
a half of 20–40 cells tied for the best and 4 to 12 trials each, a truly fastest cell stayed in 99–100 % of
the runs with this rule, and in 92–95 % with Benjamini–Hochberg.)

**Whether distributing pays.** Every cell with more than one replica is compared with the fastest
no-strategy cell of the workload, which is what one would otherwise run; the p-values are adjusted by
Benjamini–Hochberg at 5 %, see `docs/protocol.md#many-comparisons`.
"""

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harness.analysis.cells import CellTrials, Measured
from harness.analysis.estimates.drift import adjusted_means
from harness.analysis.estimates.intervals import CONFIDENCE, Interval, LogEstimate, compare, stein_trials, t_quantile
from harness.spec.cell import Cell, TrainingCell
from harness.spec.work import Quantity

ALPHA = 0.05
_MOST_TRIALS = 1000
Payoff = Literal["pays", "do_not_distribute", "undecided", "cannot_know", "not_measured"]


@dataclass(frozen=True)
class RankingScope:
    """What is held fixed within one ranking, as the cells' kind of work says; its throughputs have one unit."""

    keys: tuple[tuple[str, Any], ...]
    """(key, value), in the order of the axes' product."""
    label: str
    """One line that names it."""
    quantity: Quantity

    @classmethod
    def of(cls, cell: Cell) -> "RankingScope":
        """The workload that the cell belongs to."""
        return cls(tuple(cell.scope.items()), cell.scope_label, cell.work.quantity)

    def get(self, key: str) -> Any:
        """The value of a key, None where this kind of work has no such key."""
        return dict(self.keys).get(key)


@dataclass(frozen=True)
class Place:
    """One row of a ranking."""

    rank: int
    cell_id: str
    against_best: Interval | None
    """X/X_best with its corrected interval; None for the best itself."""
    with_best: bool
    """Whether it belongs to the set that cannot be told apart from the best (the best does)."""
    trials_to_separate: int | None = None
    """Of a cell that cannot be told apart from the best: trials a cell that would, see `trials_to_separate`."""


@dataclass(frozen=True)
class Answer:
    """The answer for one workload. Every field but `verdict` is None when nothing was measured."""

    best_id: str | None
    throughput: Interval | None
    tied_ids: tuple[str, ...]
    """Other cells that cannot be told apart from the best."""
    simplest_id: str | None
    """Of the best and its ties the one with the fewest replicas and processes, no strategy before any strategy."""
    simplest_distributed_id: str | None
    """The same of those with more than one replica."""
    base_id: str | None
    """The fastest no-strategy cell, whatever its batch size."""
    best_distributed_id: str | None
    speed_up: Interval | None
    """The fastest distributed cell over `base_id`."""
    verdict: Payoff
    paying: int
    """Distributed cells faster than the base at a false discovery rate of 5 %."""
    distributed: int
    """Distributed cells that were compared."""
    shared: bool
    """Replicas of some distributed cell shared processors: it shows overhead, not hardware scaling."""
    speed_up_shared: bool
    """The same of the very cell that `speed_up` is about."""
    more_trials: int | None
    """When undecided: trials in all that an interval as wide as the difference would need, if that is known."""


def rank(cells: Sequence[CellTrials], references: Sequence[Measured]) -> tuple[Place, ...]:
    """The measured ones of `cells` in order, the fastest first, each compared with the best."""
    samples = {cell.cell_id: cell.measured.sample for cell in cells if cell.measured is not None}
    adjusted = adjusted_means(samples)
    ordered = sorted(
        (cell for cell in cells if cell.measured), key=lambda cell: (-adjusted[cell.cell_id], cell.cell_id)
    )
    if not ordered:
        return ()
    best, *others = ordered
    confidence = 1 - (1 - CONFIDENCE) / max(1, len(others))
    places = [Place(1, best.cell_id, None, True)]
    for position, cell in enumerate(others, start=2):
        ratio = _ratio(cell, best, references)
        bounds = ratio.log_bounds(confidence)
        # no interval, no difference: with one trial each nothing can be told apart
        with_best = bounds is None or bounds[1] >= 0
        needed = trials_to_separate(ratio, confidence) if with_best else None
        places.append(Place(position, cell.cell_id, ratio.interval(confidence), with_best, needed))
    return tuple(places)


def answer(cells: Sequence[CellTrials], places: Sequence[Place], references: Sequence[Measured]) -> Answer:
    """The answer of one workload from its ranking."""
    by_id = {cell.cell_id: cell for cell in cells}
    ordered = [by_id[place.cell_id] for place in places]
    tied = [place.cell_id for place in places[1:] if place.with_best]
    base = next((cell for cell in ordered if cell.cell.is_base), None)
    distributed = [cell for cell in ordered if cell.cell.devices_in_sync > 1]
    ratios = [] if base is None else [_ratio(cell, base, references) for cell in distributed]
    verdict, paying = judge(ratios)
    best = ordered[0] if ordered else None
    fast = sorted((by_id[place.cell_id] for place in places if place.with_best), key=_simplicity)
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
        speed_up=ratios[0].interval() if ratios else None,
        verdict=verdict,
        paying=paying,
        distributed=len(ratios),
        shared=any(cell.shared for cell in distributed),
        speed_up_shared=bool(distributed) and distributed[0].shared,
        more_trials=_trials_to_decide(ratios[0]) if verdict == "undecided" else None,
    )


def _trials_to_decide(ratio: LogEstimate) -> int | None:
    """Stein's P for a half-width equal to the difference seen; None when that says nothing."""
    if ratio.deviation is None or ratio.mean == 0:
        return None
    needed = stein_trials(ratio.deviation, ratio.count, abs(ratio.mean))
    return needed if ratio.count < needed <= _MOST_TRIALS else None


def trials_to_separate(ratio: LogEstimate, confidence: float) -> int | None:
    """The fewest P with t(P−1)·s/√P ≤ |d|: trials a cell after which the interval would leave 1 out.

    d is the log ratio seen and s = SE·√(trials behind it), both taken as true: in half of such repetitions the
    interval comes out wider. t is that of a run of P trials (Stein's, of a second stage, would keep the pilot's).
    None when it would take more than a thousand, or when nothing is known.
    """
    if ratio.standard_error is None or ratio.mean == 0:
        return None
    deviation = ratio.standard_error * math.sqrt(ratio.count)
    candidates = range(ratio.count + 1, _MOST_TRIALS + 1)

    def separates(trials: int) -> bool:
        """Once true it stays true: t(P − 1)/√P falls as P grows."""
        return t_quantile(trials - 1, confidence) * deviation <= abs(ratio.mean) * math.sqrt(trials)

    place = bisect.bisect_left(candidates, True, key=separates)
    return candidates[place] if place < len(candidates) else None


def judge(ratios: Sequence[LogEstimate]) -> tuple[Payoff, int]:
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
    """Adjusted p-values in the order given: reject those ≤ q for a false discovery rate of q (1995).

    As `scipy.stats.false_discovery_control`, whose import would make every `show` half as long again.
    """
    count = len(p_values)
    adjusted = [1.0] * count
    smallest = 1.0
    descending = sorted(range(count), key=lambda index: p_values[index], reverse=True)
    for place, index in enumerate(descending):
        smallest = min(smallest, p_values[index] * count / (count - place))
        adjusted[index] = smallest
    return adjusted


def references_of(cells: Sequence[CellTrials]) -> list[Measured]:
    """Cells through which others may be compared: no-strategy cells, those with most trials first."""
    bases = [cell.measured for cell in cells if cell.cell.is_base and cell.measured is not None]
    return sorted(bases, key=lambda measured: -measured.trials)


def _ratio(cell: CellTrials, base: CellTrials, references: Sequence[Measured]) -> LogEstimate:
    assert cell.measured is not None
    assert base.measured is not None
    return compare(cell.measured.sample, base.measured.sample, (item.sample for item in references))


def _throughput(cell: CellTrials) -> float:
    assert cell.measured is not None
    return cell.measured.throughput.value


def _simplicity(cell: CellTrials) -> tuple[int, int, bool, bool, float]:
    of = cell.cell
    strategy = not of.is_base
    op = isinstance(of, TrainingCell) and of.cross_device_op != "auto"
    return of.devices_in_sync, of.shape.workers + of.shape.servers, strategy, op, -_throughput(cell)
