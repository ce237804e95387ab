"""The answer in a few plain sentences: what the terminal prints and the page opens with."""

import math
from dataclasses import dataclass

from harness.analysis import SHARED_LABEL, Interval, Noise, RunSummary, WorkloadSummary
from harness.report.text import STATUS_WORDS, bounds, describe, listed, plural, ratio, significant

_FAILED = ("wrong_result", "unsupported", "out_of_memory", "timeout", "crashed", "interrupted", "missing")
_WIDE = 0.03
_MUCH = 3.0
_ENOUGH = 4
"""Trials from which a corrected t interval is of use."""


@dataclass(frozen=True)
class AnswerText:
    """One workload's answer: the two sentences that matter most, and those that a careful reader wants next."""

    workload: str
    headline: str
    """What is fastest."""
    verdict: str
    """Whether distributing pays; empty when nothing was measured."""
    sentences: tuple[str, ...]


def answer_lines(summary: RunSummary) -> tuple[str, ...]:
    """Plain text lines for the terminal, the same sentences as on the page."""
    lines: list[str] = []
    texts = answers(summary)
    for text in texts:
        if len(texts) > 1:
            lines.append(f"{text.workload}:")
        lines += [text.headline, *filter(None, [text.verdict]), *text.sentences]
    return (*lines, *run_sentences(summary))


def answers(summary: RunSummary) -> tuple[AnswerText, ...]:
    """The answer of each workload."""
    return tuple(_answer_of(work, summary.noise) for work in summary.workloads)


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


def _answer_of(work: WorkloadSummary, noise: Noise) -> AnswerText:
    answer = work.answer
    if answer.best_id is None or answer.throughput is None:
        count = plural(len(work.cells), "cell")
        return AnswerText(work.workload.label, f"Nothing was measured: none of {count} ended well.", "", ())
    cells = {cell.cell_id: cell.trials.cell for cell in work.cells}
    best = describe(cells[answer.best_id])
    trials = plural(answer.throughput.count, "trial")
    certainty = f"95 % interval {bounds(answer.throughput)} from {trials}"
    if not answer.throughput.known:
        certainty = f"{trials}, so no interval"
    headline = f"Fastest: {best}, at {significant(answer.throughput.value)} examples/s ({certainty})."
    sentences = (*_ties(work), *_too_few(work), *_caveats(work), *_drift(answer.throughput, noise))
    return AnswerText(work.workload.label, headline, _verdict(work), sentences)


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


def _ties(work: WorkloadSummary) -> list[str]:
    answer = work.answer
    if not answer.tied_ids:
        return ["Every other cell is slower beyond doubt."] if len(work.ranking) > 1 else []
    cells = {cell.cell_id: cell.trials.cell for cell in work.cells}
    count = len(answer.tied_ids)
    simplest = "the simpler of the two" if count == 1 else "the simplest of them"
    sentence = f"{plural(count, 'other cell')} cannot be told apart from it"
    if answer.simplest_id is not None and answer.simplest_id != answer.best_id:
        return [f"{sentence}; {simplest} is {describe(cells[answer.simplest_id])}."]
    return [f"{sentence}: {listed((cells[other].label for other in answer.tied_ids), most=3)}."]


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
    match answer.verdict:
        case "pays":
            return (
                f"Distributing pays: {best} {against}; {answer.paying} of {answer.distributed} distributed cells gain."
            )
        case "do_not_distribute":
            return f"Do not distribute: {best} {against}."
        case "undecided":
            more = (
                f" About {answer.more_trials} trials a cell would decide it, if the difference is real."
                if answer.more_trials
                else ""
            )
            low, high = answer.speed_up.low or 0.0, answer.speed_up.high or math.inf
            corrected = (
                f", undecided when corrected for {answer.distributed} comparisons" if low > 1 or high < 1 else ""
            )
            return f"Whether distributing pays is undecided: {best} {against}{corrected}.{more}"
        case _:
            return f"Whether distributing pays cannot be known from one trial a cell: {best} {against}; use --trials 3."


def _caveats(work: WorkloadSummary) -> list[str]:
    answer = work.answer
    caveats = []
    if answer.shared:
        caveats.append(
            "Cells with more replicas than processors show the strategy's overhead only, not hardware scaling: they "
            "do not tell what more devices would give."
        )
    cells = {cell.cell_id: cell.trials.cell for cell in work.cells}
    if any(cell.device == "virtual-cpu" and cell.replicas_in_sync > 1 for cell in cells.values()):
        caveats.append(
            "These are virtual devices: a replica is about one core, and so is the case without a strategy unless "
            "intra_op_threads says otherwise. One process on all cores (--intra-op-threads) may be faster."
        )
    if answer.best_id is not None and answer.base_id is not None:
        ours, theirs = cells[answer.best_id].global_batch_size, cells[answer.base_id].global_batch_size
        if ours > theirs:
            caveats.append(
                f"It takes {ours} examples a step where the fastest cell without a strategy takes {theirs}: more "
                "examples/s is not the same as fewer seconds to a given accuracy."
            )
    return caveats
