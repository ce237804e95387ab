"""Draws the pictures of docs/verdicts.md: `python docs/verdict_pictures.py` writes docs/images/verdicts-*.svg.

What a picture shows is computed by `verdict_simulations.py`; `windows` alone is of figures that were measured.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import verdict_simulations as simulated
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from harness.analysis.estimates.intervals import t_quantile
from harness.report.comparison.words import verdict_words
from harness.report.figures.svg import GRID, INK, MUTED, PAPER, SERIES, style

FOLDER = Path(__file__).parent / "images"
BLUE, ORANGE, GREEN = SERIES[:3]
LOOKS = {
    "slower": ("v", ORANGE, True),
    "faster": ("^", GREEN, True),
    "equivalent": ("o", BLUE, True),
    "undecided": ("o", MUTED, False),
}
"""Marker, colour, filled: as in the reports."""
WINDOWS_MS, WINDOW_DEVIATIONS = (16, 28, 42, 119), (10.7, 7.3, 8.7, 9.1)
"""Measured: length of a window and standard deviation of one pair of windows in percent, no strategy, batch 32."""
MEASURED_S = 5.0


def bands() -> Figure:
    """δ and ε as bands, and an interval for each verdict."""
    figure, axes = _one(3.9)
    _margins(axes)
    for row, example in enumerate(simulated.EXAMPLES):
        judgement = example.judgement
        ratio, inner = judgement.ratio, judgement.ratio_90
        assert ratio is not None
        assert inner is not None
        marker, colour, filled = LOOKS[judgement.verdict]
        axes.plot(_percent(ratio.low, ratio.high), [row, row], color=colour, linewidth=1.4)
        axes.plot(_percent(inner.low, inner.high), [row, row], color=colour, linewidth=4.5, solid_capstyle="butt")
        face = colour if filled else PAPER
        axes.plot(_percent(ratio.value), [row], marker, color=colour, markerfacecolor=face, markersize=9)
        axes.text(6.3, row, f"{verdict_words(judgement)}\n{example.words}", va="center", fontsize=8.5, color=INK)
    last = len(simulated.EXAMPLES)
    axes.text(0, last, "no interval: a side failed its gate", ha="center", va="center", fontsize=8.5, color=MUTED)
    axes.text(6.3, last, "invalid", va="center", fontsize=8.5, color=INK)
    axes.set(xlim=(-6, 6), ylim=(last + 0.6, -0.8), yticks=[], xlabel="throughput of B against A, %")
    axes.set_xticks([-6, -3, -1, 0, 1, 3, 6], ["−6", "−ε", "−δ", "0", "+δ", "+ε", "+6"])
    axes.spines["left"].set_visible(False)
    return figure


def turns() -> Figure:
    """The same code on a drifting machine, one after the other and taking turns."""
    figure = Figure(figsize=(8.4, 3.0), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    titles = ("one after the other", "taking turns")
    for axes, title, series in zip(panels, titles, simulated.turns(), strict=True):
        place = np.arange(len(series.throughput))
        for side, name, marker, colour in ((False, "A", "o", BLUE), (True, "B", "s", ORANGE)):
            chosen = series.is_b == side
            axes.plot(place[chosen], series.throughput[chosen], marker, color=colour, markersize=3.2, label=name)
            axes.axhline(series.throughput[chosen].mean(), color=colour, linewidth=1.6)
        axes.set_title(f"{title}: B seems {_signed(100 * series.difference)} %", fontsize=10)
        axes.set(xlabel="window, in the order of time", xticks=[], yticks=[0.9, 1.0, 1.1])
    panels[0].set_ylabel("throughput")
    panels[0].legend(loc="upper right", ncols=2)
    return figure


def blocks() -> Figure:
    """Windows within blocks, and what either unit of replication makes of them."""
    found = simulated.blocks()
    figure, axes = _one(3.0)
    chance = np.random.default_rng(1)
    for block, values in enumerate(100 * found.windows, start=1):
        axes.plot(block + chance.uniform(-0.16, 0.16, len(values)), values, ".", color=MUTED, markersize=2.5)
        axes.plot(block, values.mean(), "D", color=BLUE, markersize=6)
    for place, (low, high), colour in ((7.4, found.from_windows, ORANGE), (8.7, found.from_blocks, BLUE)):
        axes.plot([place, place], [100 * low, 100 * high], color=colour, linewidth=9, solid_capstyle="butt")
        words = f"{_signed(100 * low)} to {_signed(100 * high)}"
        axes.text(place, 3.4, words, ha="center", fontsize=9, color=INK)
    axes.axhline(0, color=INK, linewidth=0.8)
    names = [*(f"block {block}" for block in range(1, 7)), "360 windows\n(wrong)", "6 blocks"]
    axes.set_xticks([*range(1, 7), 7.4, 8.7], names)
    axes.set(ylabel="B against A, %", ylim=(-13, 13), yticks=[-10, -5, 0, 5, 10])
    return figure


def windows() -> Figure:
    """Measured: the noise of a window hardly depends on its length, so short ones leave the smaller error."""
    figure = Figure(figsize=(8.4, 2.7), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(WINDOWS_MS, WINDOW_DEVIATIONS, "o-", color=BLUE)
    left.set(ylim=(0, 13), ylabel="%", title="standard deviation of one pair of windows")
    errors = [
        deviation / np.sqrt(1000 * MEASURED_S / length)
        for length, deviation in zip(WINDOWS_MS, WINDOW_DEVIATIONS, strict=True)
    ]
    right.plot(WINDOWS_MS, errors, "o-", color=BLUE)
    right.set(ylim=(0, 1.6), yticks=[0, 0.5, 1, 1.5], ylabel="%", title="error that 5 s of them leave")
    for axes in (left, right):
        axes.set(xlim=(0, 130), xlabel="length of a window, ms")
        axes.set_xticks(WINDOWS_MS, [str(length) for length in WINDOWS_MS])
        axes.title.set_fontsize(10)
    return figure


def looks() -> Figure:
    """Blocks that a decision takes on average, by the true difference, on a quieter and on a noisier machine."""
    figure, axes = _one(2.7)
    changes = np.linspace(-0.07, 0.07, 57)
    for deviation, colour, dashes in ((0.02, ORANGE, "-"), (0.008, BLUE, "--")):
        taken = [simulated.rates(deviation, float(change)).blocks for change in changes]
        label = f"standard deviation of a pair: {100 * deviation:.1f} %"
        axes.plot(100 * changes, taken, color=colour, linestyle=dashes, linewidth=2.2, label=label)
    axes.set(xlim=(-7, 7), ylim=(0, 20), yticks=[0, *simulated.LOOKS.after], ylabel="blocks, on average")
    axes.set_xticks([-5, -3, -2, -1, 0, 1, 2, 3, 5], ["−5", "−3", "−2", "−1", "0", "1", "2", "3", "5"])
    axes.grid(visible=True, axis="y", color=GRID)
    axes.set_xlabel("true difference of throughput, %")
    axes.legend(loc="lower left")
    return figure


def peeking() -> Figure:
    """How often the same thing differs from itself when one looks after every block and stops at the first alarm."""
    figure, axes = _one(2.6)
    counts = range(1, 11)
    shares = [100 * simulated.peeking(count) for count in counts]
    bars = axes.bar(counts, shares, color=[BLUE, *[ORANGE] * 9], width=0.7)
    axes.bar_label(bars, [f"{share:.0f}" for share in shares], padding=2, fontsize=9)
    axes.axhline(5, color=INK, linewidth=0.8, linestyle=(0, (4, 2)))
    axes.set(ylim=(0, 23), yticks=[0, 5, 10, 15, 20], xticks=list(counts), ylabel="false alarms, %")
    axes.set_xlabel("how often one looks, after 3, 4, 5 … pairs, and may stop")
    return figure


def rates() -> Figure:
    """Which verdict is given how often, by the true difference, on a quieter and on a noisier machine."""
    figure = Figure(figsize=(8.4, 3.1), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    changes = np.linspace(-0.06, 0.06, 61)
    styles = {"slower": (ORANGE, "-"), "equivalent": (BLUE, "--"), "undecided": (MUTED, ":"), "faster": (GREEN, "-.")}
    for axes, deviation in zip(panels, (0.008, 0.02), strict=True):
        _margins(axes)
        found = [simulated.rates(deviation, float(change)) for change in changes]
        for verdict, (colour, dashes) in styles.items():
            shares = [100 * getattr(rate, verdict) for rate in found]
            axes.plot(100 * changes, shares, color=colour, linestyle=dashes, linewidth=2.2, label=verdict)
        axes.set_title(f"standard deviation of a pair: {100 * deviation:.1f} %", fontsize=10)
        axes.set(xlim=(-6, 6), ylim=(-2, 102), yticks=[0, 50, 100], xlabel="true difference of throughput, %")
        axes.set_xticks([-6, -3, -1, 0, 1, 3, 6], ["−6", "−3", "−1", "0", "1", "3", "6"])
    panels[0].set_ylabel("how often, %")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure


def many() -> Figure:
    """Forty times nothing, of which some stand out; and cells that cannot be told apart from the best."""
    figure = Figure(figsize=(8.4, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    alone = simulated.many()[0]
    for place, judgement in enumerate(alone):
        assert judgement.ratio is not None
        alarm = judgement.verdict in ("slower", "faster")
        left.plot(
            [place, place],
            _percent(judgement.ratio.low, judgement.ratio.high),
            color=ORANGE if alarm else MUTED,
            linewidth=3 if alarm else 1.4,
        )
    left.axhline(0, color=INK, linewidth=0.8)
    left.set(xticks=[], xlabel="40 comparisons of the same thing with itself", ylabel="B against A, %")
    left.set(ylim=(-6, 6), yticks=[-5, 0, 5])
    left.set_title("two stand out by chance", fontsize=10)
    rows = [(1.0, None, None), *simulated.best()]
    for place, (ratio, low, high) in enumerate(rows):
        colour = BLUE if high is None or high >= 1 else MUTED
        if low is not None and high is not None:
            right.plot(_percent(low, high), [place, place], color=colour, linewidth=1.8)
        right.plot(_percent(ratio), [place], "o", color=colour, markerfacecolor=colour if colour == BLUE else PAPER)
    right.axvline(0, color=INK, linewidth=0.8)
    right.set_yticks(range(len(rows)), [f"cell {name}" for name in "ABCDEF"])
    right.set(ylim=(5.6, -0.6), xlabel="throughput against the best, %", xticks=[-10, -5, 0, 5])
    right.set_title("three may be the best", fontsize=10)
    return figure


def trials() -> Figure:
    """Half of a 95 % interval in standard deviations, by the number of pairs."""
    figure, axes = _one(2.5)
    counts = (2, 3, 4, 5, 6, 8, 10, 12, 20, 30)
    halves = [t_quantile(count - 1) / np.sqrt(count) for count in counts]
    bars = axes.bar([str(count) for count in counts], halves, width=0.7, color=[*[ORANGE] * 2, *[BLUE] * 8])
    axes.bar_label(bars, [f"{half:.1f}" for half in halves], padding=2, fontsize=9)
    axes.set(ylim=(0, 10.2), yticks=[0, 5, 10], xlabel="pairs of trials")
    axes.set_ylabel("half of the interval,\nin standard deviations")
    return figure


def minimum() -> Figure:
    """Two sides with the same fastest step, of which one has stragglers."""
    figure = Figure(figsize=(8.4, 2.9), layout="constrained")
    panels = figure.subplots(2, 1, sharex=True)
    for axes, name, steps, colour in zip(panels, "AB", simulated.stragglers(), (BLUE, ORANGE), strict=True):
        axes.hist(steps, bins=np.arange(9, 18, 0.1).tolist(), color=colour)
        words = f"{name}: minimum {steps.min():.1f} ms, median {np.median(steps):.1f} ms, mean {steps.mean():.1f} ms"
        axes.text(11.2, 420, words, fontsize=9.5)
        axes.axvline(steps.mean(), color=INK, linewidth=1.2)
        axes.set(yticks=[], ylim=(0, 850), xlim=(9, 18))
        axes.spines["left"].set_visible(False)
    panels[1].set_xlabel("step time, ms (the line is the mean)")
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    drawn.__name__: drawn for drawn in (bands, turns, blocks, windows, looks, peeking, rates, many, trials, minimum)
}


def draw(folder: Path) -> list[Path]:
    """Write every picture to `folder`; returns the files. White behind, for a page of any colour."""
    written = []
    with style():
        for name, drawn in PICTURES.items():
            path = folder / f"verdicts-{name}.svg"
            metadata = {"Date": None, "Creator": None, "Format": None, "Type": None}
            drawn().savefig(path, format="svg", facecolor=PAPER, metadata=metadata)
            written.append(path)
    return written


def _one(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(8.4, height), layout="constrained")
    return figure, figure.subplots()


def _margins(axes: Axes) -> None:
    margins = simulated.MARGINS
    for margin, colour, opacity in ((margins.epsilon, GRID, 0.55), (margins.delta, MUTED, 0.3)):
        axes.axvspan(*_percent(1 / (1 + margin), 1 + margin), facecolor=colour, alpha=opacity, linewidth=0)
    axes.axvline(0, color=MUTED, linewidth=1)


def _percent(*ratios: float | None) -> Sequence[float]:
    return [100 * (ratio - 1) for ratio in ratios if ratio is not None]


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file in draw(FOLDER):
        print(file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file, file=sys.stdout)
