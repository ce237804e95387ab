"""Emulated links: what was measured is held against the ring's formula on the link as it was built."""

import pytest

from harness.analysis.latency import fit
from harness.record.cluster import NetworkRecord
from tests.goals import load

links = load("links")
ONE_WAY_S, BITS = 0.001, 95e6
BUILT = NetworkRecord(round_trip_s=2 * ONE_WAY_S, bandwidth_bits_per_s=BITS, congestion_control="cubic")


def link(alpha: float, slope: float, exposed: float) -> object:
    """All-reduces that take alpha + slope × size, and a step of one reduction of a megabyte."""
    line = fit({size: dict.fromkeys(range(3), alpha + slope * size) for size in (4, 65536, 1048576, 4194304)})
    return links.Link("rate=100mbit,delay=1ms", BUILT, line, (exposed, exposed, exposed), [1_000_000])


def test_two_workers_as_the_ring_has_it_are_as_predicted() -> None:
    found = link(2 * ONE_WAY_S, 8 / BITS, 2 * ONE_WAY_S + 8e6 / BITS)
    assert found.ratios == pytest.approx({"1/β": 1.0, "α": 1.0, "exposed": 1.0})
    assert found.row[0] == "rate=100mbit,delay=1ms"
    assert found.row[2] == "95.0 Mbit/s"


@pytest.mark.parametrize(
    ("changed", "by"),
    [("α", {"alpha": 3.0}), ("1/β", {"slope": 1.3}), ("exposed", {"exposed": 0.5})],
)
def test_what_differs_shows_where_it_is(changed: str, by: dict[str, float]) -> None:
    right = {"alpha": 2 * ONE_WAY_S, "slope": 8 / BITS, "exposed": 2 * ONE_WAY_S + 8e6 / BITS}
    found = link(**{name: value * by.get(name, 1.0) for name, value in right.items()})
    assert abs(found.ratios[changed] - 1) > links.PROMISED[changed]


def test_data_of_a_planted_pace_are_functions_named_by_it() -> None:
    slow = load("slow_digits")
    assert callable(slow.at_400)
    for name in ("at_fast", "examples"):
        with pytest.raises(AttributeError, match=name):
            getattr(slow, name)
