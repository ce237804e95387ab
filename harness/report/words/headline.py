"""The headline of an answer: what to do, or that it is undecided, or that this run cannot tell."""

import re

from harness.analysis import CellSummary, WorkloadSummary
from harness.analysis.cells import marked
from harness.analysis.likeness import not_like_with_like
from harness.report.words.engines import engine_name
from harness.report.words.over import whole_lacking
from harness.report.words.text import NOT_JUDGED, described, listed, plus_minus_now, ratio, sentence, significant
from harness.spec.naming import TOLD, untold, value_words
from harness.visible import printable


def headline_words(work: WorkloadSummary) -> str:
    """One sentence, of a workload of which something was measured, and what engines differ in beside their speed."""
    return _told(work) + (unlike_words(work) if work.judged else "")


def _told(work: WorkloadSummary) -> str:
    answer = work.answer
    best = next(cell for cell in work.cells if cell.cell_id == answer.best_id)
    words = f"{as_run(best)}{default_words(work, best)}, {throughput_words(best)}"
    match answer.verdict:
        case "not_judged":
            return NOT_JUDGED
        case "do_not_distribute" if fastest_distributes(work):
            has, lacks = by_base(work)
            no_base = f"in {lacks} no cell without a strategy is ranked"
            return f"{sentence(words)}: in {has} distributing does not pay, and {no_base}."
        case "do_not_distribute":
            return f"Do not distribute: {words}."
        case "pays" if answer.best_id == answer.best_distributed_id and answer.speed_up is not None:
            return f"Distribute: {words}, {ratio(answer.speed_up)} {without_strategy(work)}."
        case "beats_one_device":
            return f"Faster than one device; against the whole machine not {whole_lacking(work)}."
        case "undecided":
            simplest = next((cell for cell in work.ranking if cell.cell_id == answer.simplest_id), best)
            return f"Undecided whether distributing pays; until then take {as_run(simplest)}."
        case "cannot_know":
            return f"Undecided: {few_words(work)} cannot tell whether distributing pays."
        case _ if nothing_compared(work):
            return f"Undecided: {few_words(work)} cannot tell which is the fastest."
        case _:
            done = "could be proved" if work.unranked else "was measured"
            alone = f": the only cell that {done}" if len(work.ranking) == 1 else ""
            return f"{sentence(words)}{alone}."


def nothing_compared(work: WorkloadSummary) -> bool:
    """Whether there are several cells and no interval of one against another, as with one trial a cell."""
    others = work.ranking[1:]
    return bool(others) and not any(cell.place is not None and cell.place.compared for cell in others)


def names_fastest(work: WorkloadSummary) -> bool:
    """Whether a cell may be called the fastest: of a sweep that has finished, some of whose cells are compared."""
    return work.judged and not nothing_compared(work)


def as_known(work: WorkloadSummary, word: str) -> str:
    """Words with `fastest` or `best`; with `highest` in its place where nothing says that any is."""
    return word if names_fastest(work) else re.sub("fastest|best", "highest", word)


def few_words(work: WorkloadSummary) -> str:
    """Why nothing is compared: `one trial a cell`, or where some have more, `too few good trials`."""
    most = max((cell.measured.trials for cell in work.ranking if cell.measured is not None), default=0)
    return "one trial a cell" if most <= 1 else "too few good trials"


def as_run(cell: CellSummary) -> str:
    """The cell in words, with the reduction that ran where choosing it was left to TensorFlow."""
    of, ran = cell.trials.cell, cell.trials.executed
    words = marked(described(cell.trials), cell.trials)
    if of.replicas_in_sync == 1 or of.shape.servers or not ran.operations:
        return words
    if ran.differs_from_request:
        return f"{words} ({printable(ran.differs_from_request)})"
    if of.get("cross_device_op") == "auto":
        return f"{words}, op auto (ran {printable(listed(ran.operations))})"
    return words


def without_strategy(work: WorkloadSummary) -> str:
    """`no strategy on all 2 cores` where that is the better base case; `no strategy (float32)` where there are more."""
    base = next(cell.trials for cell in work.cells if cell.cell_id == work.answer.base_id)
    words = f"no strategy on all {base.all_cores} cores" if base.all_cores > 1 else "no strategy"
    told = [*filter(None, [engine_among(work, base.cell_id)]), *(value_words(base.cell, key) for key in varying(work))]
    return f"{words} ({', '.join(told)})" if told else words


def engine_among(work: WorkloadSummary, cell_id: str | None) -> str:
    """The engine of a cell; empty where all ranked cells have one."""
    engines = {cell.cell_id: engine_name(cell) for cell in work.ranking}
    return engines.get(cell_id or "", "") if len(set(engines.values())) > 1 else ""


def unlike_words(work: WorkloadSummary) -> str:
    """That engines are held against each other that compile, compute, begin or are fed otherwise; empty where they do
    not."""
    if not engine_among(work, work.answer.best_id):
        return ""
    told = not_like_with_like([cell.trials for cell in work.ranking])
    return f" {told}" if told else ""


def fastest_distributes(work: WorkloadSummary) -> bool:
    """Whether the fastest cell does: where distributing does not pay, one that had no base case to be held against."""
    return any(cell.cell_id == work.answer.best_id and cell.trials.cell.devices_in_sync > 1 for cell in work.ranking)


def by_base(work: WorkloadSummary) -> tuple[str, str]:
    """What `varying` names, in words: (values of which a cell without a strategy is ranked, those of which none is)."""
    keys, cells = varying(work), [cell.trials.cell for cell in work.ranking]
    told = [(cell.is_base, ", ".join(value_words(cell, key) for key in keys)) for cell in cells]
    has = dict.fromkeys(words for is_base, words in told if is_base)
    return listed(has), listed(dict.fromkeys(words for _, words in told if words not in has))


def default_words(work: WorkloadSummary, cell: CellSummary) -> str:
    """`, float32`: what its own words leave out of keys of which the ranking holds several values."""
    return untold(cell.trials.cell, varying(work))


def varying(work: WorkloadSummary) -> list[str]:
    """Keys beside how the work is distributed of which the ranking holds several values, and its name says so."""
    return [key for key in TOLD if len({cell.trials.cell.get(key) for cell in work.ranking}) > 1]


def throughput_words(cell: CellSummary) -> str:
    """`7,740 examples/s ± 11 % in these minutes`."""
    assert cell.measured is not None
    found = cell.measured.throughput
    unit = cell.trials.cell.work.quantity.unit
    return f"{significant(found.value)} {unit}" + (f" {plus_minus_now(found)}" if found.known else "")
