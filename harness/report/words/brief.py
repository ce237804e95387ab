"""The answer at a glance: what a sweep says at its end, within eight lines of a terminal. `show` and the page say the
rest."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from harness.analysis import CellSummary, RunSummary, WorkloadSummary
from harness.analysis.cells import marked
from harness.report.words.answer import (
    AnswerText,
    answers,
    failed_words,
    is_slower,
    keys_apart,
    rankings_words,
    unfinished_words,
)
from harness.report.words.caveats import useless_words
from harness.report.words.headline import (
    by_base,
    default_words,
    fastest_distributes,
    few_words,
    headline_words,
    names_fastest,
    nothing_compared,
    throughput_words,
    without_strategy,
)
from harness.report.words.over import whole_lacking
from harness.report.words.own import own_lines
from harness.report.words.pipelines import lines_of
from harness.report.words.separation import ENOUGH, uncompared, uncompared_words
from harness.report.words.text import NOT_JUDGED, described, ratio, shortened
from harness.spec.axes import NO_MODEL
from harness.visible import plural, printable

COLUMNS = 80
"""Of the terminal that it is written for."""
_NAMELESS = ("undecided", "cannot_know", "beats_one_device")
"""Verdicts whose headline names no cell."""
_ROWS = 4
"""Rows of such a terminal that several answers may take; at least one is told."""
_LONGEST = 60
"""Characters of a name: a user's own may have hundreds."""


def where_kept(path: Path) -> tuple[str, str]:
    """Where the records of the run in this folder are, and what makes a page of them."""
    return f"records: {path}", f"report:  python -m harness report {path}"


def brief_lines(summary: RunSummary) -> tuple[str, ...]:
    """What is fastest, whether distributing pays, what ties, what is wrong: a line each, none longer than two rows."""
    lines = _lines(summary)
    failed = failed_words(summary)
    wrong = (
        rankings_words(summary),
        f"Without a throughput: {failed}." if failed else "",
        *map(_unproved, summary.workloads),
        unfinished_words(summary),
    )
    return tuple(printable(line) for line in (*lines, " ".join(filter(None, wrong))) if line)


def _lines(summary: RunSummary) -> Iterable[str]:
    """The answers, or what is told of all work together."""
    if (own := own_lines(summary)) is not None:
        return _few(own)
    texts = answers(summary)
    return _several(summary, texts) if len(texts) > 1 else _told(summary.workloads[0], texts[0])


def _few(lines: Sequence[str]) -> list[str]:
    """As many as there is room for, two rows each, and how many are left to the others."""
    told = lines[: _ROWS // 2]
    more = len(lines) - len(told)
    return [*told, *([f"And {plural(more, 'line')} more, which show prints."] if more else [])]


def rows(line: str) -> int:
    """How many rows of a terminal of `COLUMNS` a line takes."""
    return -(-len(line) // COLUMNS)


def _told(work: WorkloadSummary, text: AnswerText) -> Iterator[str]:
    """The one answer of a run."""
    if work.answer.best_id is None:
        yield text.headline
        return
    yield _fastest(work)
    yield _pays(work, text)
    yield _ties(work)


def _several(summary: RunSummary, texts: tuple[AnswerText, ...]) -> Iterator[str]:
    """A line for each of as many answers as there is room for, and how many are left to the others."""
    keys, left, told = keys_apart(summary), _ROWS, 0
    for work, text in zip(summary.workloads, texts, strict=True):
        values = [str(value) for key in keys if (value := work.workload.get(key)) != NO_MODEL]
        name = shortened(", ".join(values) or text.workload, _LONGEST)
        line = f"{name}: {_in_a_line(work, text)}"
        if told and rows(line) > left:
            break
        yield line
        left, told = left - rows(line), told + 1
    if more := len(texts) - told:
        yield f"And {plural(more, 'answer')} more, which show prints and the report has."


def _in_a_line(work: WorkloadSummary, text: AnswerText) -> str:
    """The first line, and the headline where that names no cell."""
    if work.answer.best_id is None:
        return text.headline
    if beside := next(lines_of(work), ""):
        return beside
    return f"{_fastest(work)} {headline_words(work)}" if work.answer.verdict in _NAMELESS else _fastest(work)


def _fastest(work: WorkloadSummary) -> str:
    """What is fastest, and how to know its throughput where that is not known."""
    return " ".join(filter(None, (_first(work), useless_words(work))))


def _first(work: WorkloadSummary) -> str:
    """The fastest cell, and what to do where that is known."""
    answer = work.answer
    best = _cell(work, answer.best_id)
    words = f"{_name(work, best)}, {throughput_words(best)}"
    if not work.judged:
        return f"{NOT_JUDGED} The highest throughput so far: {words}."
    if answer.verdict == "do_not_distribute" and not fastest_distributes(work):
        return f"Do not distribute: {words}."
    if answer.verdict == "pays" and answer.best_id == answer.best_distributed_id and answer.speed_up is not None:
        return f"Distribute: {words}, {ratio(answer.speed_up)} {without_strategy(work)}."
    if nothing_compared(work):
        return f"The highest throughput: {words}."
    if len(work.ranking) == 1:
        return f"The only cell that {'could be proved' if work.unranked else 'was measured'}: {words}."
    return f"Fastest: {words}."


def _pays(work: WorkloadSummary, text: AnswerText) -> str:
    """Whether distributing pays, as far as `_first` has not said it."""
    answer = work.answer
    if answer.speed_up is None or answer.best_distributed_id is None:
        return text.verdict
    if not work.judged:
        return ""
    size = ratio(answer.speed_up)
    best = _name(work, _cell(work, answer.best_distributed_id))
    has = "" if answer.best_distributed_id == answer.best_id else f"{best} has "
    match answer.verdict:
        case "pays":
            return f"Distributing pays: {has}{size} {without_strategy(work)}." if has else ""
        case "beats_one_device":
            alone = f"one device; the whole machine without a strategy was not {whole_lacking(work)}"
            return f"Whether distributing pays is unknown: {has}{size} {alone}."
        case "do_not_distribute" if fastest_distributes(work):
            return f"In {by_base(work)[0]} distributing does not pay: {best} has {size} {without_strategy(work)}."
        case "do_not_distribute":
            over = "of that" if answer.best_id == answer.base_id else without_strategy(work)
            return f"Distributed, at best {size} {over}: {best}."
        case "undecided":
            more = f"; about {answer.more_trials} trials a cell would decide it" if answer.more_trials else ""
            unsure = f", and {answer.unsure} of {answer.distributed} may not be slower" if is_slower(work) else ""
            return f"Whether distributing pays is undecided: {has}{size} {without_strategy(work)}{unsure}{more}."
        case _:
            return f"Whether distributing pays cannot be known from {few_words(work)}: use --trials {ENOUGH}."


def _ties(work: WorkloadSummary) -> str:
    """How many cells tie with the fastest, and the simplest of them; where distributing pays, that distributes."""
    answer = work.answer
    count, few = len(answer.tied_ids) - uncompared(work), uncompared_words(work)
    if not names_fastest(work):
        return ""
    if not count:
        return few or ("Every other cell is slower (95 %, all together)." if len(work.ranking) > 1 else "")
    tie = "1 other cell ties with it" if count == 1 else f"{count} others tie with it"
    distributes = answer.verdict == "pays" and answer.simplest_distributed_id is not None
    simplest, which = answer.simplest_id, "the simplest"
    if distributes and answer.simplest_distributed_id != answer.simplest_id:
        simplest, which = answer.simplest_distributed_id, "the simplest that distributes"
    if simplest is None or simplest == answer.best_id:
        return f"{tie}; the fastest is itself {which}. {few}".rstrip()
    return f"{tie}; {which}: {_name(work, _cell(work, simplest))}. {few}".rstrip()


def _unproved(work: WorkloadSummary) -> str:
    out, ranked = len(work.unranked), sum(bool(cell.trials.unproved) for cell in work.ranking)
    if ranked:
        return f"{plural(ranked, 'ranked cell')} could not be proved."
    be = "is" if out == 1 else "are"
    return f"{plural(out, 'measured cell')} {be} unproved and left out of the ranking." if out else ""


def _cell(work: WorkloadSummary, cell_id: str | None) -> CellSummary:
    return next(cell for cell in work.cells if cell.cell_id == cell_id)


def _name(work: WorkloadSummary, cell: CellSummary) -> str:
    """A base case in words, any other as tables have it."""
    of = cell.trials.cell
    words = marked(described(cell.trials), cell.trials) if of.is_base else cell.label
    return shortened(words + default_words(work, cell), _LONGEST)
