"""Collectives on emulated links: latency and bandwidth against the ring's formula, and a step predicted by them.

On each link an all-reduce between two workers is measured in several sizes, which gives the line t = α + S/β; and a
training step whose gradients are one buffer is measured with its reduction and without, both taking turns. Promise: β
is within 10 % of what the ring's formula says of the link as it was measured when it was built, α within 20 %, and the
exposed communication of the step within 15 % of the line at the size of its gradients.

    python benchmarks/goals/links.py [--blocks N] [--network A,B,…] [--results DIR]

Needs what emulated networks need (docs/networks.md). Ten minutes on two cores.
"""

import argparse
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common import cell, interval, scratch, table, trials_of_arms

import harness
from harness.analysis.collectives import collective_groups
from harness.analysis.latency import LatencyBandwidth
from harness.analysis.network import ring_s
from harness.record.cluster import NetworkRecord
from harness.record.explain import NO_REDUCTION, WHOLE
from harness.record.reading import Run
from harness.record.trial import TrialRecord
from harness.spec.cell import trained
from harness.spec.network import Network

RATES, DELAYS = ("100mbit", "1gbit"), ("0.1ms", "1ms", "5ms")
WORKERS = 2
SIZES = ("4", "64KiB", "1MiB", "4MiB")
ONE_PACK = 2**30
"""Bytes a pack: all gradients in one."""
BATCH_SIZE = 32
SWEEP = {"window": 0.1, "windows": 8, "max_warmup": 2}
PROMISED = {"1/β": 0.10, "α": 0.20, "exposed": 0.15}


@dataclass(frozen=True)
class Link:
    """What was measured on one network."""

    network: str
    built: NetworkRecord
    """As it was measured when it was built."""
    line: LatencyBandwidth
    exposed_s: tuple[float, float, float]
    """Seconds that a step is longer for its reduction, with their 95 % interval."""
    packs: Sequence[int]
    """Bytes of each of the step's reductions."""

    @property
    def ratios(self) -> dict[str, float]:
        """Of each promise, measured ÷ predicted."""
        bits, one_way = self.built.bandwidth_bits_per_s, self.built.round_trip_s / 2
        assert bits is not None, "a link of a known rate"
        alpha = ring_s(WORKERS, [0], one_way, bits)
        a_byte = ring_s(WORKERS, [1], 0.0, bits)
        return {
            "1/β": self.line.seconds_a_byte.value / a_byte,
            "α": self.line.latency_s.value / alpha,
            "exposed": self.exposed_s[0] / math.fsum(map(self.line.at, self.packs)),
        }

    @property
    def row(self) -> tuple[str, ...]:
        """What is printed."""
        mean, low, high = (1e3 * seconds for seconds in self.exposed_s)
        ratios = (f"{ratio:.2f}" for ratio in self.ratios.values())
        fitted = (f"{1e3 * self.line.latency_s.value:.2f} ms", f"{8e-6 / self.line.seconds_a_byte.value:.1f} Mbit/s")
        return (self.network, *fitted, f"{mean:.1f} ms [{low:.1f}, {high:.1f}]", *ratios)


def lines_of(run: Run) -> dict[str, tuple[LatencyBandwidth, NetworkRecord]]:
    """The line of each network of a sweep of collectives, and the network as it was built first."""
    built: dict[str, NetworkRecord] = {}
    for trial in run.trials:
        if trial.cluster is not None and trial.cluster.network is not None:
            built.setdefault(trial.cell.shape.network, trial.cluster.network)
    summary = harness.summary(run.path)
    curves = [curve for group in collective_groups(summary) for curve in group.curves]
    named = {curve.figures[0].cell.network: curve.line for curve in curves}
    return {network: (line, built[network]) for network, line in named.items() if line is not None}


def exposed(network: str, blocks: int) -> tuple[tuple[float, float, float], Sequence[int]]:
    """(seconds that a step takes longer with its reduction, their 95 % interval; bytes of each reduction)."""
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
    trials = trials_of_arms(trained(asked), [WHOLE, NO_REDUCTION], blocks, 1, SWEEP)
    times: defaultdict[int, dict[str, TrialRecord]] = defaultdict(dict)
    for trial in trials:
        assert trial.measured, f"{trial.side}: {trial.status}: {trial.reason}"
        times[trial.block][str(trial.side)] = trial
    longer = [_step_s(arms[WHOLE]) - _step_s(arms[NO_REDUCTION]) for arms in times.values()]
    first = next(trial for trial in trials if trial.side == WHOLE)
    assert first.executed is not None
    mean, low, high, _ = interval(longer)
    return (mean, low, high), first.executed.pack_bytes


def _step_s(trial: TrialRecord) -> float:
    assert trial.step_time_s is not None
    return trial.step_time_s


def measure(networks: Sequence[str], blocks: int, results: Path) -> list[Link]:
    """A sweep of collectives over all of them, then a step on each."""
    swept = harness.sweep(
        work="collective",
        strategy=["multi_worker_mirrored"],
        workers=[WORKERS],
        replicas=[1],
        size=list(SIZES),
        network=list(networks),
        trials=blocks,
        results=results,
    )
    found = lines_of(swept.run)
    links = []
    for network in networks:
        line, built = found[network]
        links.append(Link(network, built, line, *exposed(network, blocks)))
        print(*links[-1].row, flush=True)
    return links


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--network", help="in place of the six promised, a semicolon between them")
    parser.add_argument("--results", type=Path, help="where the sweep is kept; without it nowhere")
    given = parser.parse_args()
    texts = given.network.split(";") if given.network else [f"rate={r},delay={d}" for r in RATES for d in DELAYS]
    networks = [Network.parse(text).text for text in texts]
    with scratch() as folder:
        links = measure(networks, given.blocks, given.results or Path(folder))
    head = ("network", "α", "S ÷ t of large buffers", "exposed", *(f"{name} ÷ predicted" for name in PROMISED))
    print()
    table([head, *(link.row for link in links)])
    for name, most in PROMISED.items():
        kept = sum(abs(link.ratios[name] - 1) <= most for link in links)
        print(f"{name}: within {most:.0%} on {kept} of {len(links)} links")


if __name__ == "__main__":
    main()
