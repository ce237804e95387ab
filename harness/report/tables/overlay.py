"""Scaling that others published, for a faint overlay on one's own: `data/published_scaling.csv`.

Absolute figures of other hardware and models say nothing here, so what is drawn is the efficiency
X(n) ÷ (n·X(1)) of each published series.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from harness.record.imported import PublishedFigure
from harness.record.published import read_figures
from harness.visible import printable

FILE = "published_scaling.csv"
_OF_A_POINT = ("replicas", "workers", "global_batch_size")
"""Keys that the points of one series differ in."""


@dataclass(frozen=True)
class Published:
    """One published series: one model on one machine at one per-replica batch size."""

    hardware: str
    suite: str
    strategy: str
    model: str
    data: str
    batch_size: int
    """Examples a replica and step."""
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
        """What it is, when it was published, and where."""
        return (
            f"{self.model}, {self.strategy}, batch {self.batch_size} a replica, {self.data} data, on {self.hardware} "
            f"with {self.suite}, {self.date} ({self.source})"
        )


@functools.cache
def published() -> tuple[Published, ...]:
    """Every series of the file that comes with the package, in its order."""
    return series_of(read_figures(files("harness.report").joinpath("data", FILE).read_text(encoding="utf-8"), FILE)[0])


def series_of(figures: Sequence[PublishedFigure]) -> tuple[Published, ...]:
    """Figures as series over replicas that start at one, the batch of a replica fixed; in their order."""
    series: dict[tuple[str, ...], list[PublishedFigure]] = {}
    for figure in figures:
        rest = {key: value for key, value in figure.keys.items() if key not in _OF_A_POINT}
        series.setdefault((*map(str, (figure.hardware, figure.suite, figure.date, rest)),), []).append(figure)
    return tuple(found for points in series.values() if (found := _series(points)) is not None)


def _series(figures: Sequence[PublishedFigure]) -> Published | None:
    """Figures that differ in replicas only, at a fixed batch a replica; None unless one and more replicas are there."""
    first = figures[0]
    points = {
        int(figure.keys["replicas"]) * int(figure.keys.get("workers", 1)): figure.throughput_examples_per_s
        for figure in figures
    }
    if 1 not in points or len(points) < 2 or first.keys.get("batch_scope") == "global":
        return None
    known = {key: printable(str(first.keys.get(key, "not given"))) for key in ("strategy", "model", "data")}
    named = {key: printable(getattr(first, key) or "not given") for key in ("hardware", "suite", "date", "source")}
    batch = int(first.keys.get("batch_size", 0))
    return Published(**known, **named, batch_size=batch, images_per_s=tuple(sorted(points.items())))
