"""Collectives on emulated links: latency and bandwidth against the ring's formula, and a step predicted by them.

On each link an all-reduce between two workers is measured in many sizes, which gives t = α + S/β, in ranges of sizes
where one line does not hold: α is that of the smallest, β that of the largest. A training step whose gradients are one
buffer is measured with its reduction and without, both taking turns. Promise: β is within 10 % of what the ring's
formula (docs/protocol.md#communication-cost) says of the link as it was measured when it was built, α within 20 %, and
the exposed communication of the step within 15 % of the fit at the size of its gradients, and of the formula there.

The formula knows the link and no software. What that takes is measured in the same sweep, between two hosts whose link
has neither delay nor rate: α less the formula's round trips, and 1/β as it is. Both ratios are printed, to the formula
and to the formula with the software. Where copying overlaps with sending the latter expects too much.

TCP on the hosts is Linux's own choice, CUBIC, unless another is named: connections of trials that take turns rest for
seconds, and BBR sends next to nothing for 0.2 s whenever it has seen no shorter round trip for ten.

    python benchmarks/goals/links.py [--blocks N] [--network A;B;…] [--congestion NAME] [--results DIR]

Needs what emulated networks need (docs/networks.md). 25 minutes on two cores. It ends with the tables of README.md.
"""

import argparse
import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from common import cell, markdown, scratch, trials_of_arms

import harness
from harness.analysis.collectives import collective_groups
from harness.analysis.latency import LatencyBandwidth, OverBlocks, Piece
from harness.analysis.network import ring_s
from harness.record.cluster import NetworkRecord
from harness.record.explain import NO_REDUCTION, WHOLE
from harness.record.reading import Run
from harness.record.trial import TrialRecord
from harness.spec.cell import trained
from harness.spec.collective import size_text
from harness.spec.network import Network

RATES, DELAYS = ("100mbit", "1gbit"), ("0.1ms", "1ms", "5ms")
WORKERS = 2
SIZES = ("4", "1KiB", "16KiB", "64KiB", "256KiB", "1MiB", "2MiB", "4MiB", "8MiB", "16MiB")
"""Enough for three pieces, the last of buffers that are much larger than what is on the way on any of the links."""
ONE_PACK = 2**30
"""Bytes a pack: all gradients in one."""
BATCH_SIZE = 32
SWEPT = {"windows": 6, "max_warmup": 1}
STEP = {"window": 0.1, "windows": 8, "max_warmup": 2}
RING, WITH_SOFTWARE = "ring", "ring and software"
PROMISED = {
    f"1/β ÷ {RING}": 0.10,
    f"1/β ÷ {WITH_SOFTWARE}": 0.10,
    f"α ÷ {RING}": 0.20,
    f"α ÷ {WITH_SOFTWARE}": 0.20,
    "exposed ÷ fit": 0.15,
    f"exposed ÷ {WITH_SOFTWARE}": 0.15,
}
"""How far from 1 each ratio may be."""


@dataclass(frozen=True)
class Software:
    """What an all-reduce takes beside the link."""

    latency_s: OverBlocks
    """Of a few bytes."""
    seconds_a_byte: OverBlocks

    def taken(self, packs: Sequence[int]) -> OverBlocks:
        """Seconds of all-reduces of so many bytes, one after the other; the doubts of the two add up as squares."""
        of = ((len(packs), self.latency_s), (sum(packs), self.seconds_a_byte))
        value = math.fsum(times * one.value for times, one in of)
        half = math.hypot(*(times * (one.value - one.low) for times, one in of if one.low is not None))
        return OverBlocks(value, value - half, value + half)

    @classmethod
    def of(cls, line: LatencyBandwidth, built: NetworkRecord) -> "Software":
        """From the fit of a link without delay or rate, whose round trips are not the software's."""
        on_the_way = ring_s(WORKERS, [0], built.round_trip_s, built.bandwidth_bits_per_s)
        return cls(plus(-on_the_way, line.latency_s), line.seconds_a_byte)


@dataclass(frozen=True)
class Link:
    """What was measured on one network."""

    network: str
    built: NetworkRecord
    """As it was measured when it was built, in the median of its trials."""
    line: LatencyBandwidth
    software: Software
    exposed_s: OverBlocks
    """Seconds that a step is longer for its reduction."""
    packs: Sequence[int]
    """Bytes of each of the step's reductions."""

    @property
    def ratios(self) -> dict[str, OverBlocks]:
        """Each of `PROMISED`."""
        on_the_way = ring_s(WORKERS, [0], self.built.round_trip_s, self.built.bandwidth_bits_per_s)
        a_byte = ring_s(WORKERS, [1], 0.0, self.built.bandwidth_bits_per_s)
        ring = ring_s(WORKERS, self.packs, self.built.round_trip_s, self.built.bandwidth_bits_per_s)
        a_step = plus(ring, self.software.taken(self.packs))
        found = (
            ratio(self.line.seconds_a_byte, OverBlocks(a_byte)),
            ratio(self.line.seconds_a_byte, plus(a_byte, self.software.seconds_a_byte)),
            ratio(self.line.latency_s, OverBlocks(on_the_way)),
            ratio(self.line.latency_s, plus(on_the_way, self.software.latency_s)),
            ratio(self.exposed_s, self.line.taken(self.packs)),
            ratio(self.exposed_s, a_step),
        )
        return dict(zip(PROMISED, found, strict=True))

    @property
    def row(self) -> tuple[str, ...]:
        """Of the table of promises."""
        measured = (
            f"{1e3 * self.built.round_trip_s:.2f}",
            limits(self.line.latency_s, 1e3, 2),
            _megabits(self.line.pieces[-1]),
            limits(self.exposed_s, 1e3, 1),
        )
        return (self.network, *measured, *(limits(of, 1.0, 2) for of in self.ratios.values()))


def plus(known: float, of: OverBlocks) -> OverBlocks:
    """The sum, whose interval is that of what is not known."""
    return OverBlocks(known + of.value, *(None if limit is None else known + limit for limit in (of.low, of.high)))


def ratio(measured: OverBlocks, predicted: OverBlocks) -> OverBlocks:
    """Measured ÷ predicted; shares of the two intervals add up as squares, what has none counting as exact."""
    value = measured.value / predicted.value
    halves = (0.0 if of.low is None else (of.value - of.low) / of.value for of in (measured, predicted))
    half = abs(value) * math.hypot(*halves)
    return OverBlocks(value, value - half, value + half)


def limits(of: OverBlocks, scale: float, digits: int) -> str:
    """`1.02 [0.98, 1.06]`."""
    value, low, high = (f"{scale * one:.{digits}f}" for one in (of.value, of.low or of.value, of.high or of.value))
    return value if of.low is None else f"{value} [{low}, {high}]"


def lines_of(run: Run) -> dict[str, tuple[LatencyBandwidth, NetworkRecord]]:
    """The fit of each network of a sweep of collectives, and the network as it was built."""
    built: defaultdict[str, list[NetworkRecord]] = defaultdict(list)
    for trial in run.trials:
        if trial.cluster is not None and trial.cluster.network is not None:
            built[trial.cell.shape.network].append(trial.cluster.network)
    summary = harness.summary(run.path)
    curves = [curve for group in collective_groups(summary) for curve in group.curves]
    named = {curve.figures[0].cell.network: curve.line for curve in curves}
    return {network: (line, _median(built[network])) for network, line in named.items() if line is not None}


def _median(built: Sequence[NetworkRecord]) -> NetworkRecord:
    return NetworkRecord(
        round_trip_s=statistics.median(of.round_trip_s for of in built),
        bandwidth_bits_per_s=statistics.median(of.bandwidth_bits_per_s for of in built),
        congestion_control=built[0].congestion_control,
    )


def exposed(network: str, blocks: int) -> tuple[OverBlocks, Sequence[int]]:
    """(seconds that a step takes longer with its reduction; bytes of each reduction)."""
    asked = cell(
        "multi_worker_mirrored",
        1,
        BATCH_SIZE,
        workers=WORKERS,
        model="mlp",
        data="synthetic",
        network=network,
        bytes_per_pack=ONE_PACK,
    )
    trials = trials_of_arms(trained(asked), [WHOLE, NO_REDUCTION], blocks, 1, STEP)
    times: defaultdict[int, dict[str, TrialRecord]] = defaultdict(dict)
    for trial in trials:
        assert trial.measured, f"{trial.side}: {trial.status}: {trial.reason}"
        times[trial.block][str(trial.side)] = trial
    longer = [_step_s(arms[WHOLE]) - _step_s(arms[NO_REDUCTION]) for arms in times.values()]
    first = next(trial for trial in trials if trial.side == WHOLE)
    assert first.executed is not None
    return OverBlocks.of(longer), first.executed.pack_bytes


def _step_s(trial: TrialRecord) -> float:
    assert trial.step_time_s is not None
    return trial.step_time_s


def measure(networks: Sequence[str], unshaped: str, blocks: int, results: Path) -> list[Link]:
    """A sweep of collectives over all of them and the link without delay or rate, then a step on each."""
    swept = harness.sweep(
        work="collective",
        strategy=["multi_worker_mirrored"],
        workers=[WORKERS],
        replicas=[1],
        size=list(SIZES),
        network=[unshaped, *networks],
        trials=blocks,
        results=results,
        **SWEPT,
    )
    found = lines_of(swept.run)
    software = Software.of(*found[unshaped])
    alone = limits(software.latency_s, 1e3, 2), _megabits(found[unshaped][0].pieces[-1])
    print(f"the software alone: {alone[0]} ms and {alone[1]} Mbit/s", flush=True)
    links = []
    for network in networks:
        line, built = found[network]
        links.append(Link(network, built, line, software, *exposed(network, blocks)))
        print(*links[-1].row, flush=True)
    return links


def show(links: Sequence[Link]) -> None:
    """The tables in Markdown, and how many links keep each promise: by their value, and by all of its interval."""
    heads = ("network", "round trip, ms", "α, ms", "β, Mbit/s", "exposed, ms", *PROMISED)
    print("\n" + markdown([heads, *(link.row for link in links)]))
    heads = ("network", "sizes", "α, ms", "β, Mbit/s", "largest residual")
    print("\n" + markdown([heads, *(_piece(link.network, of) for link in links for of in link.line.pieces)]))
    print()
    for name, most in PROMISED.items():
        ratios = [link.ratios[name] for link in links]
        kept = sum(abs(of.value - 1) <= most for of in ratios)
        limits_of = [(of.low, of.high) for of in ratios if of.low is not None and of.high is not None]
        surely = sum(1 - most <= low and high <= 1 + most for low, high in limits_of)
        print(f"{name}: within {most:.0%} of 1 on {kept} of {len(links)} links, by all of the interval on {surely}")


def _piece(network: str, piece: Piece) -> tuple[str, ...]:
    ends = f"{size_text(piece.smallest, 'B', ' ')} – {size_text(piece.largest, 'B', ' ')}"
    worst = f"{piece.worst.share.value:+.0%} at {size_text(piece.worst.size, 'B', ' ')}"
    return network, ends, limits(piece.latency_s, 1e3, 2), _megabits(piece), worst


def _megabits(piece: Piece) -> str:
    if piece.bandwidth is None:
        return "not known"
    low, high = piece.bandwidth_limits
    return limits(OverBlocks(piece.bandwidth, low, high or math.inf), 8e-6, 1)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--network", help="in place of the six promised, a semicolon between them")
    parser.add_argument("--congestion", default="cubic", help="how TCP on the hosts finds its speed, such as bbr")
    parser.add_argument("--results", type=Path, help="where the sweep is kept; without it nowhere")
    given = parser.parse_args()
    texts = given.network.split(";") if given.network else [f"rate={r},delay={d}" for r in RATES for d in DELAYS]
    networks = [replace(Network.parse(text), congestion=given.congestion).text for text in texts]
    unshaped = Network(congestion=given.congestion).text
    with scratch() as folder:
        links = measure(networks, unshaped, given.blocks, given.results or Path(folder))
    show(links)


if __name__ == "__main__":
    main()
