"""Scaling that others published, for a faint overlay on one's own: `data/published_scaling.csv`.

Absolute figures of other hardware and models say nothing here, so what is drawn is the efficiency
X(n) ÷ (n·X(1)) of each published series.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files

from harness.errors import UsageError
from harness.record.imported import PublishedFigure
from harness.record.published import read_figures
from harness.spec.axes import TABLE, Axes
from harness.spec.grouping import ALONG_CURVE
from harness.visible import printable

FILE = "published_scaling.csv"
_IN_WORDS = ("strategy", "model", "data", "batch_size", "batch_scope")
"""Keys that the name of a series says without their own name."""


@dataclass(frozen=True)
class Published:
    """One published series: one model on one machine at one per-replica batch size."""

    hardware: str
    suite: str
    strategy: str
    model: str
    data: str
    batch_size: int
    """Examples a replica and step; 0 is not given."""
    others: tuple[str, ...]
    """KEY=VALUE of every other key that is given, of one along the curve what all points share."""
    date: str
    source: str
    images_per_s: tuple[tuple[int, float], ...]
    """(replicas, images/s), the fewest replicas first; the first is 1."""

    @property
    def efficiency(self) -> tuple[tuple[int, float], ...]:
        """(n, X(n) ÷ (n·X(1)))."""
        alone = self.images_per_s[0][1]
        return tuple((n, rate / (n * alone)) for n, rate in self.images_per_s)

    @property
    def words(self) -> str:
        """What it is, when it was published, and where: what tells it from every other series."""
        batch = f"batch {self.batch_size} a replica" if self.batch_size else "batch not given"
        what = ", ".join((self.model, self.strategy, batch, f"{self.data} data", *self.others))
        return f"{what}, on {self.hardware} with {self.suite}, {self.date} ({self.source})"


@functools.cache
def published() -> tuple[Published, ...]:
    """Every series of the file that comes with the package, in its order."""
    return series_of(read_figures(files("harness.report").joinpath("data", FILE).read_text(encoding="utf-8"), FILE)[0])


def series_of(figures: Sequence[PublishedFigure]) -> tuple[Published, ...]:
    """Figures as series over replicas that start at one, the batch of a replica fixed; in their order.

    UsageError where two figures of a series are of as many replicas.
    """
    series: dict[Published, list[PublishedFigure]] = {}
    for figure in figures:
        if figure.keys.get("batch_scope") != "global":
            series.setdefault(_without_points(figure), []).append(figure)
    found = (replace(one, images_per_s=_points(of)) for one, of in series.items())
    return tuple(one for one in found if len(one.images_per_s) > 1 and one.images_per_s[0][0] == 1)


def _without_points(figure: PublishedFigure) -> Published:
    """The series that a figure is of."""
    keys = figure.keys
    known = {key: printable(str(keys.get(key, "not given"))) for key in ("strategy", "model", "data")}
    named = {key: printable(getattr(figure, key) or "not given") for key in ("hardware", "suite", "date", "source")}
    shared = (_shared(key, value) for key, value in sorted(keys.items()) if key not in _IN_WORDS)
    batch = int(keys.get("batch_size", 0))
    return Published(**known, **named, batch_size=batch, others=tuple(filter(None, shared)), images_per_s=())


def _shared(key: str, value: str | int | bool) -> str:
    """What all points of a series have of a key; nothing where they may have any value of it, or have the usual one."""
    text = f"{key}={printable(str(value))}"
    if key not in ALONG_CURVE:
        return text
    on_curve = TABLE[key].on_curve if key in TABLE else None
    if on_curve is None:
        return ""
    try:
        alike = on_curve(value)
    except UsageError:  # spelled as others do
        return text
    return "" if alike == on_curve(Axes.model_fields[key].default) else f"{key}={alike} a replica"


def _points(figures: Sequence[PublishedFigure]) -> tuple[tuple[int, float], ...]:
    points: dict[int, PublishedFigure] = {}
    for figure in figures:
        n = int(figure.keys["replicas"]) * int(figure.keys.get("workers", 1))
        if n in points:
            raise UsageError(
                f"--overlay: rows {points[n].row} and {figure.row} of the table are of one series and both of {n} "
                "replicas in all; expected one of them"
            )
        points[n] = figure
    return tuple((n, points[n].throughput_examples_per_s) for n in sorted(points))
