"""Bandwidth of collectives by the published factors of nccl-tests (doc/PERFORMANCE.md)."""

import pytest

from harness.analysis.collectives import bus_factor
from harness.spec.collective import COLLECTIVES

PUBLISHED = {
    ("all_reduce", 2): 1.0,
    ("all_reduce", 3): 4 / 3,
    ("all_reduce", 8): 1.75,
    ("all_gather", 2): 0.5,
    ("all_gather", 8): 0.875,
    ("reduce_scatter", 2): 0.5,
    ("reduce_scatter", 8): 0.875,
    ("broadcast", 2): 1.0,
    ("broadcast", 8): 1.0,
}
"""busbw ÷ algbw: AllReduce 2(n−1)/n, AllGather and ReduceScatter (n−1)/n, Broadcast 1."""


@pytest.mark.parametrize(("collective", "n"), PUBLISHED)
def test_bus_bandwidth_is_algorithm_bandwidth_times_the_published_factor(collective: str, n: int) -> None:
    assert bus_factor(collective, n) == pytest.approx(PUBLISHED[collective, n])


def test_every_collective_has_its_factor() -> None:
    assert {collective for collective, _ in PUBLISHED} == set(COLLECTIVES)
