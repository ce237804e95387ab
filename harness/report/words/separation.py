"""The cells that cannot be told apart from the fastest, and what would tell them apart."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis import WorkloadSummary
from harness.report.words.headline import few_words, names_fastest
from harness.report.words.text import described, listed, share, significant
from harness.visible import plural, printable

ENOUGH = 4
"""Trials from which a corrected t interval is of use: what is advised where there are fewer."""
AFFORDABLE = 50
"""Trials a cell that one may want to pay for."""


@dataclass(frozen=True)
class Rival:
    """One cell that may be the fastest."""

    cell: str
    against_best: str
    """Its throughput as a share of the fastest's, with the corrected interval."""
    known: bool
    """Whether there is an interval at all: with one trial a cell nothing can be told."""
    trials: int | None
    """Trials a cell that would separate the two, if the difference seen is real."""
    words: str
    """The same in words."""


def rivals(work: WorkloadSummary) -> tuple[Rival, ...]:
    """Every cell of the set but the fastest itself, in the ranking's order."""
    found = []
    for cell in work.ranking[1:]:
        place = cell.place
        if place is None or not place.with_best or place.against_best is None:
            continue
        known = place.against_best.known
        trials = place.trials_to_separate
        words = f"about {plural(trials, 'trial')} a cell" if trials else "more than a thousand trials: take it as equal"
        if not known and not trials:
            words = "two trials a cell or more, to know anything"
        against = share(place.against_best)
        found.append(Rival(printable(described(cell.trials)), against, known, trials, words))
    return tuple(found)


def ties_words(work: WorkloadSummary) -> str:
    """How many cells tie with the fastest, and which of them to take: the simplest; where distributing pays, the
    simplest that distributes."""
    answer = work.answer
    if not names_fastest(work):
        return ""
    if not answer.tied_ids:
        return "Every other cell is slower (95 %, all together)." if len(work.ranking) > 1 else ""
    cells = {cell.cell_id: cell for cell in work.ranking}
    count = len(answer.tied_ids)
    text = f"{plural(count, 'other cell')} cannot be told apart from the fastest"
    simplest, distributed = cells.get(answer.simplest_id or ""), cells.get(answer.simplest_distributed_id or "")
    if simplest is None or simplest.cell_id == answer.best_id:
        return f"{text}: {listed((cells[other].label for other in answer.tied_ids), most=3)}."
    if answer.verdict == "pays" and distributed is not None and distributed is not simplest:
        which = f"; the simplest that distributes is {described(distributed.trials)}"
        if distributed.cell_id == answer.best_id:
            which = ", which is itself the simplest that distributes"
        return f"{text}{which}."
    among = "the simpler of the two" if count == 1 else "the simplest of them"
    return f"{text}; {among} is {described(simplest.trials)}."


def one_replica_words(work: WorkloadSummary) -> str:
    """Where distributing pays, a cell of one replica that ties with the fastest, and how much slower it may be."""
    answer = work.answer
    cell = next((cell for cell in work.ranking if cell.cell_id == answer.simplest_id), None)
    if answer.verdict != "pays" or cell is None or answer.simplest_id == answer.simplest_distributed_id:
        return ""
    against = cell.place.against_best if cell.place is not None else None
    words = f"Among those that tie, on one replica: {described(cell.trials)}"
    if against is None:
        return f"{words}."
    risk = ""
    if against.low is not None and against.low < 1:
        risk = f", which may be as fast or up to {significant(100 * (1 - against.low), 2)} % slower"
    return f"{words}{risk} ({share(against)} of the fastest)."


def separation_words(work: WorkloadSummary, block_s: float | None) -> str:
    """What would separate the rivals from the fastest; empty when there is nothing to separate."""
    tied = rivals(work)
    known = [rival for rival in tied if rival.known]
    if tied and len(tied) - len(known) == len(work.ranking) - 1:
        return f"With {few_words(work)} nothing can be told apart: --trials {ENOUGH} or more."
    return " ".join(filter(None, (_of_known(known, len(tied), block_s), uncompared_words(work))))


def uncompared(work: WorkloadSummary) -> int:
    """How many cells are in the set because nothing is known of them; 0 where nothing is known of any."""
    count = sum(not rival.known for rival in rivals(work))
    return 0 if count == len(work.ranking) - 1 else count


def uncompared_words(work: WorkloadSummary) -> str:
    """The same in a sentence; empty where there is none."""
    count = uncompared(work)
    be = "has" if count == 1 else "have"
    return f"{plural(count, 'other cell')} {be} too few good trials to be compared." if count else ""


def _of_known(known: Sequence[Rival], tied: int, block_s: float | None) -> str:
    """What would separate those of the `tied` of which something is known."""
    if not known:
        return ""
    needed = sorted(rival.trials for rival in known if rival.trials)
    if not needed:
        return "No affordable number of trials would tell them from the fastest: choose the simplest."
    within = [trials for trials in needed if trials <= AFFORDABLE] or needed[:1]
    most, equal = within[-1], len(known) - len(needed)
    which = "it" if tied == 1 else "all" if len(within) == tied else f"{len(within)} of the {tied}"
    lasts = f", {_duration(most * block_s)} here" if block_s is not None else ""
    text = (
        f"What would separate {which} from the fastest: about {plural(most, 'trial')} a cell (--trials {most}{lasts}), "
        "if the differences seen are real"
    )
    if len(needed) > len(within):
        text += f"; {len(needed) - len(within)} more would take up to {needed[-1]}"
    if equal:
        differ, them = ("differs", "it") if equal == 1 else ("differ", "them")
        text += f"; {equal} {differ} by so little that no affordable number would do: take {them} as equal"
    return f"{text}. To decide between two cells only, harness ab needs less."


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"about {significant(seconds, 2)} s"
    if seconds < 5400:
        return f"about {significant(seconds / 60, 2)} min"
    return f"about {significant(seconds / 3600, 2)} h"
