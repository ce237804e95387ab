"""The decisions of kept validations made again by looks, from the same records: `decisions.py RUN RUN …` prints it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from harness.analysis.comparison.pairs import pairs_of
from harness.analysis.estimates.looks import Looks
from harness.analysis.estimates.power import clopper_pearson
from harness.analysis.estimates.verdict import Margins, judge
from harness.analysis.validation.calibration import plant_sizes
from harness.analysis.validation.decisions import Decided, decisions_of
from harness.looks import QUIET_BLOCKS, looks_within
from harness.record.manifest import ValidationPlan
from harness.record.reading import Run
from harness.record.trial import Plant
from harness.report.tables.table import Head, Table
from harness.report.tables.validation import rate

LOOKS = ", ".join(map(str, looks_within(QUIET_BLOCKS)))


@dataclass(frozen=True)
class Ended:
    """How one decision ended: what was planted (0 and None: the same thing twice), its verdict, and its blocks."""

    share: float
    plant: str | None
    verdict: str
    blocks: int


def replayed(runs: Sequence[Run]) -> Table:
    """For A/A and each planted size how often each verdict came and after how many blocks, then and by looks."""
    then: list[Ended] = []
    now: list[Ended] = []
    for run in runs:
        made = decisions_of(run.manifest, run.trials)
        counted = {None, *(size.plant for size in plant_sizes(made) if size.counted)}
        then += [one for one in map(_as_made, made) if one.plant in counted]
        now += [one for one in by_looks(run) if one.plant in counted]
    rows = []
    for name, share, verdicts in (
        ("A/A, false alarms", 0.0, ("slower", "faster")),
        ("A/A, called equivalent", 0.0, ("equivalent",)),
        *((f"{share:.0%} planted, called slower", share, ("slower",)) for share in (0.02, 0.03, 0.05, 0.10)),
    ):
        cells = []
        for ended in (then, now):
            of = [one for one in ended if one.share == share]
            cells += [_rate(of, verdicts), f"{fmean(one.blocks for one in of):.1f}" if of else "–"]
        rows.append((name, *cells))
    names = ("decision", "in two stages", "blocks, mean", f"by looks after {LOOKS}", "blocks, mean")
    note = (
        "Of slow-downs only those whose size is known to be about what was stated. Blocks that were not measured then "
        "cannot be looked at."
    )
    return Table(
        "The same decisions by looks",
        tuple(Head(name, place > 0) for place, name in enumerate(names)),
        tuple(rows),
        note,
    )


def by_looks(run: Run, most: int = QUIET_BLOCKS) -> Iterator[Ended]:
    """Every decision of the run made again from all blocks of its round; the last look takes what is there."""
    plan, looks = run.manifest.part(ValidationPlan), Looks.planned(looks_within(most))
    margins = Margins(plan.delta, plan.epsilon)
    for of in plan.rounds:
        trials = [trial for trial in run.trials if trial.block in of.numbers]
        for arm in of.decisions if of.ended else ():
            values = [pair.wall for pair in pairs_of(trials, arm.against or "", arm.name)]
            number = next(
                (k for k, n in enumerate(looks.after, 1) if n <= len(values) and looks.stops(values[:n], k, margins)),
                len(looks.after),
            )
            used = values[: looks.after[number - 1]]
            verdict = judge(looks.estimate(used, number), margins).verdict
            yield _ended(arm.slowed, verdict, len(used))


def _as_made(one: Decided) -> Ended:
    return _ended(one.plant, one.verdicts.wall.verdict, len(one.pairs))


def _ended(plant: Plant | None, verdict: str, blocks: int) -> Ended:
    return Ended(plant.share if plant else 0.0, plant.kind if plant else None, verdict, blocks)


def _rate(of: Sequence[Ended], verdicts: Sequence[str]) -> str:
    return rate(clopper_pearson(sum(one.verdict in verdicts for one in of), len(of)))
