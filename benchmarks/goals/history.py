"""How often `history` marks a change where there is none, and how often it finds one.

    python benchmarks/goals/history.py [--series N] [--recorded RESULTS]

Null series of 12 and 30 runs: white noise, autocorrelated, drifting, two states, spikes; and with --recorded,
series made by drawing with replacement from what the runs of each cell in RESULTS really gave.
Alarms are counted by series: a series with any change point is one. Limits are Clopper and Pearson's at 95 %. The
promise is about series in which runs are independent; it is kept or missed by the limits of the count. Power is for a
step of 3, 5 and 10 % in the middle of white noise, and four runs before the end.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness.analysis.estimates.power import clopper_pearson
from harness.analysis.history.change_points import SIGNIFICANCE
from harness.analysis.history.false_alarms import marked
from harness.analysis.history.series import history
from harness.record.reading import list_runs, load_run
from harness.record.validation import Rate

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Array]
RUN = 0.02
"""Standard deviation of a run's log throughput."""
LENGTHS = (12, 30)


def _autocorrelated(r: float) -> Draw:
    def draw(chance: np.random.Generator, count: int) -> Array:
        values = RUN * chance.standard_normal(count)
        for place in range(1, count):
            values[place] = r * values[place - 1] + math.sqrt(1 - r * r) * values[place]
        return values

    return draw


def _white(chance: np.random.Generator, count: int) -> Array:
    return RUN * chance.standard_normal(count)


def _drifting(chance: np.random.Generator, count: int) -> Array:
    return _white(chance, count) + chance.uniform(-0.05, 0.05) * np.linspace(-0.5, 0.5, count)


def _two_states(chance: np.random.Generator, count: int) -> Array:
    return RUN / 4 * chance.standard_normal(count) + 0.04 * (chance.random(count) < 0.3)


def _spiky(chance: np.random.Generator, count: int) -> Array:
    return RUN / 2 * chance.standard_normal(count) - (chance.random(count) < 0.1) * 0.05 * (
        1 + chance.pareto(2.5, count)
    )


NULLS: dict[str, Draw] = {
    "white, 2 %": _white,
    "autocorrelated, 0.3": _autocorrelated(0.3),
    "autocorrelated, 0.6": _autocorrelated(0.6),
    "drifting, up to 5 % in all": _drifting,
    "two states, 4 % apart, 7:3": _two_states,
    "one run in ten 5 % or more slower": _spiky,
}
DEPENDENT = ("autocorrelated, 0.3", "autocorrelated, 0.6", "drifting, up to 5 % in all")
"""Of these nothing is promised: each run resembles the one before it, or the level moves all the time."""


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--series", type=int, default=300)
    parser.add_argument("--recorded", type=Path)
    given = parser.parse_args()
    nulls = NULLS | (recorded(given.recorded) if given.recorded else {})
    print(
        f"False alarms: series with a change point where nothing changes, of {given.series}; promised "
        f"{SIGNIFICANCE:.0%} where runs are independent\n"
    )
    show("null series", *(f"{length} runs" for length in LENGTHS), "promise")
    for name, draw in nulls.items():
        rates = [rate(draw, length, given.series) for length in LENGTHS]
        show(name, *map(limits, rates), "none" if name in DEPENDENT else promise_kept(rates))
    print("\nPower: series in which a step was found within 2 runs of its place, white noise of 2 % a run\n")
    show("step", *(f"{length} runs, in the middle" for length in LENGTHS), "30 runs, 4 before the end")
    for step in (0.03, 0.05, 0.10):
        places = [(length, length // 2) for length in LENGTHS] + [(30, 26)]
        show(f"{step:.0%}", *(power(step, length, place, given.series // 2) for length, place in places))


def show(name: str, *cells: str) -> None:
    """One row, at once: a table takes minutes."""
    print(f"{name:<44}" + "".join(f"{cell:<28}" for cell in cells), flush=True)


def rate(draw: Draw, length: int, count: int) -> Rate:
    """Alarms of `count` null series, with limits."""
    chance = np.random.default_rng(length)
    return clopper_pearson(sum(bool(marked(draw(chance, length).tolist())) for _ in range(count)), count)


def promise_kept(rates: Sequence[Rate]) -> str:
    """Whether what was counted is as promised, by the limits of the counts."""
    if any(found.low > SIGNIFICANCE for found in rates):
        return "missed"
    return "kept" if all(found.high <= SIGNIFICANCE for found in rates) else "not shown"


def power(step: float, length: int, place: int, count: int) -> str:
    """How many of `count` series have the planted step marked near its place."""
    chance = np.random.default_rng(length)
    hits = 0
    for _ in range(count):
        values = _white(chance, length)
        values[place:] += math.log1p(-step)
        hits += any(abs(found - place) <= 2 for found in marked(values.tolist()))
    return limits(clopper_pearson(hits, count))


def limits(found: Rate) -> str:
    """`1.2 % [0.3 – 3.1]`."""
    return f"{100 * found.count / found.of:.1f} % [{100 * found.low:.1f} – {100 * found.high:.1f}]"


def recorded(results: Path) -> dict[str, Draw]:
    """A null series for each cell of the runs in `results`, by resampling its runs."""
    series = history(load_run(row.path) for row in list_runs(results) if row.problem is None)
    found: dict[str, Draw] = {}
    for one in series:
        if len(one.points) >= 8:
            logs = np.log([point.value.value for point in one.points])
            kind = " × no strategy" if one.measure == "speed-up" else ""
            name = f"recorded, {one.cell.label}{kind}: {len(logs)} runs, {100 * logs.std(ddof=1):.1f} %"
            found[name] = lambda chance, count, logs=logs: chance.choice(logs, count)
            as_was = len(marked(logs.tolist()))
            print(f"{name}; as they came: {as_was} change points" if as_was else f"{name}; as they came: none")
    return found


if __name__ == "__main__":
    main()
