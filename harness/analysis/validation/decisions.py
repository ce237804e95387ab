"""The decisions of a validation, made from its records as `ab` makes them from its own."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis.comparison.instruments import Verdicts
from harness.analysis.comparison.pairs import Pair, blocks_wanted, estimate_of, pairs_of, took_turns
from harness.analysis.estimates.verdict import Margins, invalid, judge
from harness.record.manifest import ArmRecord, RoundRecord, RunManifest, ValidationPlan
from harness.record.trial import Plant, TrialRecord
from harness.spec.cell import Cell


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

    @property
    def values(self) -> tuple[float, ...]:
        """The paired log differences that it rests on."""
        return tuple(pair.wall for pair in self.pairs)


def decisions_of(manifest: RunManifest, trials: Sequence[TrialRecord]) -> tuple[Decided, ...]:
    """Every decision of the rounds whose second stage is planned and complete, in the order of rounds and arms.

    Each takes the blocks that its own pilot's spread asks for, though the round may have measured more for
    the sake of another arm. A round that was cut short gives none: half a plan is no decision.
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
        blocks = [*of.pilot, *(of.second or [])]
        if of.second is None or any(not _finished(by_block.get(block, []), of) for block in blocks):
            continue
        kept = [trial for block in blocks for trial in by_block[block]]
        for arm in of.decisions:
            pairs = pairs_of(kept, arm.against or "", arm.name)
            made.append(_decide(number, cells[of.cell_id], of, arm, pairs, margins, plan.half_width, plan.max_blocks))
    return tuple(made)


def _finished(trials: Sequence[TrialRecord], of: RoundRecord) -> bool:
    return took_turns(trials, [(arm.against or "", arm.name) for arm in of.decisions])


def _decide(
    number: int,
    cell: Cell,
    of: RoundRecord,
    arm: ArmRecord,
    pairs: Sequence[Pair],
    margins: Margins,
    half_width: float,
    most: int,
) -> Decided:
    pilot = [pair for pair in pairs if pair.block in of.pilot]
    wanted = blocks_wanted([pair.wall for pair in pilot], half_width, most) if pilot else 0
    used = tuple(pairs[:wanted])
    return Decided(
        number,
        cell,
        arm.slowed,
        arm.plant.kind if arm.plant else None,
        judge_pairs(used, len(pilot), margins),
        used,
        _seconds(used),
    )


def judge_pairs(pairs: Sequence[Pair], pilot: int | None, margins: Margins) -> Verdicts:
    """Both instruments' verdicts on pairs of which the first `pilot` were the first stage (None: all were)."""
    if not pairs:
        return Verdicts(invalid("no block gave a pair of good trials", margins))
    wall = judge(estimate_of([pair.wall for pair in pairs], pilot), margins)
    cpu = [pair.cpu for pair in pairs]
    if any(value is None for value in cpu):
        return Verdicts(wall)
    return Verdicts(wall, judge(estimate_of([value for value in cpu if value is not None], pilot), margins))


def _seconds(pairs: Sequence[Pair]) -> float:
    parts = ("warmup_s", "steady_s")
    return sum(
        trial.phases.fixed_s + sum(getattr(trial.phases, part) or 0.0 for part in parts)
        for pair in pairs
        for trial in (pair.a, pair.b)
    )
