"""Input of a known rate beside a model of a known appetite: is the input named as the limit where it is the limit?

A first sweep measures what the model takes. Then pipelines whose decoding takes a planted time, from half of that
rate to twice, are measured beside the model again. Promise: of ten, nine are on the right side of the crossing: *input
is the limit now* below what the model takes, *at … the current rate* above it. *Undecided* counts as neither.

    python benchmarks/goals/crossing.py [--blocks N]

Three minutes on two cores.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from common import scratch, table

import harness
from harness.analysis.pipelines import FedBy, fed_models
from harness.analysis.summary import RunSummary
from harness.spec.pipeline import PipelineCell

SHARES = (0.5, 0.67, 0.8, 0.85, 0.9, 1.1, 1.15, 1.25, 1.5, 2.0)
"""Of what the model takes."""
FEWEST = 9
MODULE, BATCH_SIZE = "benchmarks.goals.slow_digits", 16
FUNCTIONS = f"{MODULE}:at_"


def swept(rates: Sequence[int], blocks: int, results: Path) -> RunSummary:
    """The pipelines of these rates beside what the model takes."""
    run = harness.sweep(
        work="pipeline",
        model=[f"{MODULE}:model"],
        data=[f"{FUNCTIONS}{rate}" for rate in rates],
        batch_size=[BATCH_SIZE],
        cache=["none"],
        trials=blocks,
        results=results,
    )
    return harness.summary(run.path)


def fed(summary: RunSummary) -> list[tuple[float, FedBy]]:
    """(what the model takes, the pipeline beside it) of every pipeline."""
    models = [model for work in summary.workloads for model in fed_models(work)]
    return [(model.appetite.value, one) for model in models for one in model.inputs]


def data_of(one: FedBy) -> str:
    """The data of a pipeline."""
    cell = one.summary.trials.cell
    assert isinstance(cell, PipelineCell)
    return cell.data


def main() -> None:
    """Measure and print; exit code 1 where the promise is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=5)
    given = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parents[2]))
    with scratch() as folder:
        [(appetite, _)] = fed(swept([10_000], 2, Path(folder)))
        rates = {round(share * appetite): share for share in SHARES}
        found = {data_of(one): one for _, one in fed(swept(list(rates), given.blocks, Path(folder)))}
    rows, right = [("planted ÷ appetite", "planted", "measured", "input ÷ model", "said")], 0
    for rate, share in rates.items():
        one = found[f"{FUNCTIONS}{rate}"]
        right += one.limit == ("now" if share < 1 else "later")
        between = f"{one.headroom.value:.2f} [{one.headroom.low:.2f}, {one.headroom.high:.2f}]"
        rows.append((f"{share:g}", f"{rate}/s", f"{one.rate.value:.0f}/s", between, one.limit))
    table(rows)
    print(f"\n{right} of {len(rates)} on the right side; promised: {FEWEST}")
    sys.exit(right < FEWEST)


if __name__ == "__main__":
    main()
