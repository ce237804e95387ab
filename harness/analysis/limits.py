"""What was measured of a machine's limits, and how far cells are from them (`docs/protocol.md#limits-of-a-machine`)."""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.analysis.cells import CellTrials
from harness.analysis.collectives import bus_factor
from harness.analysis.estimates.intervals import Interval, log_mean
from harness.analysis.summary import CellSummary
from harness.environment import Fact, other_machine
from harness.environment.software import other_versions
from harness.record.limits import Limit, LimitKind, LimitsRecord, limits_of_machine
from harness.record.trial import TF32
from harness.spec.work import Cell
from harness.visible import plural


def reached(limit: Limit) -> Interval | None:
    """What a fresh process comes to: exp(mean ± t·s/√P) of the P processes' log rates; None where there is none.

    The limit itself is `Limit.best`, the largest of them.
    """
    return log_mean([math.log(rate) for rate in limit.rates], "t").interval() if limit.rates else None


FLOAT32 = "float32"
AMPERE = 8.0
"""The compute capability of the first cards that have TF32."""
_SOFTWARE = re.compile(r"python\.version|package\.(tensorflow|numpy|nvidia-.*)")
"""Facts of the software that a limit may depend on."""


def limits_of(
    facts: Mapping[str, Fact], results: Path, passed_over: Callable[[str], None] | None = None
) -> LimitsRecord | None:
    """The newest record in `results` of the machine that facts tell of, measured with its cores, GPUs and versions.
    Takes and raises what `limits_of_machine` does."""

    def software(of: Mapping[str, Fact]) -> dict[str, Fact]:
        return {key: fact for key, fact in of.items() if _SOFTWARE.fullmatch(key)}

    def fits(record: LimitsRecord) -> bool:
        then = record.machine.facts
        return not other_machine(then, facts) and not other_versions(software(then), software(facts))

    return next(filter(fits, limits_of_machine(results, str(facts.get("machine.id")), passed_over)), None)


@dataclass(frozen=True)
class Roof:
    """What the processors of a cell can do at most (S. Williams, A. Waterman, D. Patterson, Roofline, 2009)."""

    place: str
    """`2 threads`, `1 GPU`."""
    type: str
    """Of the numbers as they are computed: `float32`; `tf32` where a GPU computes that in fewer bits."""
    compute: float
    """FLOP/s of matrix products."""
    memory: float
    """Bytes/s."""

    @property
    def numbers(self) -> str:
        """Its type in words."""
        return numbers_told(self.type)

    def at(self, intensity: float) -> float:
        """FLOP/s at most where each byte that is moved serves so many operations: min(compute, intensity × memory)."""
        return min(self.compute, intensity * self.memory)


@dataclass(frozen=True)
class CellRate:
    """A cell's products and convolutions: how fast, and beside what its processors can do."""

    cell: CellSummary
    rate: Interval
    """FLOP/s: those of a step ÷ what the step takes."""
    intensity: float
    """FLOP for each byte that they read or write."""
    roof: Roof | None
    """None where its type of number was measured on no such processors."""

    @property
    def share(self) -> Interval | None:
        """Of the limit of matrix products, which on accelerators is called MFU."""
        return None if self.roof is None else self.rate.scaled(1 / self.roof.compute)

    @property
    def of_roof(self) -> Interval | None:
        """Of what products and memory together allow where each byte serves as many operations as here."""
        return None if self.roof is None else self.rate.scaled(1 / self.roof.at(self.intensity))

    @property
    def bound(self) -> str:
        """`memory` where the slanted part of the roof is above it, `compute` where the flat one is; empty without."""
        if self.roof is None:
            return ""
        return "compute" if self.roof.at(self.intensity) >= self.roof.compute else "memory"


def cell_rates(cells: Iterable[CellSummary], limits: LimitsRecord | None, launcher: str = "local") -> list[CellRate]:
    """Of the measured cells whose operations and bytes were counted; processes that `launcher` started elsewhere have
    another machine's limits, and get no roof, nor do those of a machine without any."""
    here = limits if launcher == "local" else None
    best, cards = ({}, set()) if here is None else (_best_of(here), _kinds_of_cards(here.machine.facts))
    found = []
    for cell in cells:
        executed, measured = cell.trials.executed, cell.measured
        if measured is None or not executed.flops_per_step or not executed.bytes_per_step:
            continue
        step, flops = measured.step_time_s, executed.flops_per_step
        ends = (flops / step.high, flops / step.low) if step.low and step.high else (None, None)
        rate, intensity = Interval(flops / step.value, *ends), flops / executed.bytes_per_step
        found.append(CellRate(cell, rate, intensity, _roof(cell, best, cards)))
    return found


def roofs_of(rates: Sequence[CellRate]) -> list[Roof]:
    """Those of the cells, the lowest first, each once."""
    roofs = dict.fromkeys(rate.roof for rate in rates if rate.roof is not None)
    return sorted(roofs, key=lambda roof: (roof.compute, roof.memory))


def _number(trials: CellTrials) -> str:
    """The type of numbers of most of its products; empty where nobody knows: a model of the user's own need not have
    the cell's precision, and earlier records do not say."""
    if trials.executed.product_types:
        return trials.executed.product_types[0]
    return (
        ""
        if trials.cell.own_code.keys() & {"model", "step", "engine"}
        else str(trials.cell.get("precision") or "float32").removeprefix("mixed_")
    )


def _roof(cell: CellSummary, best: "BestSeen", cards: Collection[str]) -> Roof | None:
    """Of so many processors as the cell keeps busy; of several cards only where the machine has one kind of `cards`,
    of which one was measured.

    On the processor: of so many threads where these were measured, or of fewer where these came to more. Between one
    thread and all cores no more than so many times what one thread does, and no more than any number does.
    """
    trials = cell.trials
    busy = min(trials.cell.replicas_in_sync, trials.physical_devices)
    number = _number(trials)
    if trials.device.on_processors:
        most = max((count for *_, count in best), default=1)
        threads = min(most, busy * (trials.resources.intra_op_threads or most))
        place = plural(threads, "thread")
        compute, memory = (_of_threads(best, kind, threads, most) for kind in _kinds(number))
    elif busy > 1 and len(cards) > 1:
        return None
    else:
        place, number = plural(busy, "GPU"), _on_card(number, trials.executed.arithmetic, best)
        compute, memory = (busy * (best.get((*kind, 0)) or 0.0) for kind in _kinds(number))
    return Roof(place, number, compute, memory) if compute and memory else None


def _on_card(number: str, arithmetic: str, best: "BestSeen") -> str:
    """What it is computed in. Of float32 in an earlier record that is what the card computes it in."""
    if number != FLOAT32:
        return number
    return arithmetic or next((of for of in (TF32, FLOAT32) if ("products", of, 0) in best), FLOAT32)


@dataclass(frozen=True)
class BusLimit:
    """What the bus bandwidth of a collective comes to at most."""

    of: str
    """`the network`."""
    bytes_per_s: float


def bus_limit(cells: Sequence[CellSummary], limits: LimitsRecord | None, launcher: str = "local") -> BusLimit | None:
    """Of cells between the same replicas: the link of their emulated network, as it was measured; of one machine what
    one process sends another, copies from GPU to GPU, or what memory can do. None where nobody measured that.
    """
    networks = [cell.trials.network for cell in cells if cell.trials.network is not None]
    if networks:
        return BusLimit("the network", max(network.bandwidth_bits_per_s for network in networks) / 8)
    shapes = [cell.trials.cell.shape for cell in cells]
    if limits is None or launcher != "local" or any(shape.network for shape in shapes):
        return None
    on_cores = all(cell.trials.device.on_processors for cell in cells)
    between = on_cores and all(shape.workers > 1 for shape in shapes)
    carriers: list[tuple[LimitKind, str]] = [("between_processes", "TCP between processes")] if between else []
    carriers.append(("memory", "memory") if on_cores else ("device_to_device", "copies from GPU to GPU"))
    device = "cpu" if on_cores else "gpu"
    for quantity, of in carriers:
        found = [one.best for one in limits.limits if (one.quantity, one.device) == (quantity, device) and one.best]
        if found and (of_bus := _of_bus(cells[0].trials.cell) if quantity == "memory" else 1.0):
            return BusLimit(of, max(found) * of_bus)
    return None


def _of_bus(cell: Cell) -> float | None:
    """busbw ÷ the traffic of memory at least, which STREAM counts: n replicas' buffers are read, and what they come to
    is written, if only once. Of a broadcast no byte need move where memory is shared."""
    n, collective = cell.replicas_in_sync, str(cell.get("collective"))
    sizes = {"all_reduce": n + 1, "reduce_scatter": n + 1, "all_gather": 2}.get(collective)
    return bus_factor(collective, n) / sizes if sizes else None


KindOfLimit = tuple[str, str]
"""(quantity, type of number) of a limit."""
BestSeen = Mapping[tuple[str, str, int], float | None]
"""The best that was seen of each quantity, type of number and number of threads; 0 threads are a GPU's."""


def _kinds(number: str) -> tuple[KindOfLimit, KindOfLimit]:
    return ("products", number), ("memory", "float64")


def _of_threads(every: BestSeen, kind: KindOfLimit, threads: int, most: int) -> float | None:
    """What fewer threads came to, so many can: the others may rest."""
    best = {count: found for count in range(1, most + 1) if (found := every.get((*kind, count)))}
    if threads not in best and not {1, most} <= best.keys():
        return None
    between = 0.0 if threads in best else min(threads * best[1], max(best.values()))
    return max(between, *(found for count, found in best.items() if count <= threads))


def _best_of(limits: LimitsRecord) -> BestSeen:
    """Of what stands there twice the first."""
    facts = limits.machine.facts
    return {(one.quantity, computed_in(one, facts), one.threads): one.best for one in reversed(limits.limits)}


def _kinds_of_cards(facts: Mapping[str, Fact]) -> set[str]:
    """The names of those that CUDA sees."""
    indices = range(int(facts.get("gpu.count") or 0))
    return {str(facts.get(f"gpu.{index}.name")) for index in indices if facts.get(f"gpu.{index}.visible") is not False}


def computed_in(limit: Limit, facts: Mapping[str, Fact]) -> str:
    """Its type of number; `tf32` where that is float32 which the GPU multiplied so. In an earlier record that follows
    from the `facts` of the machine, as TensorFlow does it where nothing forbids it."""
    on_card = limit.threads == 0
    if (limit.quantity, limit.type, on_card) != ("products", FLOAT32, True) or limit.arithmetic:
        return limit.arithmetic or limit.type
    able = float(facts.get("gpu.0.compute_capability") or 0) >= AMPERE
    return TF32 if able and facts.get("env.NVIDIA_TF32_OVERRIDE") != "0" else FLOAT32


def numbers_told(kind: str) -> str:
    """A type of numbers, as it is computed, in words."""
    return f"{FLOAT32} as TF32" if kind == TF32 else kind
