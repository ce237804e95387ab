"""How exact the comparisons of a run are beside its throughputs, in a sentence that its own noise bears out."""

from harness.analysis import Noise, WorkloadSummary
from harness.report.words.text import significant

_CLEARLY = 1.5
"""From this ratio of the two deviations on, taking turns made comparisons more exact than throughputs."""


def ranking_note(work: WorkloadSummary, noise: Noise) -> str:
    """What the columns of the ranking are, and how far each is to be trusted."""
    sentences = ["Marked rows cannot be told apart from the fastest."]
    paired, alone = noise.paired_deviation, noise.cell_deviation
    if paired is not None and alone is not None:
        within, between = (f"{significant(100 * deviation, 2)} %" for deviation in (paired, alone))
        clearly = alone >= _CLEARLY * paired
        how = "and are more exact than the throughputs" if clearly else "but that made them no more exact here"
        sentences.append(
            f"'% of fastest' and '× no strategy' compare trials that took turns, {how}: such comparisons vary by "
            f"{within}, throughputs by {between}."
        )
    others = len(work.ranking) - 1
    if others > 1:
        sentences.append(f"The interval of '% of fastest' is corrected for {others:,} comparisons, hence its width.")
    return " ".join(sentences)
