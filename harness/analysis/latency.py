"""The latency and the bandwidth of a collective: t = α + S/β, fitted to its times over the sizes of the buffer.

Each block has a fit of its own, of one trial a size that took turns: least squares of the residuals relative to the
size's own mean time, so that a size counts alike whether it takes a microsecond or a second. What is told is the mean
of the blocks' α and 1/β, and its interval is Student's t over the blocks, since trials of one block share the
machine's speed then. What a line cannot describe shows as a residual: the mean over blocks of what is left at a size.

Where the line does not hold, the sizes are cut into two pieces, or three, of FEWEST_SIZES or more, each with a line of
its own, where that leaves the least squared residuals over; but only if an F test says that they did not become less
by chance. The model is Hockney's, the rule stands in `docs/protocol.md#collectives`.
"""

import itertools
import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from scipy import special

from harness.analysis.estimates.intervals import t_quantile

FEWEST_SIZES = 3
"""Of a piece: through two sizes every line goes."""
MOST_PIECES = 3
MUCH = 0.1
"""A residual beyond this share of the time, with its whole interval on one side of 0, says that the line does not hold
there."""
FALSE_CUTS = 0.05
"""How often, at most, times that are on one line would be cut, did a residual that is little not rule it out."""
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
class Piece:
    """t = α + S/β in a range of sizes."""

    lines: tuple[tuple[float, float], ...]
    """(α, 1/β) of each block: seconds, and seconds a byte."""
    residuals: tuple[Residual, ...]
    """By size, the smallest first: those are the range."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Those that it is fitted to, the smallest first."""
        return tuple(residual.size for residual in self.residuals)

    @property
    def smallest(self) -> int:
        """Bytes from which on it holds."""
        return self.residuals[0].size

    @property
    def largest(self) -> int:
        """Bytes up to which it holds."""
        return self.residuals[-1].size

    @property
    def latency_s(self) -> OverBlocks:
        """α: where the line begins. Of a piece of larger sizes that is no time that anything takes."""
        return OverBlocks.of([alpha for alpha, _ in self.lines])

    @property
    def seconds_a_byte(self) -> OverBlocks:
        """1/β."""
        return OverBlocks.of([slope for _, slope in self.lines])

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

    def at(self, size: int) -> float:
        """Seconds by the mean of the blocks' lines."""
        return self.latency_s.value + self.seconds_a_byte.value * size

    def of_block(self, block: int, size: int) -> float:
        """Seconds by the line of a block, counted from 0."""
        alpha, slope = self.lines[block]
        return alpha + slope * size


@dataclass(frozen=True)
class LatencyBandwidth:
    """t = α + S/β of one collective by one op: one line over all of its sizes, or several, one a piece."""

    pieces: tuple[Piece, ...]
    """The one of the smallest sizes first."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Those that it is fitted to, the smallest first."""
        return tuple(size for piece in self.pieces for size in piece.sizes)

    @property
    def latency_s(self) -> OverBlocks:
        """α of the smallest sizes: the latency."""
        return self.pieces[0].latency_s

    @property
    def seconds_a_byte(self) -> OverBlocks:
        """1/β of the largest sizes: of the bandwidth."""
        return self.pieces[-1].seconds_a_byte

    @property
    def blocks(self) -> int:
        """How many the fit is of."""
        return len(self.pieces[0].lines)

    def at(self, size: int) -> float:
        """Seconds by the piece that has the size; between two pieces by the line that joins them, beyond all by the
        nearest."""
        return self.taken([size]).value

    def taken(self, sizes: Sequence[int]) -> OverBlocks:
        """Seconds of buffers of these sizes one after the other, each `at` its size."""
        return OverBlocks.of([math.fsum(self._of_block(block, size) for size in sizes) for block in range(self.blocks)])

    def _of_block(self, block: int, size: int) -> float:
        place = bisect_left([piece.largest for piece in self.pieces], size)
        above = self.pieces[min(place, len(self.pieces) - 1)]
        if place == 0 or size >= above.smallest:
            return above.of_block(block, size)
        below = self.pieces[place - 1]
        begin, end = (piece.of_block(block, at) for piece, at in ((below, below.largest), (above, above.smallest)))
        return begin + (end - begin) * (size - below.largest) / (above.smallest - below.largest)


def fit(times: Times) -> LatencyBandwidth | None:
    """The fit over the blocks in which every size was measured, without sizes that fewer than half of the blocks have:
    these would take the other blocks from all, so that they stay only where too few are left. None of fewer than
    FEWEST_SIZES or without a block."""
    every = set[int]().union(*times.values())
    often = sorted(size for size, of in times.items() if 2 * len(of) >= len(every))
    sizes = often if len(often) >= FEWEST_SIZES else sorted(times)
    blocks = sorted(set.intersection(*(set(times[size]) for size in sizes))) if sizes else []
    if len(sizes) < FEWEST_SIZES or not blocks:
        return None
    runs = _Runs(sizes, [[times[size][block] for block in blocks] for size in sizes])
    return LatencyBandwidth(tuple(run.piece for run in _chosen(runs, len(sizes), len(blocks))))


@dataclass(frozen=True)
class _Run:
    """A line through a run of sizes in each block, and what it leaves over, as squared shares of the time."""

    piece: Piece
    lack: float
    """Of the means over blocks, times the blocks: what the line lacks, and some noise."""
    noise: float
    """Of what blocks differ from their mean."""


class _Runs:
    """Lines through runs of sizes, each made once."""

    def __init__(self, sizes: Sequence[int], times: Sequence[Sequence[float]]) -> None:
        """`times` in seconds by size, then by block."""
        self._sizes, self._times = sizes, times
        self._means = [math.fsum(of) / len(of) for of in times]
        self._made: dict[tuple[int, int], _Run] = {}

    def of(self, begin: int, end: int) -> _Run:
        """The line through the sizes from `begin` on, up to and without `end`."""
        if (begin, end) not in self._made:
            self._made[begin, end] = self._run(slice(begin, end))
        return self._made[begin, end]

    def _run(self, part: slice) -> _Run:
        sizes, times, means = self._sizes[part], self._times[part], self._means[part]
        lines = [_line(sizes, of_block, means) for of_block in zip(*times, strict=True)]
        left = [
            [(time - alpha - slope * size) / mean for time, (alpha, slope) in zip(of_size, lines, strict=True)]
            for size, of_size, mean in zip(sizes, times, means, strict=True)
        ]
        shares = [OverBlocks.of(of_size) for of_size in left]
        residuals = tuple(Residual(size, share) for size, share in zip(sizes, shares, strict=True))
        lack = len(lines) * math.fsum(share.value**2 for share in shares)
        noise = math.fsum((one - share.value) ** 2 for of, share in zip(left, shares, strict=True) for one in of)
        return _Run(Piece(tuple(lines), residuals), lack, noise)


def _chosen(runs: _Runs, sizes: int, blocks: int) -> Sequence[_Run]:
    """The fewest pieces that leave nothing over beyond doubt, as far as more of them earn it."""
    best = [runs.of(0, sizes)]
    for count in range(2, MOST_PIECES + 1):
        ways = [[runs.of(*run) for run in itertools.pairwise(cuts)] for cuts in _cuts(sizes, count)]
        if not ways or not any(run.piece.worst.beyond_doubt for run in best):
            break
        found = min(ways, key=_lack)
        more, free = 2 * (count - len(best)), (blocks - 1) * (sizes - 2 * count)
        by_chance = _exceeded(_lack(best) - _lack(found), more, math.fsum(run.noise for run in found), free)
        if by_chance * len(ways) < FALSE_CUTS:
            best = found
    return best


def _cuts(sizes: int, count: int) -> Iterator[tuple[int, ...]]:
    """Every way to cut so many sizes into `count` pieces that have enough: where each begins, and the end."""
    for inner in itertools.combinations(range(FEWEST_SIZES, sizes - FEWEST_SIZES + 1), count - 1):
        cuts = (0, *inner, sizes)
        if all(end - begin >= FEWEST_SIZES for begin, end in itertools.pairwise(cuts)):
            yield cuts


def _lack(runs: Sequence[_Run]) -> float:
    return math.fsum(run.lack for run in runs)


def _exceeded(less: float, more: int, noise: float, free: int) -> float:
    """How likely noise alone makes `more` parameters leave `less` over, of a sum of squares with `free` degrees of
    freedom beside it (F test)."""
    return float(special.fdtrc(more, free, less / more / (noise / free))) if noise > 0 else 0.0


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
