"""The latency and the bandwidth of a collective: t = α + S/β, fitted to its times over the sizes of the buffer.

Each block has a fit of its own, of one trial a size that took turns: least squares of the residuals relative to the
size's own mean time, so that a size counts alike whether it takes a microsecond or a second. What is told is the mean
of the blocks' α and 1/β, and its interval is Student's t over the blocks, since trials of one block share the
machine's speed then. What a line cannot describe shows as a residual: the mean over blocks of what is left at a size.
The model is Hockney's (`docs/protocol.md#collectives`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.analysis.estimates.intervals import t_quantile

FEWEST_SIZES = 3
"""Through two sizes every line goes."""
MUCH = 0.1
"""A residual beyond this share of the time, with its whole interval on one side of 0, says that the line does not hold
there."""
Times = Mapping[int, Mapping[int, float]]
"""By size in bytes, then by block: seconds of one collective."""


@dataclass(frozen=True)
class OverBlocks:
    """A mean over blocks of either sign, between its 95 % limits; of one block there are none."""

    value: float
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, values: Sequence[float]) -> "OverBlocks":
        """Of one value a block: Student's t."""
        count = len(values)
        mean = math.fsum(values) / count
        if count < 2:
            return cls(mean)
        error = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1) / count)
        half = t_quantile(count - 1) * error
        return cls(mean, mean - half, mean + half)


@dataclass(frozen=True)
class Residual:
    """What the line leaves over at a size, as a share of the time there: above 0 where it takes longer."""

    size: int
    share: OverBlocks

    @property
    def beyond_doubt(self) -> bool:
        """Whether it is much, and known to be more than nothing."""
        low, high = self.share.low, self.share.high
        return abs(self.share.value) > MUCH and low is not None and high is not None and low * high > 0


@dataclass(frozen=True)
class LatencyBandwidth:
    """t = α + S/β of one collective by one op, in the range of its sizes."""

    latency_s: OverBlocks
    """α."""
    seconds_a_byte: OverBlocks
    """1/β."""
    residuals: tuple[Residual, ...]
    """By size, the smallest first."""
    blocks: int

    def at(self, size: int) -> float:
        """Seconds by the line."""
        return self.latency_s.value + self.seconds_a_byte.value * size

    @property
    def bandwidth(self) -> float | None:
        """β in bytes a second; None where larger buffers took no longer."""
        return _inverse(self.seconds_a_byte.value)

    @property
    def bandwidth_limits(self) -> tuple[float | None, float | None]:
        """Of β: each None where it is not known."""
        low, high = self.seconds_a_byte.low, self.seconds_a_byte.high
        return (None if high is None else _inverse(high)), (None if low is None else _inverse(low))

    @property
    def worst(self) -> Residual:
        """The largest residual; where one is beyond doubt, the largest of those."""
        return max(self.residuals, key=lambda residual: (residual.beyond_doubt, abs(residual.share.value)))


def fit(times: Times) -> LatencyBandwidth | None:
    """The fit over the blocks in which every size was measured; None of fewer than FEWEST_SIZES or without a block."""
    sizes = sorted(times)
    blocks = sorted(set.intersection(*(set(times[size]) for size in sizes))) if sizes else []
    if len(sizes) < FEWEST_SIZES or not blocks:
        return None
    means = [math.fsum(times[size][block] for block in blocks) / len(blocks) for size in sizes]
    lines = [_line(sizes, [times[size][block] for size in sizes], means) for block in blocks]
    residuals = [
        Residual(
            size,
            OverBlocks.of(
                [
                    (times[size][block] - alpha - slope * size) / mean
                    for block, (alpha, slope) in zip(blocks, lines, strict=True)
                ]
            ),
        )
        for size, mean in zip(sizes, means, strict=True)
    ]
    alphas, slopes = zip(*lines, strict=True)
    return LatencyBandwidth(OverBlocks.of(alphas), OverBlocks.of(slopes), tuple(residuals), len(blocks))


def _line(sizes: Sequence[int], times: Sequence[float], means: Sequence[float]) -> tuple[float, float]:
    """(α, 1/β) of least squares with the weights 1/mean²; there are at least two sizes."""
    weights = [1 / mean**2 for mean in means]
    whole = math.fsum(weights)
    size_at = math.fsum(w * size for w, size in zip(weights, sizes, strict=True)) / whole
    time_at = math.fsum(w * time for w, time in zip(weights, times, strict=True)) / whole
    spread = math.fsum(w * (size - size_at) ** 2 for w, size in zip(weights, sizes, strict=True))
    both = math.fsum(
        w * (size - size_at) * (time - time_at) for w, size, time in zip(weights, sizes, times, strict=True)
    )
    slope = both / spread
    return time_at - slope * size_at, slope


def _inverse(value: float) -> float | None:
    return 1 / value if value > 0 else None
