"""The answer in a few plain sentences: what the terminal prints and the page opens with."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from harness.analysis import SHARED_LABEL, CellSummary, Interval, Noise, RunSummary, WorkloadSummary
from harness.report.separation import Rival, rivals, separation_words
from harness.report.text import (
    STATUS_WORDS,
    bounds,
    describe,
    listed,
    plural,
    plus_minus,
    printable,
    ratio,
    sentence,
    share,
    significant,
)

_FAILED = ("wrong_result", "unsupported", "out_of_memory", "timeout", "crashed", "interrupted", "missing")
_WIDE = 0.03
_MUCH = 3.0
_ENOUGH = 4
"""Trials from which a corrected t interval is of use."""
VIRTUAL = "Virtual devices: this shows overhead, not hardware scaling."


@dataclass(frozen=True)
class Figure:
    """One of the few numbers that the page sets large."""

    name: str
    value: str
    certainty: str


@dataclass(frozen=True)
class AnswerText:
    """One workload's answer: the headline, then what matters most, then what a careful reader wants next."""

    workload: str
    headline: str
    """The honest answer: what to do, or that it is undecided, or that this run cannot tell."""
    fastest: str
    """What is fastest; empty when nothing was measured."""
    verdict: str
    """Whether distributing pays; empty when nothing was measured."""
    sentences: tuple[str, ...]
    ties: str = ""
    """What else may be the fastest."""
    figures: tuple[Figure, ...] = ()
    rivals: tuple[Rival, ...] = ()
    """The cells that cannot be told apart from the fastest, the likeliest first."""
    separation: str = ""
    """What would tell them apart; empty when nothing is tied."""


def answer_lines(summary: RunSummary) -> tuple[str, ...]:
    """Plain text lines for the terminal, the same sentences as on the page."""
    lines: list[str] = []
    texts = answers(summary)
    for text in texts:
        if len(texts) > 1:
            lines.append(f"{text.workload}:")
        lines += filter(None, [text.headline, text.fastest, text.verdict, text.ties, text.separation])
        lines += text.sentences
    return tuple(map(printable, (*lines, *run_sentences(summary))))


def answers(summary: RunSummary, block_s: float | None = None) -> tuple[AnswerText, ...]:
    """The answer of each workload; `block_s` is how long one block took here, where that is known."""
    return tuple(_answer_of(work, summary.noise, block_s) for work in summary.workloads)


def run_sentences(summary: RunSummary) -> tuple[str, ...]:
    """What holds for the run as a whole: cells without a number, and a sweep that did not end."""
    sentences = []
    failed = [f"{summary.counts[name]} {STATUS_WORDS[name]}" for name in _FAILED if summary.counts.get(name)]
    if failed:
        total = sum(summary.counts.values())
        sentences.append(f"Of {plural(total, 'cell')}, without a throughput: {listed(failed, most=9)}.")
    if summary.status != "finished":
        state = "was interrupted" if summary.status == "interrupted" else "had not finished"
        sentences.append(
            f"The sweep {state}: {summary.trials:,} of {summary.planned:,} planned trials are recorded; "
            f"--resume {summary.run_id} runs the rest."
        )
    return tuple(sentences)


def _answer_of(work: WorkloadSummary, noise: Noise, block_s: float | None) -> AnswerText:
    answer = work.answer
    if answer.best_id is None or answer.throughput is None:
        count = plural(len(work.cells), "cell")
        return AnswerText(work.workload.label, f"Nothing was measured: none of {count} ended well.", "", "", ())
    tied = rivals(work)
    return AnswerText(
        workload=work.workload.label,
        headline=_headline(work),
        fastest=_fastest(work, answer.throughput),
        verdict=_verdict(work),
        sentences=(*_too_few(work), *_caveats(work), *_drift(answer.throughput, noise)),
        ties=_ties(work),
        figures=tuple(_figures(work, answer.throughput)),
        rivals=tied,
        separation=separation_words(tied, block_s),
    )


def _headline(work: WorkloadSummary) -> str:
    answer = work.answer
    best = next(cell for cell in work.cells if cell.cell_id == answer.best_id)
    if best.trials.cell.device.startswith("virtual") and answer.distributed:
        return VIRTUAL
    at = f"{significant(answer.throughput.value)} examples/s" if answer.throughput else ""
    words = f"{describe(best.trials.cell)}, {at}"
    match answer.verdict:
        case "do_not_distribute":
            return f"Do not distribute: {words}."
        case "pays" if answer.best_id == answer.best_distributed_id and answer.speed_up is not None:
            return f"Distribute: {words}, {significant(answer.speed_up.value)}× no strategy."
        case "undecided":
            return "Undecided: these trials cannot tell whether distributing pays."
        case "cannot_know":
            return "Undecided: one trial a cell cannot tell whether distributing pays."
        case _:
            alone = ": the only cell that was measured" if len(work.ranking) == 1 else ""
            return f"{sentence(words)}{alone}."


def _fastest(work: WorkloadSummary, throughput: Interval) -> str:
    cells = {cell.cell_id: cell.trials.cell for cell in work.cells}
    trials = plural(throughput.count, "trial")
    certainty = f"{plus_minus(throughput)}, 95 % interval {bounds(throughput)} from {trials}"
    if not throughput.known:
        certainty = f"{trials}, so no interval"
    best = describe(cells[work.answer.best_id or ""])
    return f"Fastest: {best}, at {significant(throughput.value)} examples/s ({certainty})."


def _figures(work: WorkloadSummary, throughput: Interval) -> Iterator[Figure]:
    """Throughput, speed-up, what it costs, and how many cells come close."""
    answer = work.answer
    yield Figure("fastest cell, examples/s", significant(throughput.value), plus_minus(throughput))
    if answer.speed_up is not None:
        name = "best distributed cell, over the best without a strategy"
        yield Figure(name, f"{significant(answer.speed_up.value)}×", bounds(answer.speed_up))
    costs = _least_overhead(work)
    if costs is not None and costs.vs_none is not None:
        bounded = costs.vs_none.resource_efficiency
        name = f"of what its processors allow, at best ({costs.label})"
        yield Figure(name, f"{significant(100 * bounded.value)} %", bounds(bounded.scaled(100)))
    if len(work.ranking) > 1:
        others = len(work.ranking) - 1
        yield Figure("cannot be told apart from the fastest", f"{len(answer.tied_ids)}", f"of {others:,} others")


def _least_overhead(work: WorkloadSummary) -> CellSummary | None:
    """The distributed cell that comes closest to what its processors allow."""
    known = [cell for cell in work.ranking if cell.vs_none is not None and cell.vs_none.n > 1]
    return max(known, key=lambda cell: cell.vs_none.resource_efficiency.value if cell.vs_none else 0.0, default=None)


def _drift(throughput: Interval, noise: Noise) -> list[str]:
    """Why a throughput may be known to ± 20 % where comparisons are known to ± 1 %."""
    half, paired, alone = throughput.relative_half_width, noise.paired_deviation, noise.cell_deviation
    if half is None or paired is None or alone is None or half < _WIDE or alone < _MUCH * paired:
        return []
    return [
        f"The machine's own speed varied by {significant(100 * alone, 2)} % between blocks, which is what makes the "
        f"interval of the throughput wide; comparisons are made within a block, where cells agree to "
        f"{significant(100 * paired, 2)} %."
    ]


def _ties(work: WorkloadSummary) -> str:
    answer = work.answer
    if not answer.tied_ids:
        return "Every other cell is slower beyond doubt." if len(work.ranking) > 1 else ""
    cells = {cell.cell_id: cell.trials.cell for cell in work.cells}
    count = len(answer.tied_ids)
    simplest = "the simpler of the two" if count == 1 else "the simplest of them"
    text = f"{plural(count, 'other cell')} cannot be told apart from it"
    if answer.simplest_id is not None and answer.simplest_id != answer.best_id:
        return f"{text}; {simplest} is {describe(cells[answer.simplest_id])}."
    return f"{text}: {listed((cells[other].label for other in answer.tied_ids), most=3)}."


def _too_few(work: WorkloadSummary) -> list[str]:
    """Advice where few trials leave nearly everything undecided."""
    trials, others = (work.ranking[0].measured.trials if work.ranking[0].measured else 0), len(work.ranking) - 1
    if trials >= _ENOUGH or len(work.answer.tied_ids) < max(2, others / 2):
        return []
    return [f"{plural(trials, 'trial')} a cell cannot tell so many cells apart: use --trials {_ENOUGH} or more."]


def _verdict(work: WorkloadSummary) -> str:
    answer = work.answer
    cells = {cell.cell_id: cell.trials.cell for cell in work.cells}
    if answer.base_id is None:
        return "Whether distributing pays is unknown: no cell without a strategy was measured."
    if answer.speed_up is None or answer.best_distributed_id is None:
        return "Whether distributing pays is unknown: no cell with more than one replica was measured."
    base, distributed = describe(cells[answer.base_id]), describe(cells[answer.best_distributed_id])
    against = f"{ratio(answer.speed_up)} the throughput of the fastest cell without a strategy ({base})"
    if answer.speed_up_shared:
        against += f" ({SHARED_LABEL})"
    best = (
        "it has" if answer.best_distributed_id == answer.best_id else f"the best distributed cell ({distributed}) has"
    )
    where = "On these virtual devices d" if _is_virtual(work) else "D"
    match answer.verdict:
        case "pays":
            gain = f"{answer.paying} of {answer.distributed} distributed cells gain"
            return f"{where}istributing pays: {best} {against}; {gain}."
        case "do_not_distribute":
            return f"{'On these virtual devices do' if _is_virtual(work) else 'Do'} not distribute: {best} {against}."
        case "undecided":
            return f"Whether distributing pays is undecided: {best} {against}{_undecided(work, answer.speed_up)}"
        case _:
            return f"Whether distributing pays cannot be known from one trial a cell: {best} {against}; use --trials 3."


def _undecided(work: WorkloadSummary, speed_up: Interval) -> str:
    """Why, and what would decide it."""
    answer = work.answer
    low, high = speed_up.low or 0.0, speed_up.high or math.inf
    corrected = f", undecided when corrected for {answer.distributed} comparisons" if low > 1 or high < 1 else ""
    if not answer.more_trials:
        return f"{corrected}."
    return f"{corrected}. About {answer.more_trials} trials a cell would decide it, if the difference is real."


def _caveats(work: WorkloadSummary) -> Iterator[str]:
    answer = work.answer
    if answer.shared:
        yield (
            "Cells with more replicas than processors show the strategy's overhead only, not hardware scaling: they "
            "do not tell what more devices would give."
        )
    cells = {cell.cell_id: cell.trials.cell for cell in work.cells}
    costs = _least_overhead(work)
    if any(cell.device == "virtual-cpu" and cell.replicas_in_sync > 1 for cell in cells.values()):
        yield (
            "These are virtual devices: a replica is about one core, and so is the case without a strategy unless "
            "intra_op_threads says otherwise. One process on all cores (--intra-op-threads) may be faster."
        )
    if costs is not None and costs.vs_none is not None and _is_virtual(work):
        yield (
            f"What a strategy costs here: the best, {costs.label}, reaches "
            f"{share(costs.vs_none.resource_efficiency)} of what its processors allow."
        )
    if answer.best_id is not None and answer.base_id is not None:
        ours, theirs = cells[answer.best_id].global_batch_size, cells[answer.base_id].global_batch_size
        if ours > theirs:
            yield (
                f"It takes {ours} examples a step where the fastest cell without a strategy takes {theirs}: more "
                "examples/s is not the same as fewer seconds to a given accuracy."
            )


def _is_virtual(work: WorkloadSummary) -> bool:
    return work.workload.device.startswith("virtual")
