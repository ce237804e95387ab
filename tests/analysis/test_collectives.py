"""Bandwidth of collectives by the published factors of nccl-tests (doc/PERFORMANCE.md), and which are one curve."""

from pathlib import Path

import pytest

from harness.analysis import summarise
from harness.analysis.collectives import bus_factor, collective_groups
from harness.spec.collective import COLLECTIVES, CollectiveCell
from harness.spec.grouping import COMPETING
from tests.axes import KEYS_OF_COLLECTIVES, collectives_of
from tests.report.quantities import run_of

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


@pytest.mark.parametrize("key", KEYS_OF_COLLECTIVES)
def test_a_curve_joins_nothing_but_sizes_and_a_group_alternatives_too(key: str, tmp_path: Path) -> None:
    pair = collectives_of(key)
    run = run_of([*pair], tmp_path)
    groups = collective_groups(summarise(run.manifest, run.trials))
    joined = [curve.figures for group in groups for curve in group.curves]
    grouped = [group.figures for group in groups]
    in_one_curve, in_one_group = (
        any({*pair} <= {one.cell for one in figures} for figures in found) for found in (joined, grouped)
    )
    assert in_one_curve == (key == "size")
    assert in_one_group == (
        key in CollectiveCell.TAKING_TURNS or (key in COMPETING and key not in CollectiveCell.APART)
    )
