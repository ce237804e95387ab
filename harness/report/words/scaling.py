"""What the captions of throughput and efficiency against replicas say was found."""

from collections.abc import Collection

from harness.analysis import CellSummary, WorkloadSummary
from harness.report.words.headline import as_known, default_words, names_fastest
from harness.report.words.over import over_base
from harness.report.words.text import described, listed, share_of, shortened, significant


def found_fastest(summary: WorkloadSummary) -> str:
    """The steepest speed-up over the same batch on one device, beside its ideal and its bound.

    Without an interval: that of one cell says nothing of the steepest of many. The headline has one that does.
    """
    cells = _distributed(summary)
    if not cells:
        return ""
    best = max(cells, key=lambda cell: cell.vs_none.speed_up.value if cell.vs_none else 0.0)
    assert best.vs_none is not None
    scaling = best.vs_none
    what = "largest gain" if scaling.speed_up.value >= 1 else "smallest loss"
    text = (
        f"The {what} at one batch size is {shortened(best.label)}: {significant(scaling.speed_up.value)}"
        f"{over_base(summary)}, where {significant(scaling.ideal, 2)}× is ideal"
    )
    if scaling.bound < scaling.ideal:
        text += f" and {significant(scaling.bound, 2)}× is what the processors allow"
    return text + "."


def found_efficient(summary: WorkloadSummary, shared: bool) -> str:
    """Between which cells the efficiency lies; both are chosen by it, so neither has an interval."""
    known = [
        (cell.vs_none.resource_efficiency if shared else cell.vs_none.efficiency, cell)
        for cell in _distributed(summary)
        if cell.vs_none is not None
    ]
    if not known:
        return ""
    best, worst = max(known, key=lambda pair: pair[0].value), min(known, key=lambda pair: pair[0].value)
    text = f"With more than one replica it is at most {share_of(best[0].value)} ({shortened(best[1].label)})"
    return text + (f" and at least {share_of(worst[0].value)} ({shortened(worst[1].label)})." if best != worst else ".")


def over_the_better_base(summary: WorkloadSummary) -> str:
    """The headline's gain, without its interval."""
    answer, by_id = summary.answer, {cell.cell_id: cell for cell in summary.cells}
    if answer.speed_up is None or answer.base_id is None or answer.best_distributed_id is None:
        return ""
    base, best, most = by_id[answer.base_id], by_id[answer.best_distributed_id], as_known(summary, "fastest")
    bases = sum(cell.trials.cell.is_base for cell in summary.ranking)
    of_bases = f", the {most} of its {bases} base cases" if bases > 1 else ""
    return (
        f"The {most} distributed cell, {shortened(best.label)}, has {significant(answer.speed_up.value)} times the "
        f"throughput of {described(base.trials)}{default_words(summary, base)}{of_bases}. "
    )


def whole_machine_words(summary: WorkloadSummary, drawn: Collection[str]) -> str:
    """What the lines across the panels are: no curves, and where none is faster, what one would run instead of any."""
    found = [cell for cell in summary.ranking if cell.cell_id in drawn]
    does = listed(
        f"{significant(cell.measured.throughput.value)} {cell.trials.cell.work.quantity.unit} ({cell.label})"
        for cell in found
        if cell.measured
    )
    if not does:
        return ""
    several = len(found) > 1
    lines = "The lines across are" if several else "The line across is"
    run = ""
    if found[0].cell_id == summary.answer.base_id and names_fastest(summary):
        run = f"{'; the first is' if several else ','} what one would run instead of any strategy"
    return f"{lines} no strategy on all {found[0].trials.all_cores} cores: {does}{run}. "


def _distributed(summary: WorkloadSummary) -> list[CellSummary]:
    return [cell for cell in summary.ranking if cell.vs_none is not None and cell.vs_none.n > 1]
