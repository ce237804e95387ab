"""Emulated links: what was measured is held against the ring's formula on the link as it was built."""

import dataclasses
import math
from typing import Any

import pytest

from harness.analysis.latency import OverBlocks, fit
from harness.analysis.network import ring_s
from harness.record.cluster import NetworkRecord
from harness.trial.own_function import found_function
from tests.goals import load

links = load("links")
ROUND_TRIP_S, BITS = 0.002, 95e6
SOFTWARE_S, A_BYTE_S = 0.0015, 1e-9
BUILT = NetworkRecord(round_trip_s=ROUND_TRIP_S, bandwidth_bits_per_s=BITS, congestion_control="cubic")
ON_THE_WAY_S, PACK = ring_s(2, [0], ROUND_TRIP_S, BITS), 1_000_000
ALPHA_S, SLOPE = ON_THE_WAY_S + SOFTWARE_S, 8 / BITS + A_BYTE_S
RIGHT = {"alpha": ALPHA_S, "slope": SLOPE, "exposed": ALPHA_S + PACK * SLOPE}
SIZES = (4, 65536, 1048576, 4194304)


def link(alpha: float, slope: float, exposed: float) -> Any:
    """All-reduces that take alpha + slope × size, and a step of one reduction of a megabyte."""
    line = fit({size: dict.fromkeys(range(3), alpha + slope * size) for size in SIZES})
    software = links.Software(OverBlocks(SOFTWARE_S), OverBlocks(A_BYTE_S))
    return links.Link("rate=100mbit,delay=1ms", BUILT, line, software, OverBlocks(exposed, exposed, exposed), [PACK])


def values(found: Any) -> dict[str, float]:
    """The ratios without their intervals."""
    return {name: of.value for name, of in found.ratios.items()}


def test_two_workers_as_the_ring_has_it_are_as_predicted() -> None:
    found = link(**RIGHT)
    expected = {
        "1/β ÷ ring": SLOPE * BITS / 8,
        "1/β ÷ ring and software": 1.0,
        "α ÷ ring": ALPHA_S / ON_THE_WAY_S,
        "α ÷ ring and software": 1.0,
        "exposed ÷ fit": 1.0,
        "exposed ÷ ring and software": 1.0,
    }
    assert values(found) == pytest.approx(expected)
    assert found.row[0] == "rate=100mbit,delay=1ms"
    assert found.row[3].startswith(f"{8e-6 / SLOPE:.1f} ")


@pytest.mark.parametrize(
    ("changed", "by"),
    [
        ("α ÷ ring and software", {"alpha": 3.0}),
        ("1/β ÷ ring and software", {"slope": 1.3}),
        ("exposed ÷ fit", {"exposed": 0.5}),
        ("exposed ÷ ring and software", {"exposed": 0.5}),
    ],
)
def test_what_differs_shows_where_it_is(changed: str, by: dict[str, float]) -> None:
    found = link(**{name: value * by.get(name, 1.0) for name, value in RIGHT.items()})
    assert abs(values(found)[changed] - 1) > links.PROMISED[changed]


def test_what_the_software_takes_is_the_latency_without_the_round_trips() -> None:
    line = fit({size: {0: ALPHA_S + size / 1e9, 1: 1.1 * ALPHA_S + size / 1e9} for size in SIZES})
    found = links.Software.of(line, BUILT)
    assert found.latency_s.value == pytest.approx(SOFTWARE_S + 0.05 * ALPHA_S)
    assert found.latency_s.low < SOFTWARE_S < found.latency_s.high
    assert found.seconds_a_byte.value == pytest.approx(1e-9)


def test_the_interval_of_a_ratio_has_the_doubt_of_both() -> None:
    found = links.ratio(OverBlocks(2.0, 1.94, 2.06), OverBlocks(1.0, 0.96, 1.04))
    assert (found.value, found.low, found.high) == pytest.approx((2.0, 1.9, 2.1))
    assert links.ratio(OverBlocks(2.0), OverBlocks(1.0)).low == 2.0


def test_what_a_step_exposes_is_held_against_the_ring_with_the_doubt_of_the_software() -> None:
    software = links.Software(
        OverBlocks(SOFTWARE_S, 0.9 * SOFTWARE_S, 1.1 * SOFTWARE_S), OverBlocks(A_BYTE_S, 0.5 * A_BYTE_S, 1.5 * A_BYTE_S)
    )
    packs = [PACK, PACK]
    taken = software.taken(packs)
    halves = 2 * 0.1 * SOFTWARE_S, 2 * PACK * 0.5 * A_BYTE_S
    assert taken.value == pytest.approx(2 * (SOFTWARE_S + PACK * A_BYTE_S))
    assert (taken.value - taken.low, taken.high - taken.value) == pytest.approx((math.hypot(*halves),) * 2)
    exact = link(**RIGHT)
    doubted = dataclasses.replace(exact, software=software)
    exact, doubted = (of.ratios["exposed ÷ ring and software"] for of in (exact, doubted))
    assert doubted.value == pytest.approx(exact.value)
    half = math.hypot(0.1 * SOFTWARE_S, PACK * 0.5 * A_BYTE_S) / RIGHT["exposed"]
    assert doubted.value - doubted.low == pytest.approx(half)
    assert exact.low == exact.high == pytest.approx(1.0)


def test_what_is_printed_is_markdown_that_says_how_many_links_keep_each_promise(
    capsys: pytest.CaptureFixture[str],
) -> None:
    links.show([link(**RIGHT), link(**{**RIGHT, "slope": 2 * SLOPE})])
    said = capsys.readouterr().out
    assert "| rate=100mbit,delay=1ms | 4 B – 4 MiB |" in said
    assert "α ÷ ring and software: within 20% of 1 on 2 of 2 links" in said
    assert "1/β ÷ ring and software: within 10% of 1 on 1 of 2 links" in said


@pytest.mark.parametrize("name", ["at", "gulps"])
def test_data_of_a_planted_pace_are_a_function_of_it(name: str) -> None:
    paced = load("crossing").DATA.format(400).replace("at(", f"{name}(")
    assert found_function("data", paced).keywords == {"rate": 400}
