"""The answer in a few plain sentences: what the terminal prints and the page opens with."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from harness.analysis import SHARED_LABEL, Interval, Noise, RunSummary, WorkloadSummary
from harness.analysis.cells import marked
from harness.analysis.collectives import of_collectives
from harness.analysis.estimates.verdict import Margins
from harness.analysis.pipelines import FedModel
from harness.report.words.caveats import GAINS, caveats, is_virtual
from harness.report.words.collectives import collective_lines
from harness.report.words.headline import (
    as_known,
    as_run,
    by_base,
    default_words,
    engine_among,
    fastest_distributes,
    few_words,
    headline_words,
    names_fastest,
    nothing_compared,
    varying,
    without_strategy,
)
from harness.report.words.over import whole_lacking
from harness.report.words.pipelines import headline_of, lines_of, model_figures, ranked_models
from harness.report.words.separation import (
    ENOUGH,
    Rival,
    one_replica_words,
    rivals,
    separation_words,
    ties_words,
    uncompared_words,
)
from harness.report.words.text import (
    STATUS_WORDS,
    bounds,
    bounds_now,
    described,
    listed,
    not_tried_again,
    plus_minus_now,
    ratio,
    shortened,
    significant,
)
from harness.report.words.wrong import wrong_words
from harness.spec.axes import TABLE
from harness.spec.naming import key_words
from harness.visible import plural, printable

_FAILED = ("wrong_result", "unsupported", "out_of_memory", "timeout", "crashed", "interrupted", "missing")


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
    wrong: tuple[str, ...] = ()
    """What not to use, for it computes the wrong thing."""
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
        lines += filter(None, [text.headline, *text.wrong, text.fastest, text.verdict, text.ties, text.separation])
        lines += text.sentences
    return tuple(map(printable, (*lines, *run_sentences(summary))))


def answers(
    summary: RunSummary, block_s: float | None = None, margins: Margins | None = None
) -> tuple[AnswerText, ...]:
    """The answer of each workload, but one of all collectives; `block_s` is how long one block took here, where that is
    known, and `margins` are what ops are judged by, by default the usual ones."""
    if all(map(of_collectives, summary.workloads)) and (lines := collective_lines(summary)):
        return (_of_collectives(summary, *lines),)
    return tuple(
        replace(_answer_of(work, summary.noise, block_s, margins or Margins()), wrong=tuple(wrong_words(work)))
        for work in summary.workloads
    )


def run_sentences(summary: RunSummary) -> tuple[str, ...]:
    """What holds for the run as a whole: why it has several rankings, cells without a number, and a sweep that did
    not end."""
    failed, total = failed_words(summary), sum(summary.counts.values())
    sentences = (
        rankings_words(summary),
        f"Of {plural(total, 'cell')}, without a throughput: {failed}." if failed else "",
        unfinished_words(summary),
    )
    return tuple(filter(None, sentences))


def rankings_words(summary: RunSummary) -> str:
    """Why a run has several rankings; empty of one that has not."""
    reasons = [TABLE[key].apart for key in keys_apart(summary)]
    return f"{plural(len(summary.workloads), 'ranking')}, for {listed(reasons)}." if reasons else ""


def failed_words(summary: RunSummary) -> str:
    """How many cells have no number, by what became of them; empty where every one has."""
    words = {**STATUS_WORDS, "wrong_result": "wrong"}
    return listed((f"{summary.counts[name]} {words[name]}" for name in _FAILED if summary.counts.get(name)), 9)


def unfinished_words(summary: RunSummary) -> str:
    """How far a sweep came that did not end, and how to go on; what a limit on time cost one that did."""
    if summary.judged:
        if not summary.no_time_for:
            return ""
        asked = plural(summary.blocks + summary.no_time_for, "block")
        least = " beside the two that an interval needs, which is wide then: give it a longer --time, or fewer cells"
        wide = least if summary.blocks < 3 else ""
        return f"There was no time for {summary.no_time_for} of {asked}{wide}."
    stopped = summary.status == "interrupted"
    state, when = ("was interrupted", "") if stopped else ("has not finished", " once nothing measures it")
    recorded, never = summary.trials - summary.again, summary.not_run_again
    unsupported = f"; {not_tried_again(never)}" if never else ""
    ends = "runs the rest" if summary.planned > recorded + never else "ends it"
    return (
        f"The sweep {state}: {recorded:,} of {summary.planned:,} planned trials are recorded{unsupported}. It is not "
        f"judged before its end; --resume {summary.run_id} {ends}{when}."
    )


def keys_apart(summary: RunSummary) -> list[str]:
    """Keys for whose sake cells are not ranked together, in which the rankings of this run differ."""
    scopes = [work.workload for work in summary.workloads]
    return [key for key, axis in TABLE.items() if axis.apart and len({scope.get(key) for scope in scopes}) > 1]


def left_out_words(work: WorkloadSummary) -> str:
    """How many measured cells the ranking leaves out because they are unproved, and why; or how many it has of them."""
    out, taken_in = work.unranked, [cell for cell in work.ranking if cell.trials.unproved]
    if taken_in:
        return f"{plural(len(taken_in), 'ranked cell')} could not be proved: marked, and ranked as asked for."
    if not out:
        return ""
    why = listed(dict.fromkeys(cell.trials.unproved or "" for cell in out), most=2)
    be = "is" if len(out) == 1 else "are"
    return (
        f"{plural(len(out), 'measured cell')} {be} unproved and left out of the ranking ({why}); --rank-unproved ranks "
        f"{'it' if len(out) == 1 else 'them'}."
    )


def _answer_of(work: WorkloadSummary, noise: Noise, block_s: float | None, margins: Margins) -> AnswerText:
    answer = work.answer
    if answer.best_id is None or answer.throughput is None:
        competing = [cell for cell in work.cells if cell.trials.cell.competes]
        count = plural(len(competing), "cell")
        if work.unranked:
            said = f"Nothing to recommend: of {count} none could be proved."
            return AnswerText(work.workload.label, said, "", "", (left_out_words(work),))
        none = f"none of {count}" if len(competing) > 1 else "its only cell has not"
        return AnswerText(work.workload.label, f"Nothing was measured: {none} ended well.", "", "", ())
    if models := ranked_models(work):
        return _of_pipelines(work, models, block_s)
    return AnswerText(
        workload=work.workload.label,
        headline=headline_words(work),
        fastest=_fastest(work, answer.throughput),
        verdict=_verdict(work),
        sentences=(
            *filter(None, [one_replica_words(work), left_out_words(work)]),
            *caveats(work, answer.throughput, noise, margins),
        ),
        ties=ties_words(work),
        figures=tuple(_figures(work, answer.throughput)),
        rivals=() if nothing_compared(work) else rivals(work),
        separation=uncompared_words(work) if answer.more_trials else separation_words(work, block_s),
    )


def _of_pipelines(work: WorkloadSummary, models: tuple[FedModel, ...], block_s: float | None) -> AnswerText:
    """What the input of each model leaves it, the tightest first."""
    first, *more = lines_of(work)
    return AnswerText(
        workload=work.workload.label,
        headline=headline_of(models),
        fastest=first,
        verdict="",
        sentences=tuple(filter(None, (*more, left_out_words(work)))),
        ties=ties_words(work),
        figures=tuple(Figure(*figure) for figure in model_figures(models)),
        rivals=rivals(work),
        separation=separation_words(work, block_s),
    )


def _of_collectives(summary: RunSummary, headline: str, second: str = "", *more: str) -> AnswerText:
    """What they come to: which op is the fastest at a size is told by their table, a row each."""
    left_out = filter(None, map(left_out_words, summary.workloads))
    wrong = tuple(dict.fromkeys(words for work in summary.workloads for words in wrong_words(work)))
    return AnswerText("collectives", headline, second, "", (*more, *dict.fromkeys(left_out)), wrong)


def _fastest(work: WorkloadSummary, throughput: Interval) -> str:
    best = next(cell for cell in work.cells if cell.cell_id == work.answer.best_id)
    trials = plural(throughput.count, "trial")
    certainty = f"95 % interval {bounds_now(throughput)}, from {trials}"
    if not throughput.known:
        certainty = f"{trials}, so no interval"
    name = "Fastest" if names_fastest(work) else f"The highest throughput{'' if work.judged else ' so far'}"
    return f"{name}: {as_run(best)}, at {significant(throughput.value)} {work.workload.quantity.unit} ({certainty})."


def _figures(work: WorkloadSummary, throughput: Interval) -> Iterator[Figure]:
    """Throughput, speed-up, and how many cells come close."""
    answer = work.answer
    first = f"the {as_known(work, 'fastest')}{'' if work.judged else ' so far'}"
    name = f"{work.workload.quantity.unit}, {first} ({shortened(work.ranking[0].label)})"
    yield Figure(name, significant(throughput.value), plus_minus_now(throughput))
    if answer.speed_up is not None:
        most = f"{as_known(work, 'best')} of {answer.distributed} distributed cells"
        which = most if answer.distributed > 1 else "distributed cell"
        if engine := engine_among(work, answer.best_distributed_id):
            which += f" ({engine})"
        name = f"the {which}, over {without_strategy(work)}"
        yield Figure(name, f"{significant(answer.speed_up.value)}×", bounds(answer.speed_up))
    if len(work.ranking) > 1 and names_fastest(work):
        others = len(work.ranking) - 1
        yield Figure("cannot be told apart from the fastest", f"{len(answer.tied_ids)}", f"of {others:,} others")


def _verdict(work: WorkloadSummary) -> str:
    answer = work.answer
    cells = {cell.cell_id: cell for cell in work.cells}
    if not any(cell.trials.cell.base.is_base for cell in work.cells):
        return ""
    if answer.base_id is None or answer.speed_up is None or answer.best_distributed_id is None:
        return f"Whether distributing pays is unknown: {_lacking_side(work)}."
    base, distributed = (
        marked(described(cell.trials) + default_words(work, cell), cell.trials)
        for cell in (cells[answer.base_id], cells[answer.best_distributed_id])
    )
    if not work.judged:
        return f"So far {distributed} has {ratio(answer.speed_up)} the throughput of {base}."
    against = _against(work, answer.speed_up, base)
    best = (
        f"the {as_known(work, 'fastest')} has"
        if answer.best_distributed_id == answer.best_id
        else f"the {as_known(work, 'best')} distributed cell ({distributed}) has"
    )
    where = "On these virtual devices d" if is_virtual(work) else "D"
    match answer.verdict:
        case "pays":
            gain = f"{answer.paying} of {answer.distributed} distributed cells gain"
            return f"{where}istributing pays: {best} {against}; {gain}."
        case "beats_one_device":
            whole = "the whole machine without a strategy, which one would run instead"
            no_whole = f"{whole}, was not {whole_lacking(work)}"
            return f"Whether distributing pays is unknown: {best} {against}, but {no_whole}."
        case "do_not_distribute" if fastest_distributes(work):
            has, lacks = by_base(work)
            no_base = f"in {lacks} no cell without a strategy is ranked"
            return f"{where}istributing does not pay in {has}: the best there ({distributed}) has {against}; {no_base}."
        case "do_not_distribute":
            return f"{'On these virtual devices do' if is_virtual(work) else 'Do'} not distribute: {best} {against}."
        case "undecided":
            return f"Whether distributing pays is undecided: {best} {against}{_undecided(work, answer.speed_up)}"
        case _:
            more = f"use --trials {ENOUGH}"
            return f"Whether distributing pays cannot be known from {few_words(work)}: {best} {against}; {more}."


def _lacking_side(work: WorkloadSummary) -> str:
    """Of what the answer compares, the side of which there is no cell."""
    done = "measured and proved" if work.unranked else "measured"
    if work.answer.base_id is None:
        return f"no cell without a strategy was {done}"
    alone = any(cell.trials.cell.devices_in_sync > 1 for cell in work.ranking)
    lacking = f" in the {listed(map(key_words, varying(work)))} of one without a strategy" if alone else ""
    return f"no cell with more than one replica was {done}{lacking}"


def _against(work: WorkloadSummary, speed_up: Interval, base: str) -> str:
    """What the best distributed cell has over the fastest one without a strategy."""
    answer = work.answer
    whatever = f", whatever its {listed(map(key_words, keys))}" if (keys := varying(work)) else ""
    fastest = as_known(work, "fastest cell")
    against = f"{ratio(speed_up)} the throughput of the {fastest} without a strategy{whatever} ({base})"
    if answer.distributed > 1:
        against += f", chosen as the {as_known(work, 'best')} of {answer.distributed}"
    if answer.speed_up_shared and answer.verdict not in GAINS:
        against += f" ({SHARED_LABEL})"
    return against


def _undecided(work: WorkloadSummary, speed_up: Interval) -> str:
    """Why, and what would decide it."""
    answer = work.answer
    corrected = f", undecided when corrected for {answer.distributed} comparisons"
    why = corrected if (speed_up.low or 0.0) > 1 else _left_out(work)
    if is_slower(work):
        why = f"; it is slower, but of {answer.unsure} of {answer.distributed} distributed cells that is not known"
    if not answer.more_trials:
        return f"{why}."
    return f"{why}; about {answer.more_trials} trials a cell would decide it, if the difference is real."


def is_slower(work: WorkloadSummary) -> bool:
    """Whether the best distributed cell is slower beyond doubt."""
    return work.answer.speed_up is not None and (work.answer.speed_up.high or math.inf) < 1


def _left_out(work: WorkloadSummary) -> str:
    """Why the set that may be the fastest can lack one of two cells that this interval does not tell apart.

    Where neither is the fastest, the set compares them with a third, and there is nothing to explain.
    """
    compared = (work.answer.best_distributed_id, work.answer.base_id)
    if work.answer.best_id not in compared:
        return ""
    for cell in work.ranking:
        if cell.cell_id in compared and cell.place is not None and cell.place.with_best is False:
            return f", though the ranking leaves {cell.label} out: its limit has one side, this interval two"
    return ""
