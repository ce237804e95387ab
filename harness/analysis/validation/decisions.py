"""The decisions of a validation, made from its records as `ab` makes them from its own."""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.analysis.comparison.clocks import Verdicts
from harness.analysis.comparison.pairs import (
    Estimator,
    Pair,
    blocks_wanted,
    by_clock,
    estimate_of,
    pairs_of,
    took_turns,
)
from harness.analysis.comparison.standing import looks_of
from harness.analysis.estimates.verdict import Margins, invalid, judge
from harness.record.manifest import ArmRecord, LooksRecord, RoundRecord, RunManifest, ValidationPlan
from harness.record.trial import Plant, TrialRecord
from harness.spec.work import Cell


@dataclass(frozen=True)
class Decided:
    """One decision of a validation, with all that it was made from."""

    round: int
    cell: Cell
    plant: Plant | None
    """None: the same thing twice."""
    placebo: str | None
    """The kind whose placebo side A holds; only decisions of the same one have the same step."""
    verdicts: Verdicts
    pairs: tuple[Pair, ...]
    seconds: float
    """What the trials of its two sides took, set-up included, one after the other."""

    fixed: frozenset[int] | None = None
    """The blocks before the first look; None where there were no looks."""
    revisions: bool = False
    """Whether each side had a work tree of one commit."""

    @property
    def values(self) -> tuple[float, ...]:
        """The paired log differences that it rests on."""
        return tuple(pair.wall for pair in self.pairs)

    @property
    def unchosen(self) -> tuple[float, ...]:
        """Those whose number was fixed beforehand: of a decision with looks the ones up to the first. Where it
        stopped followed from the values, which moves means and intervals."""
        return tuple(pair.wall for pair in self.pairs if self.fixed is None or pair.block in self.fixed)

    @property
    def truth(self) -> float:
        """The log ratio of throughputs that is there, as far as what is planted is what is stated."""
        return -math.log1p(self.plant.share) if self.plant else 0.0

    @property
    def zygotes(self) -> int:
        """Preloaded processes that each pair was forked from: 2 where each side had one of its own."""
        return 2 if any(pair.a.zygote != pair.b.zygote for pair in self.pairs) else 1


def decisions_of(manifest: RunManifest, trials: Sequence[TrialRecord]) -> tuple[Decided, ...]:
    """Every decision of the rounds that are complete, in the order of rounds and arms.

    Each takes the blocks up to where its own plan ended, though the round may have measured more for the sake of
    another arm. A round that was cut short gives none: half a plan is no decision.
    """
    if not isinstance(plan := manifest.what, ValidationPlan):
        return ()
    cells = {cell.cell_id: cell for cell in manifest.cells}
    by_block: dict[int, list[TrialRecord]] = {}
    for trial in trials:
        by_block.setdefault(trial.block, []).append(trial)
    margins = Margins(plan.delta, plan.epsilon, "the validation's settings")
    made = []
    for number, of in enumerate(plan.rounds):
        if not _finished(of, by_block):
            continue
        kept = [trial for block in of.numbers for trial in by_block[block]]
        for arm in of.decisions:
            pairs = pairs_of(kept, arm.against or "", arm.name)
            used, estimate = (
                _of_two_stages(of, pairs, plan) if manifest.looks is None else _of_looks(of, arm, pairs, manifest.looks)
            )
            made.append(
                Decided(
                    number,
                    cells[of.cell_id],
                    arm.slowed,
                    arm.plant.kind if arm.plant else None,
                    judge_pairs(used, estimate, margins),
                    used,
                    _seconds(used),
                    frozenset(of.blocks[: manifest.looks.after[0]]) if manifest.looks else None,
                    arm.revision and arm.apart,
                )
            )
    return tuple(made)


def _finished(of: RoundRecord, by_block: Mapping[int, Sequence[TrialRecord]]) -> bool:
    """Whether all its decisions have ended, and all their blocks are there."""
    sides = [(arm.against or "", arm.name) for arm in of.decisions]
    return of.ended and all(took_turns(by_block.get(block, ()), sides) for block in of.numbers)


def _of_looks(
    of: RoundRecord, arm: ArmRecord, pairs: Sequence[Pair], record: LooksRecord
) -> tuple[tuple[Pair, ...], Estimator]:
    """The pairs up to the look at which the decision stopped, and that look's estimator."""
    stopped = of.stopped[arm.name]
    number = record.after.index(stopped) + 1
    used = tuple(pair for pair in pairs if pair.block in of.blocks[:stopped])
    return used, functools.partial(looks_of(record, used).estimate, number=number)


def _of_two_stages(of: RoundRecord, pairs: Sequence[Pair], plan: ValidationPlan) -> tuple[tuple[Pair, ...], Estimator]:
    """As many pairs as the spread of the first stage asks for, by Stein's estimator."""
    pilot = [pair for pair in pairs if pair.block in of.pilot]
    values = [pair.wall for pair in pilot]
    wanted = blocks_wanted(values, plan.half_width, plan.max_blocks) if pilot and plan.half_width else len(pilot)
    return tuple(pairs[:wanted]), functools.partial(estimate_of, pilot=len(pilot))


def judge_pairs(pairs: Sequence[Pair], estimate: Estimator, margins: Margins) -> Verdicts:
    """Both clocks' verdicts on pairs."""
    if not pairs:
        return Verdicts(invalid("no block gave a pair of good trials", margins))
    wall, cpu = by_clock(pairs, estimate)
    return Verdicts(judge(wall, margins), None if cpu is None else judge(cpu, margins))


def _seconds(pairs: Sequence[Pair]) -> float:
    parts = ("warmup_s", "steady_s")
    return sum(
        trial.phases.fixed_s + sum(getattr(trial.phases, part) or 0.0 for part in parts)
        for pair in pairs
        for trial in (pair.a, pair.b)
    )
