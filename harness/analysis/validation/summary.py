"""What the decisions of a validation say about the method: false alarms, power, noise floor."""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence

from harness.analysis.estimates.intervals import log_mean, pooled_deviation
from harness.analysis.estimates.power import clopper_pearson, noise_floor, smallest_effect, unpaired
from harness.analysis.validation.calibration import false_alarms, holding, plant_sizes, spreads
from harness.analysis.validation.decisions import Decided, decisions_of
from harness.analysis.validation.turns import turn_costs
from harness.record.manifest import RunManifest, ValidationPlan
from harness.record.reading import Run
from harness.record.trial import TrialRecord
from harness.record.validation import LARGEST_LOG, Effect, Floor, ValidationRecord

ArmKey = tuple[str, str | None, float]


def validation_of(run: Run) -> ValidationRecord:
    """The record of a validation as far as it has come. Pure; HarnessError on a value that is not finite."""
    manifest, plan = run.manifest, run.manifest.part(ValidationPlan)
    made = decisions_of(manifest, run.trials)
    facts = manifest.facts
    machine_id = facts.get("machine.id")
    return ValidationRecord(
        run_id=manifest.run_id,
        created_utc=manifest.created_utc,
        harness_version=manifest.harness_version,
        complete=len({decided.round for decided in made}) == len(plan.rounds),
        quick=plan.quick,
        machine_id=machine_id if isinstance(machine_id, str) else None,
        facts=facts,
        delta=plan.delta,
        epsilon=plan.epsilon,
        windows=manifest.sweep.windows,
        window_s=manifest.sweep.window,
        pilot_blocks=manifest.looks.after[0] if manifest.looks else len(plan.rounds[0].pilot),
        max_blocks=plan.max_blocks,
        looks=manifest.looks.after if manifest.looks else [],
        effects=[_effect(same) for same in grouped(made)],
        floors=_floors(manifest, made),
        spreads=spreads(made),
        plants=plant_sizes(made),
        turns=turn_costs(run.trials),
        revisions_left_out=plan.revisions_left_out,
        unproved=sorted({trial.cell_id for trial in run.trials if trial.status == "unproved"}),
    )


def grouped(made: Iterable[Decided]) -> list[list[Decided]]:
    """Decisions by cell and what was planted."""
    groups: dict[ArmKey, list[Decided]] = {}
    for decided in made:
        plant = decided.plant
        key = (decided.cell.cell_id, plant.kind if plant else None, plant.share if plant else 0.0)
        groups.setdefault(key, []).append(decided)
    return [groups[key] for key in sorted(groups, key=lambda key: (key[0], key[1] or "", key[2]))]


def _effect(same: Sequence[Decided]) -> Effect:
    plant = same[0].plant
    verdicts = Counter(decided.verdicts.wall.verdict for decided in same)
    # a decision is the unit here: its blocks are minutes apart from the next one's
    means = [log_mean(decided.unchosen, "t").mean for decided in same if decided.unchosen]
    mean = log_mean(means, "t") if means else None
    bounds = mean.log_bounds() if mean else None
    if bounds is not None and max(map(abs, bounds)) > LARGEST_LOG:
        bounds = None  # ends that no float can hold say nothing
    spread = [log_mean(decided.values, "paired t") for decided in same if decided.values]
    return Effect(
        cell=same[0].cell,
        plant=plant.kind if plant else None,
        share=plant.share if plant else 0.0,
        verdicts=dict(verdicts),
        slower=clopper_pearson(verdicts["slower"], len(same)),
        false_alarms=None if plant else false_alarms(same),
        equivalent=clopper_pearson(verdicts["equivalent"], len(same)),
        holds=holding(same),
        measured=mean.mean if mean else 0.0,
        measured_low=bounds[0] if bounds else None,
        measured_high=bounds[1] if bounds else None,
        deviation=pooled_deviation(spread),
        blocks_median=max(1, statistics.median(len(decided.pairs) for decided in same)),
        blocks_most=max(1, *(len(decided.pairs) for decided in same)),
        seconds_median=statistics.median(decided.seconds for decided in same),
        seconds_most=max(decided.seconds for decided in same),
    )


def _floors(manifest: RunManifest, made: Sequence[Decided]) -> list[Floor]:
    floors = []
    for cell in manifest.cells:
        mine = [decided for decided in made if decided.cell == cell]
        again = [decided for decided in mine if decided.plant is None and decided.values]
        paired = noise_floor([_mean(decided) for decided in again])
        if paired is None:
            continue
        # each round serves once, so the comparisons are independent but for the machine's own drift
        met = [
            ([_log_throughput(pair.a) for pair in first.pairs], [_log_throughput(pair.b) for pair in second.pairs])
            for first, second in of_two_rounds(again, 2)
        ]
        apart = unpaired(met, manifest.part(ValidationPlan).delta)
        floors.append(
            Floor(
                cell=cell,
                paired=paired,
                unpaired=apart.floor if apart else None,
                unpaired_false_alarms=apart.false_alarms if apart else None,
                smallest_effect=_smallest(again, manifest),
            )
        )
    return floors


def _smallest(again: Sequence[Decided], manifest: RunManifest) -> float | None:
    """By the spread of all pairs of A/A decisions, in as many blocks as a decision may have."""
    spread = pooled_deviation(log_mean(decided.values, "paired t") for decided in again)
    if spread is None:
        return None
    plan = manifest.part(ValidationPlan)
    looks = {"level": manifest.looks.different[-1], "least": plan.epsilon} if manifest.looks else {}
    return smallest_effect(spread, plan.max_blocks, plan.delta, **looks)


def of_two_rounds(made: Iterable[Decided], step: int = 1) -> list[tuple[Decided, Decided]]:
    """A decision of every `step`th round beside one of the next, of A/A decisions on one cell.

    Those of one round took turns, so they are not apart in time. Both of a pair hold the same placebo, since another
    one's steps take longer; rounds that have none in common give no pair.
    """
    found: dict[int, dict[str | None, Decided]] = {}
    for decided in made:
        found.setdefault(decided.round, {}).setdefault(decided.placebo, decided)
    rounds = list(found.values())
    both = (
        next(((first[kind], second[kind]) for kind in first if kind in second), None)
        for first, second in zip(rounds[::step], rounds[1::step], strict=False)
    )
    return [pair for pair in both if pair is not None]


def _mean(decided: Decided) -> float:
    return log_mean(decided.values, "paired t").mean


def _log_throughput(trial: TrialRecord) -> float:
    assert trial.throughput is not None
    return math.log(trial.throughput)
