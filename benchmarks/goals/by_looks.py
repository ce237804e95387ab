"""The decisions of kept validations made again by looks, from the same records: `decisions.py RUN RUN …` prints it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from harness.analysis.comparison.pairs import pairs_of
from harness.analysis.estimates.looks import Looks
from harness.analysis.estimates.power import clopper_pearson
from harness.analysis.estimates.verdict import Margins, judge
from harness.analysis.validation.decisions import decisions_of
from harness.looks import QUIET_BLOCKS, looks_within
from harness.record.manifest import ValidationPlan
from harness.record.reading import Run
from harness.report.tables.table import Head, Table
from harness.report.tables.validation import rate

LOOKS = ", ".join(map(str, looks_within(QUIET_BLOCKS)))


@dataclass(frozen=True)
class Ended:
    """How one decision ended: what was planted (0: the same thing twice), its verdict, and after how many blocks."""

    share: float
    verdict: str
    blocks: int


def replayed(runs: Sequence[Run]) -> Table:
    """For A/A and each planted size how often each verdict came and after how many blocks, then and by looks."""
    then = [
        Ended(one.plant.share if one.plant else 0.0, one.verdicts.wall.verdict, len(one.pairs))
        for run in runs
        for one in decisions_of(run.manifest, run.trials)
    ]
    now = [one for run in runs for one in by_looks(run)]
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
    note = "All planted, also what missed its size. Blocks that were not measured then cannot be looked at."
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
            yield Ended(arm.slowed.share if arm.slowed else 0.0, verdict, len(used))


def _rate(of: Sequence[Ended], verdicts: Sequence[str]) -> str:
    return rate(clopper_pearson(sum(one.verdict in verdicts for one in of), len(of)))
