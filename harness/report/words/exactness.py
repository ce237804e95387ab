"""How exact the comparisons of a run are beside its throughputs, in a sentence that its own noise bears out."""

from harness.analysis import Noise, WorkloadSummary
from harness.report.words.headline import few_words, nothing_compared
from harness.report.words.over import over_base
from harness.report.words.text import NOT_JUDGED, sentence, significant

THESE_MINUTES = (
    "The interval of a throughput is of these minutes: later the machine may be faster or slower, which ratios do not "
    "feel."
)
_UNTOLD = "What taking turns costs a throughput this run does not tell"
_CLEARLY = 1.5
"""From this ratio of the two deviations on, taking turns made comparisons more exact than throughputs."""


def ranking_note(work: WorkloadSummary, noise: Noise, validated: str = "") -> str:
    """What the columns of the ranking are, and how far each is to be trusted; `validated` is what `validate` found on
    this machine of what taking turns costs."""
    marks = "Marked rows cannot be told apart from the fastest." if work.judged else f"{NOT_JUDGED} No row is marked."
    alone_each = work.judged and nothing_compared(work)
    sentences = [sentence(f"{few_words(work)}: no row is marked.")] if alone_each else [marks]
    paired, alone = noise.paired_deviation, noise.cell_deviation
    if paired is not None and alone is not None:
        within, between = (f"{significant(100 * deviation, 2)} %" for deviation in (paired, alone))
        clearly = alone >= _CLEARLY * paired
        how = "and are more exact than the throughputs" if clearly else "but that made them no more exact here"
        over = over_base(work)
        columns = f"'% of fastest' and '{over}' compare" if work.linked else f"'{over}' compares"
        sentences.append(
            f"{columns} trials that took turns, {how}: such comparisons vary by {within}, throughputs by {between}."
        )
    others = len(work.ranking) - 1
    if others > 1 and not alone_each:
        sentences.append(f"The interval of '% of fastest' allows for {others:,} comparisons, hence its width.")
    if any(cell.measured is not None and cell.measured.throughput.known for cell in work.ranking):
        sentences += [THESE_MINUTES, *_turn_words(noise, validated)]
    return " ".join(sentences)


def _turn_words(noise: Noise, validated: str) -> list[str]:
    """What taking turns costs a throughput, as far as this run tells, or else the machine's validation."""
    turn = noise.turn
    if turn is None or turn.low is None or turn.high is None:
        elsewhere = f"'validate' found here: {validated}." if validated else "'validate' measures it."
        return [f"{_UNTOLD}: too few windows came after one of the same trial. {elsewhere}"]
    value, low, high = (significant(100 * (of - 1), 2) for of in (turn.value, turn.low, turn.high))
    size = f"a window after another trial's took {value} % [{low} – {high}] longer than one after the trial's own"
    if turn.low <= 1:
        return [f"{_UNTOLD}: {size}."]
    return [f"Taking turns costs a throughput, and no ratio: {size}."]
