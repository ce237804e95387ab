"""What a careful reader of the answer wants to know next: what the figures do not tell, and how far to trust them."""

from collections.abc import Iterable, Iterator

from harness.analysis import CellSummary, Interval, Noise, WorkloadSummary
from harness.report.words.text import listed, plural, share, significant

_WIDE = 0.03
_MUCH = 3.0
_ENOUGH = 4
"""Trials from which a corrected t interval is of use."""
_MANY_UNSTEADY = 0.1
"""Share of unsteady trials from which it is said even where neither the fastest cell nor its base has one."""


def caveats(work: WorkloadSummary, throughput: Interval, noise: Noise) -> tuple[str, ...]:
    """A sentence each, what matters most first; `throughput` is the fastest cell's."""
    return (*_too_few(work), *_unsteady(work), *_limits(work), *_drift(throughput, noise))


def least_overhead(work: WorkloadSummary) -> CellSummary | None:
    """The distributed cell that comes closest to what its processors allow."""
    known = [cell for cell in work.ranking if cell.vs_none is not None and cell.vs_none.n > 1]
    return max(known, key=lambda cell: cell.vs_none.resource_efficiency.value if cell.vs_none else 0.0, default=None)


def is_virtual(work: WorkloadSummary) -> bool:
    """Whether the workload ran on virtual devices."""
    return str(work.workload.get("device") or "").startswith("virtual")


def _too_few(work: WorkloadSummary) -> Iterator[str]:
    """Advice where few trials leave nearly everything undecided."""
    trials, others = (work.ranking[0].measured.trials if work.ranking[0].measured else 0), len(work.ranking) - 1
    if trials < _ENOUGH and len(work.answer.tied_ids) >= max(2, others / 2):
        yield f"{plural(trials, 'trial')} a cell cannot tell so many cells apart: use --trials {_ENOUGH} or more."


def _unsteady(work: WorkloadSummary) -> Iterator[str]:
    """How many trials never became steady, and whether those are among them that the answer rests on."""
    found, of = _unsteady_of(work.ranking)
    leading = {work.answer.base_id: "the fastest without a strategy", work.answer.best_id: "the fastest cell"}
    counts = [(name, _unsteady_of([cell])) for cell in work.ranking if (name := leading.get(cell.cell_id))]
    if not found or (found < _MANY_UNSTEADY * of and not any(unsteady for _, (unsteady, _) in counts)):
        return
    cells = sum(cell.measured is not None and cell.measured.unsteady > 0 for cell in work.ranking)
    if any(unsteady for _, (unsteady, _) in counts):
        those = ", ".join(f"{unsteady or 'none'} of {trials} of {name}" for name, (unsteady, trials) in counts)
    else:
        names = listed(name for name, _ in counts)
        those = f"{names} {'was' if len(counts) == 1 else 'were'} steady in every trial"
    yield (
        f"{found} of {plural(of, 'trial')}, in {cells} of {plural(len(work.ranking), 'cell')}, were not steady when "
        f"warm-up was cut off, so their throughput may include warm-up ({those}). A larger --max-warmup or --window "
        "helps."
    )


def _unsteady_of(cells: Iterable[CellSummary]) -> tuple[int, int]:
    """(unsteady trials, trials) of the measured cells."""
    measured = [cell.measured for cell in cells if cell.measured is not None]
    return sum(item.unsteady for item in measured), sum(item.trials for item in measured)


def _limits(work: WorkloadSummary) -> Iterator[str]:
    """What was measured is not what a reader may take it for."""
    answer = work.answer
    if answer.shared:
        yield (
            "Cells with more replicas than processors show the strategy's overhead only, not hardware scaling: they "
            "do not tell what more devices would give."
        )
    cells = {cell.cell_id: cell.trials.cell for cell in work.cells}
    costs = least_overhead(work)
    if any(cell.shape.device == "virtual-cpu" and cell.replicas_in_sync > 1 for cell in cells.values()):
        yield (
            "These are virtual devices: a replica is about one core, and so is the case without a strategy unless "
            "intra_op_threads says otherwise. One process on all cores (--intra-op-threads) may be faster."
        )
    if costs is not None and costs.vs_none is not None and is_virtual(work):
        yield (
            f"What a strategy costs here: the best, {costs.label}, reaches "
            f"{share(costs.vs_none.resource_efficiency)} of what its processors allow."
        )
    if answer.best_id is not None and answer.base_id is not None:
        ours, theirs = cells[answer.best_id].work.amount, cells[answer.base_id].work.amount
        quantity = work.workload.quantity
        if ours > theirs:
            yield (
                f"The fastest cell takes {ours} {quantity.many} a step where the fastest without a strategy takes "
                f"{theirs}: more {quantity.unit} is not the same as fewer seconds to a given accuracy."
            )


def _drift(throughput: Interval, noise: Noise) -> Iterator[str]:
    """Why a throughput may be known to ± 20 % where comparisons are known to ± 1 %."""
    half, paired, alone = throughput.relative_half_width, noise.paired_deviation, noise.cell_deviation
    if half is None or paired is None or alone is None or half < _WIDE or alone < _MUCH * paired:
        return
    yield (
        f"The machine's own speed varied by {significant(100 * alone, 2)} % between blocks, which is what makes the "
        f"interval of the throughput wide; comparisons are made within a block, where cells agree to "
        f"{significant(100 * paired, 2)} %."
    )
