"""Synthetic runs on emulated networks whose steps cost exactly what the ring's formula says."""

from collections.abc import Sequence
from typing import Any

from harness.analysis import WorkloadSummary, summarise
from harness.analysis.network import ring_s
from harness.record.cluster import ClusterRecord, NetworkRecord
from harness.record.trial import Executed, TrialRecord
from harness.spec.network import Network
from harness.spec.work import Cell
from tests.comparisons import scaled
from tests.synthetic import Change, make_cell, make_run

RATES = ("rate=100mbit", "rate=1gbit", "unshaped")
PACKS = [400_000, 4]
UNSHAPED_BITS_PER_S = 8e9
BARE_ROUND_TRIP_S = 0.00005


def on(network: str, **changes: Any) -> Cell:
    """Two workers in lock-step on a network."""
    return make_cell("multi_worker_mirrored", 1, workers=2, network=network, **changes)


def found(cell: Cell) -> NetworkRecord | None:
    """What a network turns out to be: exactly as asked."""
    if not cell.network:
        return None
    network = Network.parse(cell.network)
    return NetworkRecord(
        round_trip_s=BARE_ROUND_TRIP_S + 2 * network.delay,
        bandwidth_bits_per_s=UNSHAPED_BITS_PER_S if network.rate is None else network.rate,
        congestion_control="cubic",
    )


def as_the_ring_costs(record: TrialRecord) -> TrialRecord:
    """The record with the network in it: a step is longer by what its reductions cost, nothing hidden."""
    network = found(record.cell)
    if record.cell.strategy != "multi_worker_mirrored" or record.step_time_s is None:
        return record
    changes: dict[str, Any] = {
        "executed": Executed(operations={"CollectiveReduceV2[auto]": 2}, pack_bytes=PACKS, fingerprint="ring-2"),
        "cluster": ClusterRecord(launcher="local", members=[], isolated=True, network=network),
    }
    if network is not None:
        extra = ring_s(2, PACKS, network.round_trip_s, network.bandwidth_bits_per_s)
        record = scaled(record, 1 + extra / record.step_time_s, 1.0)
    return record.model_copy(update=changes)


def networked(cells: Sequence[Cell], change: Change = as_the_ring_costs) -> WorkloadSummary:
    """The summary of a run without drift or noise, so that the truth is what comes out."""
    run = make_run([make_cell("none"), *cells], faults=False, drift=0.0, noise=0.0, change=change)
    return summarise(*run).workloads[0]


def messages_round_trips(ranks: int, steps: int = 40) -> tuple[float, float]:
    """(of an all-reduce that all begin at once, of one of many in a row): round trips by the order of TensorFlow's
    messages, as `TF_CPP_MAX_VLOG_LEVEL=3` logs it.

    All ranks but the first begin with `CompleteInstance`, there and back. Then each asks for what it receives first of
    each chunk (`RecvBuf`), and for what it receives in the second pass once the first is done with; the answer goes off
    when the question is there and what it asks for is known.
    """
    begun, lasted = [0.0] * ranks, []
    for _ in range(steps):
        ready = [at + (2.0 if rank else 0.0) for rank, at in enumerate(begun)]
        ended = list(ready)
        for chunk in range(ranks):
            known = ready[chunk]
            asks = {(chunk + hop) % ranks: ready[(chunk + hop) % ranks] for hop in range(1, ranks)}
            for hop in range(2 * (ranks - 1)):
                sender, receiver = (chunk + hop) % ranks, (chunk + hop + 1) % ranks
                sent = max(known, asks[receiver] + 1.0)
                asks[sender] = sent  # in the second pass, which begins when this is sent
                known = sent + 1.0
                ended[sender], ended[receiver] = max(ended[sender], sent), max(ended[receiver], known)
        lasted.append(max(ended) - max(begun))
        begun = ended
    rows = lasted[steps // 2 :]
    return lasted[0] / 2, sum(rows) / len(rows) / 2
