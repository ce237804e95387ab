"""Input of a known rate beside a model of a known appetite: is the input named as the limit where it is the limit?

Both keep to a clock, so that the true crossing is known, whatever the machine does: a model that takes so many examples
a second, and pipelines whose decoding takes a planted time, from half of that rate to twice. Promise: of ten, nine are
on the right side of the crossing: *input is the limit now* below what the model takes, *at … the current rate* above
it. *Undecided* counts as neither.

    python benchmarks/goals/crossing.py [--blocks N] [--explain]

With `--explain` the model is trained on each of them, and `explain` takes its step apart: the same is promised of what
it says of the limit. What the step is bound by stands beside it. Three minutes on two cores, with `--explain` half an
hour.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from common import scratch, table

import harness
from harness.analysis.estimates.intervals import Interval
from harness.analysis.explain import Explanation
from harness.analysis.parts import StepPart
from harness.analysis.pipelines import FedBy, FedModel, fed_models
from harness.analysis.summary import RunSummary
from harness.spec.cell import TrainingCell
from harness.spec.pipeline import PipelineCell

APPETITE = 400
"""Examples that the model takes in a second."""
SHARES = (0.5, 0.67, 0.8, 0.85, 0.9, 1.1, 1.15, 1.25, 1.5, 2.0)
"""Of that, what pipelines give."""
FEWEST = 9
MODULE, BATCH_SIZE = "benchmarks.goals.slow_digits", 16
DATA, MODEL = f"{MODULE}:at(rate={{}})", f"{MODULE}:paced(rate={APPETITE})"


def swept(rates: Sequence[int], blocks: int, results: Path, model: str = MODEL) -> RunSummary:
    """The pipelines of these rates beside what the model takes."""
    run = harness.sweep(
        work="pipeline",
        model=[model],
        data=[DATA.format(rate) for rate in rates],
        batch_size=[BATCH_SIZE],
        cache=["none"],
        trials=blocks,
        results=results,
    )
    return harness.summary(run.path)


def fed(summary: RunSummary) -> list[FedModel]:
    """What models take, each with its pipelines."""
    return [model for work in summary.workloads for model in fed_models(work)]


def data_of(one: FedBy) -> str:
    """The data of a pipeline."""
    cell = one.summary.trials.cell
    assert isinstance(cell, PipelineCell)
    return cell.data


@dataclass(frozen=True)
class Answer:
    """What was said of one rate."""

    measured: str
    said: str
    now: bool | None
    """Whether input is named as the limit; None where nothing was decided."""


NOT_MEASURED = Answer("not known", "not measured", None)
NOW = {"now": True, "later": False}


def by_pipelines(rates: Sequence[int], blocks: int, results: Path) -> Iterator[tuple[str, Answer]]:
    """The data, and what a sweep of the pipelines says of them."""
    for one in (one for model in fed(swept(rates, blocks, results)) for one in model.inputs):
        yield data_of(one), Answer(_ends(one.headroom, ".2f"), one.limit, NOW.get(one.limit))


def by_explain(rates: Sequence[int], blocks: int, results: Path) -> Iterator[tuple[str, Answer]]:
    """The data, and what `explain` says of the step that is fed with them."""
    for some in filter(None, (rates[::2], rates[1::2])):  # it takes eight cells at most
        result = harness.explain(
            model=MODEL,
            data=[DATA.format(rate) for rate in some],
            strategy="none",
            batch_size=BATCH_SIZE,
            cache="none",
            trials=blocks,
            results=results,
        )
        for one in result.explanations:
            assert isinstance(one.cell, TrainingCell)
            limit = one.input_limit or "not known"
            beside = f"{_ends(one.headroom, '.2f')}, {_ends(_waits(one), '.1%')}"
            yield one.cell.data, Answer(beside, f"{limit}; bound by {one.bound_by}", NOW.get(limit))


def _waits(one: Explanation) -> StepPart | None:
    """The input's share of the step."""
    return next((part for part in one.parts if part.name == "input"), None)


def _ends(size: Interval | StepPart | None, as_text: str) -> str:
    """As far as it is known."""
    if size is None:
        return "not known"
    ends = "not known" if size.low is None or size.high is None else f"{size.low:{as_text}}, {size.high:{as_text}}"
    return f"{size.value:{as_text}} [{ends}]"


WAYS = {"input ÷ model": by_pipelines, "input ÷ model, input's share of the step": by_explain}


def main() -> None:
    """Measure and print; exit code 1 where a promise is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--explain", action="store_true")
    given = parser.parse_args()
    missed = False
    with scratch() as folder:
        rates = {round(share * APPETITE): share for share in SHARES}
        for head, way in list(WAYS.items())[: 1 + given.explain]:
            found = dict(way(list(rates), given.blocks, Path(folder)))
            rows, right = [("planted ÷ appetite", "planted", head, "said")], 0
            for rate, share in rates.items():
                one = found.get(DATA.format(rate), NOT_MEASURED)
                right += one.now == (share < 1)
                rows.append((f"{share:g}", f"{rate}/s", one.measured, one.said))
            table(rows)
            print(f"\n{right} of {len(rates)} on the right side; promised: {FEWEST}\n")
            missed |= right < FEWEST
    sys.exit(missed)


if __name__ == "__main__":
    main()
