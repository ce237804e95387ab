"""How two sides came to be compared, and how each way is said: one entry a kind of comparison."""

from collections.abc import Mapping
from dataclasses import dataclass

from harness.analysis.comparison.result import ComparisonKind

STAY = "were mean and spread to stay as they are"


@dataclass(frozen=True, kw_only=True)
class Phrases:
    """The words of one kind of comparison."""

    heading: str
    """Which side is which: `{a}` and `{b}` are their titles, `{run}` is the run."""
    least: str
    """The fewest measurements that give an interval, for a table; empty where none gives one."""
    least_in_words: str
    """The same in a sentence."""
    to_decide: str
    """What would decide one undecided comparison; `{count}` is how many it takes."""
    unit_to_decide: str
    """What the counts of a whole table are of."""
    no_count: str = f"more than 1,000 would be needed to decide it, {STAY}"
    """Of one undecided comparison that no count up to 1,000 decides."""
    alone: str = "; `python -m harness ab` decides the one that matters"
    """What to do about a verdict that holds by itself and not among many."""
    one_decision: bool = False
    """Whether a person set the two sides apart to decide between them, so that the verdict comes first."""


PHRASES: Mapping[ComparisonKind, Phrases] = {
    "runs": Phrases(
        heading="A is run {a}; B is run {b}.",
        least="2 trials a side",
        least_in_words="two trials a side, and --trials 5 is usual",
        to_decide=f"about {{count}} trials a side would decide it, {STAY} (--trials {{count}} in both runs); `python "
        "-m harness ab` needs fewer, because its sides take turns",
        unit_to_decide=f"trials a side that would decide it, {STAY} (--trials in both runs). `python -m harness ab` "
        "needs fewer, because its sides take turns",
    ),
    "along": Phrases(
        heading="A is {a}; B is {b}, all else equal, in run {run}.",
        least="2 pairs",
        least_in_words="two trials a side, and --trials 5 is usual",
        to_decide=f"about {{count}} pairs would decide it, {STAY} (--trials {{count}})",
        unit_to_decide=f"pairs in all that would decide it, {STAY} (--trials)",
    ),
    "ab": Phrases(
        heading="A is {a}; B is {b}. They took turns in run {run}.",
        least="2 blocks",
        least_in_words="two complete blocks",
        to_decide=f"about {{count}} blocks in all would decide it, {STAY} (--max-blocks {{count}})",
        unit_to_decide=f"blocks in all that would decide it, {STAY} (--max-blocks)",
        one_decision=True,
    ),
    "published": Phrases(
        heading="A is run {a}; B is run {b}.",
        least="",
        least_in_words="",
        to_decide=f"about {{count}} trials of the measured side would decide it, {STAY} (--trials {{count}})",
        unit_to_decide=f"trials of the measured side that would decide it, {STAY} (--trials)",
        no_count="no number of trials of the measured side up to 1,000 would decide it: the published interval stays "
        "as wide as it is",
        alone="",
    ),
}
"""By the kind of comparison."""
