"""Scaling that others published, for a faint overlay on one's own: `data/published_scaling.csv`.

Absolute figures of other hardware and models say nothing here, so what is drawn is the efficiency
X(n) ÷ (n·X(1)) of each published series.
"""

import csv
import functools
from dataclasses import dataclass
from importlib.resources import files

FILE = "published_scaling.csv"
_NAMED = ("hardware", "suite", "strategy", "model", "data", "batch_size_per_replica", "date", "source")


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
    """Every series of the file that starts at one replica, in the file's order."""
    text = files("harness.report").joinpath("data", FILE).read_text(encoding="utf-8")
    series: dict[tuple[str, ...], list[tuple[int, float]]] = {}
    for row in csv.DictReader(text.splitlines()):
        points = series.setdefault(tuple(row[name] for name in _NAMED), [])
        points.append((int(row["replicas"]), float(row["images_per_s"])))
    return tuple(
        Published(hardware, suite, strategy, model, data, int(batch), date, source, tuple(sorted(points)))
        for (hardware, suite, strategy, model, data, batch, date, source), points in series.items()
        if min(points)[0] == 1
    )
