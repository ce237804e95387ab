"""What the looks of a sealed plan say of the blocks that are there: no more than what a completed look shows."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.analysis.comparison.pairs import Pair, pairs_of, took_turns
from harness.analysis.estimates.intervals import LogEstimate
from harness.analysis.estimates.looks import Looks
from harness.analysis.estimates.verdict import Margins
from harness.record.manifest import LooksRecord
from harness.record.trial import TrialRecord

LEAST_STEPS = 0.5
"""Share of a window that is steps at least: one that is shorter than what it should cost was not that dear."""


@dataclass(frozen=True)
class Standing:
    """Where a decision stands: at the look at which it stopped, or at the last one that is complete."""

    looks: Looks
    number: int
    """From 1; 0 before the first look is complete."""
    decided: bool
    """Whether the plan ends there for its result."""
    pairs: tuple[Pair, ...]
    """Up to that look, and none after it."""
    blocks: int
    """Blocks that are complete without a gap before them."""
    so_far: tuple[Pair, ...]
    """Pairs of all of these."""
    planned: int
    """Blocks that the first look was planned after."""

    @property
    def ended(self) -> bool:
        """Whether nothing is left to measure."""
        return self.decided or self.number == len(self.looks.after)

    def over(self) -> "Standing":
        """Of a run that has ended: one whose limit in time came before its first look has that look at what it has.

        No figure was looked at before, and time knows none, so it errs as seldom as a plan of so many blocks.
        """
        if self.number or len(self.so_far) < 2:
            return self
        return replace(
            self, looks=replace(Looks.planned((len(self.so_far),)), steps=self.looks.steps), number=1, pairs=self.so_far
        )

    def estimate(self, values: Sequence[float]) -> LogEstimate:
        """The mean of these values of its pairs, with the intervals of the look."""
        return self.looks.estimate(values, self.number)


def standing_of(
    trials: Sequence[TrialRecord],
    blocks: Sequence[int],
    sides: tuple[str, str],
    record: LooksRecord,
    margins: Margins,
) -> Standing:
    """Go through the looks that are complete; `blocks` are the numbers of the decision's blocks, in order.

    `margins` are those that it was planned for. A block is complete when both sides took turns in it, however they
    ended; one that gave no pair is missing from the pairs of a look, which is taken all the same.
    """
    there: dict[int, list[TrialRecord]] = {}
    for trial in trials:
        there.setdefault(trial.block, []).append(trial)
    complete = next((i for i, block in enumerate(blocks) if not took_turns(there.get(block, ()), [sides])), len(blocks))
    pairs = {pair.block: pair for pair in pairs_of([t for b in blocks[:complete] for t in there[b]], *sides)}
    number, decided = 0, False
    used: tuple[Pair, ...] = ()
    looks = looks_of(record, tuple(pairs.values()))
    for after in looks.after:
        if after > complete or decided:
            break
        number += 1
        used = tuple(pairs[block] for block in blocks[:after] if block in pairs)
        looks = looks_of(record, used)
        decided = looks.stops([pair.wall for pair in used], number, margins)
    return Standing(looks, number, decided, used, complete, tuple(pairs.values()), looks.after[0])


def looks_of(record: LooksRecord, pairs: Sequence[Pair]) -> Looks:
    """A recorded plan's looks, at `pairs`, whose windows say what share of one is steps."""
    steps = steps_share(pairs, record.window_cost_s or 0.0)
    return Looks(tuple(record.after), tuple(record.different), tuple(record.equivalent), steps)


def steps_share(pairs: Sequence[Pair], cost_s: float) -> float:
    """What is left of a window, of the median over trials, that costs `cost_s` beside its steps; half at least."""
    windows = [trial.windows for pair in pairs for trial in (pair.a, pair.b) if trial.windows is not None]
    seconds = [statistics.median(one.seconds[one.measured_from :]) for one in windows]
    return max(LEAST_STEPS, 1 - cost_s / statistics.median(seconds)) if seconds else 1.0
