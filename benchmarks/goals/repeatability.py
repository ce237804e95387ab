"""One cell as A and as B, taking turns: how far apart are two measurements of the same thing?

Promise: the standard deviation of the paired log difference is at most 2 % at 1 and at 2 replicas.
Also printed: the same trials compared without pairing, as if each had run by itself.
"""

import math
import random
import statistics
import sys
from itertools import pairwise

from common import cell, interval, live, prepared_zygote, table

from harness.record import TrialRecord
from harness.run.process.zygote import Zygote
from harness.run.progress.base import Quiet
from harness.run.turns.group import TurnGroup, TurnRules
from harness.spec import Cell

GOAL = 0.02
BLOCKS = 12
WINDOWS = 60
"""Measured windows of a trial, 0.1 s each. With 10 the deviation was 2.7–3.2 %: the windows' own noise."""
CELLS = (cell("none", 1), cell("mirrored", 2))


def main() -> None:
    """Measure and print; an argument sets the number of blocks."""
    blocks = int(sys.argv[1]) if len(sys.argv) > 1 else BLOCKS
    rows = [("cell", "pairs", "paired sd, wall", "paired sd, CPU", "mean difference (95 %)", "sd between blocks")]
    with prepared_zygote() as zygote:
        for c in CELLS:
            pairs = [_pair(zygote, c, block) for block in range(blocks)]
            pairs = [pair for pair in pairs if all(t.measured for t in pair)]
            rows.append(_row(c, pairs))
    table(rows)
    print(f"\npromised: a paired standard deviation of at most {GOAL:.0%}")


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
