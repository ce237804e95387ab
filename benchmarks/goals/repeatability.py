"""One cell as A and as B, taking turns: how far apart are two measurements of the same thing?

Promise: the standard deviation of the paired log difference is at most 2 % at 1 and at 2 replicas.
Also printed: the same trials compared without pairing, as if each had run by itself; and one commit against itself,
each side in a work tree and a preloaded process of its own, as two revisions are compared by `ab`.
"""

import math
import os
import random
import shutil
import statistics
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

from common import cell, interval, live, prepared_zygote, scratch, table

import harness
from harness.analysis.comparison.pairs import pairs_of
from harness.analysis.estimates.intervals import LogEstimate, log_mean
from harness.analysis.validation.calibration import spread_of
from harness.record import TrialRecord
from harness.run.process.zygote import Zygote
from harness.run.progress import Quiet
from harness.run.turns.group import TurnGroup, TurnRules
from harness.spec import Cell

GOAL = 0.02
BLOCKS = 12
WINDOWS = 60
"""Measured windows of a trial, 0.1 s each. With 10 the deviation was 2.7–3.2 %: the windows' own noise."""
CELLS = (cell("none", 1), cell("mirrored", 2))
DECISIONS = 10
"""Of one commit against itself, for each cell."""
BLOCKS_OF_A_DECISION = 6
MODEL = "own_workload.py"


def main() -> None:
    """Measure and print; arguments set the number of blocks and of decisions about equal revisions."""
    blocks, decisions = (int(sys.argv[n]) if len(sys.argv) > n else usual for n, usual in ((1, BLOCKS), (2, DECISIONS)))
    rows = [("cell", "pairs", "paired sd, wall", "paired sd, CPU", "mean difference (95 %)", "sd between blocks")]
    with prepared_zygote() as zygote:
        for c in CELLS:
            pairs = [_pair(zygote, c, block) for block in range(blocks)]
            pairs = [pair for pair in pairs if all(t.measured for t in pair)]
            rows.append(_row(c, pairs))
    table(rows)
    print(f"\npromised: a paired standard deviation of at most {GOAL:.0%}")
    print("\none commit against itself, as two revisions:")
    with scratch() as folder:
        _own_repository(Path(folder))
        table([REVISION_COLUMNS, *(_revisions(c, decisions) for c in CELLS)])


REVISION_COLUMNS = ("cell", "decisions", "verdicts", "hold 0", "spread² ÷ predicted (95 %)", "largest difference")


def _own_repository(folder: Path) -> None:
    """A repository with a model of its own and one commit, which is the working folder from now on."""
    shutil.copy(Path(__file__).parents[1] / MODEL, folder)
    for words in (["init", "-q"], ["add", MODEL], ["commit", "-qm", "a model"]):
        subprocess.run(["git", "-c", "user.name=goals", "-c", "user.email=goals", *words], cwd=folder, check=True)
    os.chdir(folder)


def _revisions(c: Cell, decisions: int) -> tuple[str, ...]:
    """Decisions of `ab` between two names of one commit."""
    estimates: list[LogEstimate] = []
    verdicts: list[str] = []
    for seed in range(decisions):
        found = harness.ab(
            model=f"{Path(MODEL).stem}:make_model",
            strategy=c.strategy,
            replicas=c.replicas,
            seed=seed,
            revisions=("HEAD", "HEAD"),
            looks=[BLOCKS_OF_A_DECISION],
            quiet=True,
        )
        verdicts.append(str(found.verdict))
        estimates.append(log_mean([pair.wall for pair in pairs_of(harness.read().trials)], "paired t"))
    bounds = [one.log_bounds() for one in estimates]
    held = sum(ends is not None and ends[0] <= 0.0 <= ends[1] for ends in bounds)
    spread = spread_of(estimates, zygotes=2)
    return (
        c.label,
        str(decisions),
        ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts)),
        f"{held} of {decisions}",
        "–" if spread is None else f"{spread.ratio:.2f} [{spread.low:.2f}, {spread.high:.2f}]",
        f"{max(abs(one.mean) for one in estimates):.2%}",
    )


def _pair(zygote: Zygote, c: Cell, block: int) -> list[TrialRecord]:
    """Two fresh trials of the cell, alive together; which is A is drawn, so order cannot favour one."""
    kept: list[TrialRecord] = []
    rules = TurnRules(windows=WINDOWS, warmup=5, seed=block)
    TurnGroup([live(zygote, c, block, order) for order in (0, 1)], rules, kept.append, Quiet()).run()
    random.Random(block).shuffle(kept)
    return kept


def _row(c: Cell, pairs: list[list[TrialRecord]]) -> tuple[str, ...]:
    wall = [math.log(_wall(a) / _wall(b)) for a, b in pairs]
    cpu = [math.log(_cpu(a) / _cpu(b)) for a, b in pairs]
    mean, low, high, deviation = interval(wall)
    apart = [math.log(_wall(a[0]) / _wall(b[1])) for a, b in pairwise(pairs)]
    return (
        c.label,
        str(len(pairs)),
        f"{deviation:.2%}",
        f"{statistics.stdev(cpu):.2%}",
        f"{mean:+.2%} [{low:+.2%}, {high:+.2%}]",
        f"{statistics.stdev(apart):.2%}",
    )


def _wall(trial: TrialRecord) -> float:
    assert trial.step_time_s is not None
    return trial.step_time_s


def _cpu(trial: TrialRecord) -> float:
    assert trial.cpu_seconds_per_example is not None
    return trial.cpu_seconds_per_example


if __name__ == "__main__":
    main()
